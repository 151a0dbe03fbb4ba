"""A simulated cluster with real tasks: jobs, their slots, their checkpoints, and what is left of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from refimpl.cluster import ExecutionState, FixedDelayRestart, JobState, MemberKind, MemberState
from refimpl.drivers.cluster_simulation import (
    DISPATCHER,
    RESOURCE_MANAGER,
    ClusterSimulation,
    CrashMember,
    PauseMember,
    ReviveMember,
    job_master_of,
)
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.simulation import Tell
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import STRING
from refimpl.state import MemoryStore
from tests.support.cluster_worlds import (
    JOB,
    committed,
    counting_job,
    expected,
    is_running,
    running_cluster,
    small_memory,
)


def begun(**more: object) -> ClusterSimulation:
    """A cluster that somebody leads."""
    cluster = ClusterSimulation(3, 2, 1, config=small_memory(**more))
    return cluster.run(lambda run: {DISPATCHER, RESOURCE_MANAGER} <= run.members.alive.keys())


@pytest.mark.parametrize("seed", range(4))
def test_a_job_runs_in_slots_that_all_come_home_and_its_files_are_committed_once(tmp_path: Path, seed: int) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, seed, store=store).run()
    assert cluster.end_of(JOB) is JobState.FINISHED
    assert committed(tmp_path) == expected(), f"seed {seed}"
    cluster.check_at_rest()
    assert [key for key in store.files if not key.startswith(f"{JOB}/leader-")] == []


def test_the_same_seed_takes_the_same_steps(tmp_path: Path) -> None:
    stories = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        cluster = running_cluster(folder, 7, store=MemoryStore())
        stories.append([str(cluster.step()) for _ in range(300)])
    assert stories[0] == stories[1]


def test_all_that_can_happen_is_enabled_and_what_is_done_to_members_is_never_picked(tmp_path: Path) -> None:
    cluster = running_cluster(tmp_path, 1).run(is_running)
    enabled = cluster.enabled()
    assert {CrashMember(f"tm-{number}") for number in range(3)} <= set(enabled)
    assert PauseMember(job_master_of(JOB)) in enabled
    cluster.run(lambda run: any(isinstance(each, Tell) for each in run.enabled()))
    assert not any(isinstance(each, CrashMember | PauseMember | ReviveMember) for each in cluster.moves())
    cluster.step(CrashMember("tm-0"))
    assert ReviveMember("tm-0") in cluster.enabled()
    cluster.step(ReviveMember("tm-0"))
    with pytest.raises(LocalUsageError, match="not enabled"):
        cluster.step(ReviveMember("tm-0"))


def test_a_snapshot_has_members_slots_and_jobs(tmp_path: Path) -> None:
    cluster = running_cluster(tmp_path, 1).run(is_running)
    cluster.crash("tm-2")
    shot = cluster.snapshot()
    assert {each.address: each.state for each in shot.members} == {
        DISPATCHER: MemberState.ALIVE,
        RESOURCE_MANAGER: MemberState.ALIVE,
        job_master_of(JOB): MemberState.ALIVE,
        "tm-0": MemberState.ALIVE,
        "tm-1": MemberState.ALIVE,
        "tm-2": MemberState.GONE,
    }
    slots = [slot for each in shot.members if each.kind is MemberKind.TASK_MANAGER for slot in each.slots]
    assert len(slots) == 4
    (job,) = shot.jobs
    assert (job.job_id, job.state, job.epoch) == (JOB, JobState.RUNNING, 1)
    assert {state for _, state in job.executions} == {ExecutionState.RUNNING}
    there = {execution for slot in slots for execution in slot.executions}
    assert there < {execution for execution, _ in job.executions}


def test_jobs_side_by_side_share_the_slots_one_waits_for_another(tmp_path: Path) -> None:
    cluster = begun()
    for number in range(3):
        cluster.submit(
            f"job {number}", counting_job(tmp_path / str(number), small_memory(), parallelism=2 + number % 2)
        )
    cluster.run()
    for number in range(3):
        assert cluster.end_of(f"job {number}") is JobState.FINISHED
        assert committed(tmp_path / str(number)) == expected(parallelism=2 + number % 2)
    cluster.check_at_rest()


def test_a_job_that_is_cancelled_ends_commits_nothing_more_and_keeps_no_checkpoint(tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, 3, times=20, store=store)
    cluster.run(lambda _: any(key.endswith("_metadata") for key in store.files))
    cluster.cancel(JOB)
    cluster.run()
    assert [key for key in store.files if "chk-" in key] == []
    assert cluster.end_of(JOB) is JobState.CANCELED
    assert set(committed(tmp_path)) < set(expected(20))
    cluster.check_at_rest()


def test_a_savepoint_is_in_the_store(tmp_path: Path) -> None:
    store = MemoryStore()
    cluster = running_cluster(tmp_path, 3, store=store).run(is_running)
    cluster.savepoint(JOB, "before lunch")
    cluster.run()
    assert [key for key in store.files if "sp-before" in key and key.endswith("_metadata")] != []
    assert committed(tmp_path) == expected()


def test_a_job_whose_code_fails_for_ever_fails_and_says_why(tmp_path: Path) -> None:
    cluster = begun()
    environment = StreamEnvironment(small_memory(), 2)
    numbers = environment.from_collection(range(9), "numbers").map(lambda value: 1 // (value - 5), name="divide")
    numbers.sink_to(FileSink(tmp_path), name="file")
    cluster.submit("bad", environment, lambda: FixedDelayRestart(2, 1.0))
    cluster.run()
    assert cluster.end_of("bad") is JobState.FAILED
    (job,) = cluster.snapshot().jobs
    assert "ZeroDivisionError" in str(job.failure)
    cluster.check_at_rest()


def test_a_region_that_fails_begins_again_alone(tmp_path: Path) -> None:
    cluster = begun(checkpoint_interval_ms=3)
    environment = StreamEnvironment(small_memory(checkpoint_interval_ms=3), 2)
    failed = list[int]()

    def fail_once(value: str) -> str:
        if not failed and any(key.endswith("_metadata") for key in cluster.store.list("two/chk-")):
            failed.append(1)
            raise RuntimeError("once")
        return value

    for name, function in (("left", fail_once), ("right", str)):
        letters = environment.from_collection("abcab" * 12, name, STRING).set_parallelism(1)
        values = letters.rebalance().map(function, name=f"{name} map").set_parallelism(2)
        values.sink_to(FileSink(tmp_path / name), name=f"{name} file")
    cluster.submit("two", environment, lambda: FixedDelayRestart(3, 1.0))
    attempts = set[tuple[int, int]]()
    while not cluster.is_at_rest:
        cluster.step()
        if (job_master := cluster.job_master("two")) is not None:
            attempts |= {(each.id.vertex, each.id.attempt) for each in job_master.scheduler.executions.values()}
    assert failed, "nothing has failed"
    assert cluster.end_of("two") is JobState.FINISHED
    begun_again = {vertex for vertex, attempt in attempts if attempt > 0}
    assert 0 < len(begun_again) < len({vertex for vertex, _ in attempts})
    for name in ("left", "right"):
        assert committed(tmp_path / name) == sorted("abcab" * 12)
    cluster.check_at_rest()


@pytest.mark.parametrize("seed", range(3))
def test_without_a_dispatcher_jobs_go_on_and_the_next_one_hears_how_they_ended(tmp_path: Path, seed: int) -> None:
    cluster = running_cluster(tmp_path, seed).run(is_running)
    cluster.crash(DISPATCHER)
    with pytest.raises(LocalUsageError, match="nobody leads the Dispatcher"):
        cluster.submit("another", counting_job(tmp_path / "another", small_memory()))
    job_master = cluster.job_master(JOB)
    assert job_master is not None
    cluster.run(lambda run: job_master.is_over)
    assert cluster.end_of(JOB) is None
    cluster.revive(DISPATCHER)
    cluster.run()
    assert cluster.end_of(JOB) is JobState.FINISHED
    assert committed(tmp_path) == expected()
    cluster.check_at_rest()
