"""Another leads the job, in every state that a checkpoint can be in: it goes on from what counts, and nothing is lost.

The leader before has died, or stands still and goes on later: then it believes to lead, with a store and with tasks
that it may not touch any more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from refimpl.checkpoint import PendingSnapshot
from refimpl.cluster import JobState, MemberState
from refimpl.drivers.cluster_simulation import RESOURCE_MANAGER, ClusterSimulation, Member, job_master_of
from refimpl.state import MemoryStore
from tests.support.cluster_worlds import JOB, committed, expected, is_running, running_cluster, task_managers

JOB_MASTER = job_master_of(JOB)
NUM_TASKS = 9


def leader(cluster: ClusterSimulation) -> Member:
    return cluster.members.present(JOB_MASTER)


def pending(cluster: ClusterSimulation) -> PendingSnapshot | None:
    if not is_running(cluster):
        return None
    checkpoints = leader(cluster).checkpoints
    assert checkpoints is not None
    assert checkpoints.run is not None
    return next(iter(checkpoints.run.coordinator.snapshot().pending), None)


def acknowledged(number: int) -> Callable[[ClusterSimulation], bool]:
    """Whether so many tasks, at least, have acknowledged the checkpoint that is under way."""

    def is_so(cluster: ClusterSimulation) -> bool:
        found = pending(cluster)
        return found is not None and len(found.missing) <= NUM_TASKS - number

    return is_so


def being_written(cluster: ClusterSimulation) -> bool:
    call = leader(cluster).next_call() if is_running(cluster) else None
    return call is not None and call.what.endswith("_metadata")


def complete(cluster: ClusterSimulation) -> bool:
    return bool(cluster.snapshot().jobs[0].completed)


def told(cluster: ClusterSimulation) -> bool:
    """Whether of those that are told that one is complete some have heard, and some have not."""
    left = [each for each in cluster.wire.messages if each.what == "NotifyTask"]
    return complete(cluster) and 0 < len(left) < NUM_TASKS - 2


MOMENTS: dict[str, Callable[[ClusterSimulation], bool]] = {
    "before there is one": is_running,
    "begun": acknowledged(0),
    "acknowledged by some": acknowledged(4),
    "acknowledged by all but one": acknowledged(NUM_TASKS - 1),
    "being written": being_written,
    "complete, and nobody is told": complete,
    "complete, and some are told": told,
}
EACH = pytest.mark.parametrize("moment", MOMENTS)


def finish(
    cluster: ClusterSimulation, folder: Path, store: MemoryStore, is_back: Callable[[], bool] = lambda: True
) -> None:
    """Run to the end, and until who was away is back; nothing is lost, and nothing left."""
    cluster.run()
    assert cluster.end_of(JOB) is JobState.FINISHED
    assert committed(folder) == expected(), "something is lost, or there twice"
    cluster.run(lambda _run: is_back()).run()
    cluster.check_at_rest()
    assert [key for key in store.files if not key.startswith(f"{JOB}/leader-")] == [], "what is left in the store"


@EACH
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(one_in=5)
def test_a_leader_dies(moment: str, seed: int, tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, seed, store=store).run(MOMENTS[moment])
    cluster.crash(JOB_MASTER)
    for _ in range(seed * 20):
        cluster.step()
    cluster.revive(JOB_MASTER)
    finish(cluster, tmp_path, store)


@EACH
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(one_in=5)
def test_a_leader_stands_still_and_goes_on_beside_the_next(moment: str, seed: int, tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, seed, store=store).run(MOMENTS[moment])
    before = leader(cluster)
    cluster.members.pause(JOB_MASTER)
    cluster.run(lambda run: JOB_MASTER in run.members.alive and leader(run) is not before)
    assert cluster.members.state_of(before) is MemberState.PAUSED
    for _ in range(seed * 40):
        cluster.step()
    cluster.members.resume(JOB_MASTER)
    finish(cluster, tmp_path, store)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(one_in=3)
def test_a_resource_manager_that_stood_still_gives_no_slot(seed: int, tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, seed, store=store)
    for _ in range(10 + seed * 7):
        cluster.step()
    before = cluster.members.present(RESOURCE_MANAGER)
    cluster.members.pause(RESOURCE_MANAGER)
    cluster.run(lambda run: run.members.present(RESOURCE_MANAGER) is not before)
    cluster.members.resume(RESOURCE_MANAGER)
    finish(cluster, tmp_path, store)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(one_in=4)
def test_a_task_manager_that_stood_still_past_its_heartbeat_does_no_harm(seed: int, tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, seed, store=store).run(is_running)
    for _ in range(seed * 20):
        cluster.step()
    victim = task_managers(cluster)[0]
    cluster.members.pause(victim)
    job_master = cluster.job_master(JOB)
    assert job_master is not None
    cluster.run(lambda run: victim not in job_master.peers)
    assert cluster.time_ms > 40_000
    for _ in range(seed * 20):
        cluster.step()
    cluster.members.resume(victim)

    def is_back() -> bool:
        resource_manager = cluster.members.present(RESOURCE_MANAGER).endpoint
        return resource_manager is not None and victim in resource_manager.peers

    finish(cluster, tmp_path, store, is_back)
