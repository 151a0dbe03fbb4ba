"""Clusters of real processes: jobs go on after SIGKILL, and one that was stopped for long does no harm."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from refimpl.config import Config
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_options import NodeOptions
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import ConfigError, LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from tests.support.polling import until

PARALLELISM = 4
NUM_RECORDS = 800
ANY_TASK_MANAGER = "a TaskManager"


class FileGatedReader:
    """The numbers of one subtask, one at a time; the last comes when `gate` is there."""

    def __init__(self, gate: Path, subtask: int, parallelism: int) -> None:
        self._gate = gate
        self._numbers = range(subtask, NUM_RECORDS, parallelism)
        self._position = 0

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if self._position == len(self._numbers):
            return None
        if self._position == len(self._numbers) - 1 and not self._gate.exists():
            time.sleep(0.01)  # in the cluster's process: there is nothing else to wait for
            return []
        self._position += 1
        return [StreamRecord(self._numbers[self._position - 1])]

    def close(self) -> None: ...


def squares(gate: Path, out: Path) -> StreamEnvironment:
    environment = StreamEnvironment(Config(num_buffers=256, checkpoint_interval_ms=100), parallelism=PARALLELISM)
    numbers = environment.source(lambda i, n: FileGatedReader(gate, i, n), "numbers")
    numbers.rebalance().map(lambda number: number * number).sink_to(FileSink(out))
    return environment


def results(out: Path) -> list[int]:
    files = (each for each in out.iterdir() if not each.name.startswith("."))
    return sorted(int(line) for each in files for line in each.read_text().split())


class Session:
    """A cluster, a client of it, and its one job."""

    def __init__(self, folder: Path, processes: ClusterProcesses) -> None:
        self.folder = folder
        self.processes = processes
        self.leaders = StoredLeaders(processes.folder.leases)
        self.client = ClusterClient(RpcService(processes.folder.secret), self.leaders)

    @property
    def running(self) -> int:
        return int(self.client.status("squares").get("running", 0))

    @property
    def checkpoints(self) -> tuple[str, int]:
        """Which leader, and how many it has seen complete."""
        shown = self.client.status("squares")
        return shown.get("leader", ""), int(shown.get("checkpoints", 0))

    def wait_for_a_checkpoint(self) -> None:
        before = self.checkpoints
        until(lambda: self.running == 2 * PARALLELISM and self.checkpoints not in (before, (before[0], 0)))

    def used(self) -> str:
        """A TaskManager that runs a part of the job."""
        return str(self.client.status("squares")["task_managers"][0].partition("@")[0])

    def close(self) -> None:
        self.client.close()
        self.leaders.close()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    options = NodeOptions(ANY_TASK_MANAGER, heartbeat_interval_ms=500, heartbeat_timeout_ms=3_000)
    with ClusterProcesses(tmp_path / "cluster", options=options) as processes:
        processes.wait_until_up()
        made = Session(tmp_path, processes)
        made.client.submit("squares", squares(tmp_path / "gate", tmp_path / "out"))
        made.wait_for_a_checkpoint()
        yield made
        made.close()
        ids = processes.process_ids
    assert [each for each in ids.values() if psutil.pid_exists(each)] == []


def finish(session: Session) -> None:
    (session.folder / "gate").touch()
    assert session.client.wait("squares")["state"] == "finished"
    assert results(session.folder / "out") == [number * number for number in range(NUM_RECORDS)]


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize(
    "parts",
    [
        (ANY_TASK_MANAGER,),
        (RESOURCE_MANAGER,),
        (DISPATCHER,),
        (DISPATCHER, RESOURCE_MANAGER),
        (ANY_TASK_MANAGER, RESOURCE_MANAGER),
    ],
    ids=" and ".join,
)
def test_a_job_goes_on_whoever_is_killed(session: Session, parts: tuple[str, ...]) -> None:
    for name in [session.used() if part == ANY_TASK_MANAGER else part for part in parts]:
        session.processes.signal(name, signal.SIGKILL)
    session.wait_for_a_checkpoint()
    finish(session)


@pytest.mark.slow
def test_a_task_manager_that_was_stopped_for_long_does_no_harm_when_it_goes_on(session: Session) -> None:
    name = session.used()
    address = next(each for each in session.client.status("squares")["task_managers"] if each.startswith(f"{name}@"))
    session.processes.signal(name, signal.SIGSTOP)
    until(lambda: address not in session.client.status("squares")["task_managers"], timeout_s=120)
    session.wait_for_a_checkpoint()
    session.processes.signal(name, signal.SIGCONT)
    session.wait_for_a_checkpoint()
    finish(session)


def test_there_is_no_cluster_in_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        ClusterFolder(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ConfigError, match="it is of something else"):
        ClusterFolder.make(tmp_path / "other")


def test_jobs_are_kept_as_they_are_over_lives(tmp_path: Path) -> None:
    from refimpl.cluster import Dispatcher, JobState

    folder = ClusterFolder.make(tmp_path / "cluster")
    first = Dispatcher(folder.jobs)
    for name in ("b", "a", "c"):
        first.submit(name, name.encode())
    first.ended("a", JobState.FAILED, "no luck")
    second = Dispatcher(ClusterFolder(tmp_path / "cluster").jobs)
    assert [(each.job_id, each.end, each.why) for each in second.jobs] == [
        ("b", None, ""),
        ("a", JobState.FAILED, "no luck"),
        ("c", None, ""),
    ]
    assert [each.record.job for each in second.recover()] == [b"b", b"c"]
    with pytest.raises(LocalUsageError, match="already"):
        second.submit("a", b"again")
