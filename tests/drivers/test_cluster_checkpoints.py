"""The checkpoints of a job as the drivers of a cluster have them: what becomes of what nobody waits for."""

from __future__ import annotations

import pytest

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_checkpoints import LeadLost, MustFail
from refimpl.cluster.job_status import JobState
from refimpl.config import Config
from refimpl.drivers.cluster_checkpoints import ClusterCheckpoints
from refimpl.errors import LeadershipLostError
from refimpl.job import StreamEnvironment
from refimpl.state.layout import JobStore
from refimpl.state.manifest import StateFile
from refimpl.state.store import MemoryStore
from refimpl.task.checkpoint_reports import Report, Snapshotted, Unwanted

KEY = "chk-7/of-nobody-0-65536.state"


def job() -> StreamEnvironment:
    environment = StreamEnvironment(Config(checkpoint_interval_ms=50))
    environment.from_collection(range(3)).sink(print)
    return environment


def call_all(checkpoints: ClusterCheckpoints) -> None:
    while (call := checkpoints.next_call()) is not None:
        checkpoints.called(call, call.call(), 0.0)


def leading(store: MemoryStore) -> ClusterCheckpoints:
    made = ClusterCheckpoints(store, "job", job().execution_graph(1).job)
    made.recover()
    call_all(made)
    made.take_news()
    return made


@pytest.mark.parametrize(
    "report", [Unwanted(KEY), Snapshotted(7, StateFile(KEY, 1, "00"), {})], ids=["unwanted", "snapshotted"]
)
def test_a_file_of_an_attempt_that_nobody_knows_is_deleted(report: Report) -> None:
    store = MemoryStore()
    checkpoints = leading(store)
    JobStore(store, "job").put(KEY, [b"x"])
    checkpoints.task_says(ExecutionId("job", 1, 0, 4), report, 0.0)
    call_all(checkpoints)
    assert KEY not in JobStore(store, "job").list("chk-")


def test_a_bug_in_a_store_ends_the_job_for_ever() -> None:
    checkpoints = leading(MemoryStore())
    checkpoints.recover()
    call = checkpoints.next_call()
    assert call is not None
    checkpoints.called(call, ZeroDivisionError("of the store"), 0.0)
    assert checkpoints.take_news() == [MustFail("ZeroDivisionError: of the store", is_recoverable=False)]


def test_whoever_is_overtaken_says_so_and_leaves_everything() -> None:
    store = MemoryStore()
    checkpoints = leading(store)
    leading(store)
    JobStore(store, "job").put(KEY, [b"x"])
    checkpoints.dispose(JobState.FINISHED)
    call_all(checkpoints)
    assert KEY in JobStore(store, "job").list("chk-")
    checkpoints.recover()
    call = checkpoints.next_call()
    assert call is not None
    error = call.call()
    assert isinstance(error, LeadershipLostError)
    checkpoints.called(call, error, 0.0)
    assert isinstance(checkpoints.take_news()[0], LeadLost)


def test_a_job_that_is_cancelled_while_it_looks_for_a_checkpoint_just_ends() -> None:
    store = MemoryStore()
    JobStore(store, "job").put(KEY, [b"x"])
    checkpoints = ClusterCheckpoints(store, "job", job().execution_graph(1).job)
    checkpoints.recover()
    checkpoints.lead()
    checkpoints.stop([ExecutionId("job", 1, 0, 0)], 0.0)
    checkpoints.dispose(JobState.CANCELED)
    call_all(checkpoints)
    assert JobStore(store, "job").list("chk-") == []


@pytest.mark.parametrize("end", [JobState.FINISHED, JobState.FAILED, JobState.CANCELED])
def test_nothing_is_kept_of_a_job_that_is_over(end: JobState) -> None:
    store = MemoryStore()
    checkpoints = leading(store)
    JobStore(store, "job").put(KEY, [b"x"])
    checkpoints.dispose(end)
    call_all(checkpoints)
    assert not JobStore(store, "job").list("chk-")
