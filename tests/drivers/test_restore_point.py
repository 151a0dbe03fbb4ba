"""What a deployment goes on from crosses to another process, and each TaskManager reads its own part and no other."""

from __future__ import annotations

import pickle

import pytest

from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.restore_point import RestorePoint
from refimpl.errors import RestoreRefusedError
from refimpl.job import StreamEnvironment
from refimpl.state import MemoryStore
from tests.test_checkpoints import completed, job, simulation


def left(num_records: int = 400) -> MemoryStore:
    """A store with a checkpoint of a job that did not end."""
    store = MemoryStore()
    run = simulation(job(lambda _: None, num_records=num_records), store)
    while not completed(run):
        run.step()
    return store


def recovery(environment: StreamEnvironment, store: MemoryStore) -> JobRecovery:
    return JobRecovery(environment.execution_graph(2), store, "job")


def test_each_task_manager_reads_its_own_part_of_what_has_crossed() -> None:
    store = left()
    whole = recovery(job(print), store)
    point: RestorePoint = pickle.loads(pickle.dumps(whole.restore_point()))
    assert point.manifest is not None
    graph, expected = whole.graph, whole.snapshots().states
    assert len(expected) == len(graph.vertices)
    parts = {}
    for number in range(2):
        here = [each for each in graph.vertices if each.task_manager == number]
        store.calls.clear()
        part = point.snapshots(store, graph, here).states
        assert set(part) == {each.name for each in here}
        assert any(call.startswith("get") for call in store.calls)
        parts.update(part)
    assert parts == expected


def test_no_two_attempts_have_a_name_for_their_files_in_common() -> None:
    store = left()
    names = []
    for _ in range(2):
        run = recovery(job(print), store)
        for _ in range(2):
            point = run.restore_point()
            names += [point.place_of(each) for each in run.graph.vertices]
            run.graph = run.graph.restarted()
    assert len(set(names)) == len(names)


def test_a_job_that_cannot_go_on_is_refused_before_a_state_is_read() -> None:
    store = left()
    store.calls.clear()
    other = job(print, max_parallelism=7)
    with pytest.raises(RestoreRefusedError, match="7"):
        recovery(other, store).restore_point()
    states = [call for call in store.calls if ".state" in call and call.startswith("get")]
    assert len(states) == len({*states}), "each was read once, to see that it is sound"
