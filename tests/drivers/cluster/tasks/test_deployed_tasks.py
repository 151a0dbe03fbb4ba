"""Attempts of a region on one TaskManager: what they cannot read they name, and they leave nothing."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import SubmittedTask, TaskState
from refimpl.drivers.cluster.tasks.deployed_tasks import DeployedTasks, Reports
from refimpl.drivers.cluster.tasks.job_place import JobPlace, Workplace
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.processes.messages import pack
from refimpl.drivers.transport.streams import listen
from tests.support.batch_jobs import batch_config, files_in, words


@pytest.mark.parametrize("keeper", ["here", "elsewhere"])
def test_what_cannot_be_read_is_named(tmp_path: Path, keeper: str) -> None:
    """Here there is no such result; elsewhere nobody answers."""
    config = batch_config(tmp_path / "spilled", request_backoff_initial_ms=1, request_backoff_max_ms=2)
    environment = words(config, [])
    source, pair = sorted(vertex.id for vertex in environment.execution_graph(1).job.vertices.values())[:2]
    own = ExecutionId("batch", pair, 0, epoch=1)
    kept = tuple((ExecutionId("batch", source, subtask, epoch=1), keeper) for subtask in range(2))
    said: queue.SimpleQueue[tuple[ExecutionId, TaskState, tuple[ExecutionId, ...]]] = queue.SimpleQueue()
    reports = Reports(
        lambda execution, state, _why, missing: said.put((execution, state, missing)),
        lambda _execution, _report: None,
        lambda _word: None,
    )
    bugs: list[BaseException] = []
    place = JobPlace("batch", Workplace(FileStore(tmp_path / "store", fsync=False)), bugs.append)
    deployed = DeployedTasks("here", "pair", place, reports)
    deployed.start()
    deployed.job_is(pack(environment))
    deployed.add(SubmittedTask(own, None, ("here", "", ""), (own,), reads=kept, keeps_results=True))  # type: ignore[arg-type]
    listener = listen()
    listener.close()  # its port is nobody's now
    deployed.connect({"elsewhere": listener.address, "here": None})
    assert deployed.join(120)
    found = [said.get_nowait() for _ in range(said.qsize())]
    ended = [each for each in found if each[1] is not TaskState.RUNNING]
    place.close()
    assert place.join(120)
    assert bugs == []
    assert files_in(tmp_path / "spilled") == []
    assert [(execution, state) for execution, state, _ in ended] == [(own, TaskState.FAILED)]
    missing = ended[0][2]
    assert set(missing) == {execution for execution, _ in kept}
