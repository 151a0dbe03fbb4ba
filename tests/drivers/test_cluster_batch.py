"""Batch jobs on a simulated cluster: region by region, and whoever dies or stands still, with the results of a stream.

Who dies, at which step, whether anybody is told and when it comes back, is drawn from a seed. Laws are checked after
every step.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from refimpl.cluster import ExecutionState, FixedDelayRestart, JobState, ManagedSlotState, ResourceManager
from refimpl.config import FlinkVersion
from refimpl.drivers.cluster_simulation import DISPATCHER, RESOURCE_MANAGER, ClusterSimulation, job_master_of
from tests.support.batch_jobs import batch_config, expected, files_in, words

JOB = "batch"
MOST_STEPS = 100_000


def cluster_with(
    folder: Path,
    found: list[tuple[str, int]],
    seed: int,
    num_read: Counter[int] | None = None,
    shape: tuple[int, int] = (3, 2),
    **options: object,
) -> ClusterSimulation:
    """TaskManagers, and slots of each, as `shape` says; the job of numbers and digits has been submitted."""
    config = batch_config(folder, **options)
    cluster = ClusterSimulation(*shape, seed, config=config, max_delay_ms=0.3)
    cluster.run(lambda run: DISPATCHER in run.members.alive)
    cluster.submit(JOB, words(config, found, num_read), lambda: FixedDelayRestart(1_000, 5.0))
    return cluster


def until_over(cluster: ClusterSimulation, folder: Path) -> None:
    """Let everybody come back and the job end, and see that nothing is left of it."""
    for address in sorted(cluster.members.gone):
        cluster.revive(address)
    cluster.run(lambda run: run.is_at_rest, MOST_STEPS)
    assert cluster.end_of(JOB) is JobState.FINISHED
    cluster.run(all_slots_are_free, MOST_STEPS)
    cluster.check_at_rest()
    assert files_in(folder) == []


def all_slots_are_free(run: ClusterSimulation) -> bool:
    """Whether the ResourceManager knows of the slots of all TaskManagers, and that they are free."""
    member = run.members.alive.get(RESOURCE_MANAGER)
    if member is None or not isinstance(member.endpoint, ResourceManager) or run.wire.messages:
        return False
    slots = [slot for each in run.members if each.task_manager for slot in each.task_manager.executor.slots.report()]
    return [state for _, state in member.endpoint.slots.slots()] == [ManagedSlotState.FREE] * len(slots)


def states(cluster: ClusterSimulation) -> dict[str, set[ExecutionState]]:
    """How far the attempts of each vertex are."""
    leader = cluster.job_master(JOB)
    if leader is None:
        return {}
    names = {each.id: each.name for each in cluster.jobs.graphs[JOB].vertices.values()}
    found: dict[str, set[ExecutionState]] = {}
    for (vertex, _), execution in leader.scheduler.executions.items():
        found.setdefault(names[vertex], set()).add(execution.state)
    return found


@pytest.mark.parametrize("version", FlinkVersion)
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 2)])
def test_regions_run_one_after_the_other_in_as_few_slots_as_there_are(
    shape: tuple[int, int], version: FlinkVersion, tmp_path: Path
) -> None:
    found: list[tuple[str, int]] = []
    cluster = cluster_with(tmp_path, found, 1, None, shape, flink_version=version)
    while not cluster.is_at_rest:
        assert cluster.step() is not None
        now = states(cluster)
        begun = {name for name, each in now.items() if each - {ExecutionState.CREATED}}
        assert "pair" not in begun or now["numbers"] == {ExecutionState.FINISHED}
        assert "sink" not in begun or now["pair"] == {ExecutionState.FINISHED}
    assert sorted(found) == expected()
    until_over(cluster, tmp_path)


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.sampled(one_in=10)
def test_whoever_dies_or_stands_still_the_results_are_those_of_the_stream(seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    random = Random(f"batch of seed {seed}")
    found: list[tuple[str, int]] = []
    cluster = cluster_with(tmp_path, found, seed, None, (3, random.choice((1, 2))))
    members = ["tm-0", "tm-1", "tm-2", "tm-0", "tm-1", "tm-2", RESOURCE_MANAGER, job_master_of(JOB)]
    for _ in range(random.randrange(1, 4)):
        for _ in range(random.randrange(400)):
            cluster.step()
        address = random.choice([each for each in members if each in cluster.members.alive])
        if random.random() < 0.25:
            cluster.members.pause(address)
            for _ in range(random.randrange(400)):
                cluster.step()
            cluster.members.resume(address)
            continue
        cluster.crash(address, is_noticed=random.random() < 0.7)
        for _ in range(random.randrange(200)):
            cluster.step()
        if random.random() < 0.7:
            cluster.revive(address)
    until_over(cluster, tmp_path)
    assert set(found) == set(expected()), f"seed {seed}"
