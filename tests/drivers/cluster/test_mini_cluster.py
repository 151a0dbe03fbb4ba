"""Whole clusters in one process: real tasks on TaskManagers that lend their slots, and the parts that may be lost."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from refimpl.cluster import FixedDelayRestart
from refimpl.cluster.dispatcher import JobRecord, JobRecordState, MemoryJobRegistry
from refimpl.config import Config
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.job_folder import JobFolder
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER
from refimpl.drivers.cluster.mini_cluster import MiniCluster
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state.store import MemoryStore
from refimpl.task.operators import SinkOperator
from tests.support.batch_jobs import batch_config, expected, files_in, words
from tests.support.polling import until

PARALLELISM = 4
GATES: dict[str, threading.Event] = {}
"""What the readers of a job wait for before their last record; all parts are in this process."""
FAILS: dict[str, threading.Event] = {}
"""Whether the reader of subtask 1 is to fail."""
MADE: dict[str, Counter[int]] = {}
"""How many readers each subtask has had."""


class GatedReader:
    """The numbers of one subtask, one at a time; the last comes when the gate is open."""

    def __init__(self, gate: str, num_records: int, subtask: int, parallelism: int) -> None:
        self._gate = gate
        self._numbers = range(subtask, num_records, parallelism)
        self._position = 0

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if self._position == len(self._numbers):
            return None
        if self._position == len(self._numbers) - 1 and not GATES[self._gate].is_set():
            GATES[self._gate].wait(0.01)
            return []
        self._position += 1
        return [StreamRecord(self._numbers[self._position - 1])]

    def close(self) -> None: ...


class FailingReader(GatedReader):
    """The same; it fails while it waits, once, when that is wanted."""

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if FAILS[self._gate].is_set():
            FAILS[self._gate].clear()
            raise OSError("the source is gone")
        return super().read(max_records)


def gated_job(gate: str, out: Path, num_records: int = 400) -> StreamEnvironment:
    """Squares of numbers, over a network, into files; it ends when the gate is open."""
    environment = StreamEnvironment(Config(num_buffers=256, checkpoint_interval_ms=50), parallelism=PARALLELISM)
    source = environment.source(lambda i, n: GatedReader(gate, num_records, i, n), "numbers")
    source.rebalance().map(lambda number: number * number).sink_to(FileSink(out))
    return environment


def apart_reader(gate: str, subtask: int, parallelism: int) -> GatedReader:
    MADE[gate][subtask] += 1
    kind = FailingReader if subtask == 1 else GatedReader
    return kind(gate, 400, subtask, parallelism)


def apart_job(gate: str, out: Path) -> StreamEnvironment:
    """Numbers into files, nothing over a network; subtask 1 fails once, when that is wanted."""
    environment = StreamEnvironment(Config(num_buffers=64, checkpoint_interval_ms=50), parallelism=PARALLELISM)
    environment.source(lambda i, n: apart_reader(gate, i, n), "numbers").sink_to(FileSink(out))
    return environment


FOUND: list[tuple[str, int]] = []
"""What the sink of a batch job has got."""


def collecting_words(config: Config) -> StreamEnvironment:
    """Numbers → digits → one sink that writes into `FOUND`, on whichever thread of this process it runs."""
    environment = words(config, [])
    last = max(environment.graph.nodes)
    node = environment.graph.nodes[last]
    environment.graph.nodes[last] = replace(node, sink=None, make_operator=partial(SinkOperator, collect))
    return environment


def collect(value: tuple[str, int]) -> None:
    FOUND.append(value)


def results(out: Path) -> list[int]:
    files = (each for each in out.iterdir() if not each.name.startswith("."))
    return sorted(int(line) for each in files for line in each.read_text().split())


SQUARES = [number * number for number in range(400)]


@pytest.fixture
def gate() -> Iterator[str]:
    name = f"gate-{next(NUMBERS)}"
    GATES[name], FAILS[name], MADE[name] = threading.Event(), threading.Event(), Counter()
    yield name
    del GATES[name], FAILS[name], MADE[name]


NUMBERS = itertools.count()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MiniCluster]:
    before = set(threading.enumerate())
    with MiniCluster(tmp_path / "store", make_strategy=lambda: FixedDelayRestart(5, 50.0)) as made:
        yield made
    assert made.bugs == []
    until(lambda: not [each for each in threading.enumerate() if each not in before])


def checkpoints_of(client: ClusterClient, job: str) -> int:
    return int(client.status(job).get("checkpoints", 0))


def test_a_job_runs_over_three_task_managers_and_leaves_nothing(
    cluster: MiniCluster, gate: str, tmp_path: Path
) -> None:
    client = cluster.client()
    client.submit("squares", gated_job(gate, tmp_path / "out"))
    until(lambda: client.status("squares").get("running") == 2 * PARALLELISM)
    assert len(client.status("squares")["task_managers"]) >= 2
    until(lambda: checkpoints_of(client, "squares") >= 2)
    GATES[gate].set()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == SQUARES
    kept = {path.name for path in (tmp_path / "store" / "squares").iterdir()}
    assert all(name.startswith("leader-") for name in kept)


@pytest.mark.parametrize(
    "parts",
    [
        ("a TaskManager",),
        (RESOURCE_MANAGER,),
        (DISPATCHER,),
        (DISPATCHER, RESOURCE_MANAGER),
        ("a TaskManager", RESOURCE_MANAGER),
    ],
    ids=" and ".join,
)
def test_a_job_goes_on_whoever_is_lost(cluster: MiniCluster, gate: str, tmp_path: Path, parts: tuple[str, ...]) -> None:
    client = cluster.client()
    client.submit("squares", gated_job(gate, tmp_path / "out"))
    until(lambda: checkpoints_of(client, "squares") >= 2)
    used = client.status("squares")["task_managers"][0].partition("@")[0]
    names = [used if part == "a TaskManager" else part for part in parts]
    for name in names:
        cluster.crash(name)
    for name in names:
        cluster.revive(name)
    until(lambda: client.status("squares").get("running") == 2 * PARALLELISM)
    num_before = checkpoints_of(client, "squares")
    until(lambda: checkpoints_of(client, "squares") > num_before)
    GATES[gate].set()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == SQUARES


def test_a_failure_begins_only_its_own_region_again(cluster: MiniCluster, gate: str, tmp_path: Path) -> None:
    """Each subtask is a region of its own; what the others have begun they go on with."""
    client = cluster.client()
    client.submit("apart", apart_job(gate, tmp_path / "out"))
    until(lambda: checkpoints_of(client, "apart") >= 1)
    num_before = checkpoints_of(client, "apart")
    FAILS[gate].set()
    until(lambda: client.status("apart").get("restarts") == 1)
    until(lambda: client.status("apart").get("running") == PARALLELISM)
    until(lambda: checkpoints_of(client, "apart") > num_before)
    GATES[gate].set()
    assert client.wait("apart")["state"] == "finished"
    assert results(tmp_path / "out") == list(range(400))
    assert MADE[gate] == {0: 1, 1: 2, 2: 1, 3: 1}


class WatchfulRegistry(MemoryJobRegistry):
    """Notes which checkpoints are in a store when the end of a job is written."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.kept_at_the_end: list[str] = []
        self._folder = folder

    def put(self, record: JobRecord) -> None:
        if record.state is JobRecordState.DONE:
            self.kept_at_the_end = [path.name for path in (self._folder / record.job_id).glob("chk-*")]
        super().put(record)


def test_checkpoints_are_kept_until_it_is_written_how_the_job_ended(gate: str, tmp_path: Path) -> None:
    """Or else whoever leads next would begin a job again that is over."""
    registry = WatchfulRegistry(tmp_path / "store")
    with MiniCluster(tmp_path / "store", registry=registry) as cluster:
        client = cluster.client()
        client.submit("squares", gated_job(gate, tmp_path / "out"))
        until(lambda: checkpoints_of(client, "squares") >= 1)
        GATES[gate].set()
        client.wait("squares")
    assert registry.kept_at_the_end
    assert not list((tmp_path / "store" / "squares").glob("chk-*"))


def test_a_cancelled_job_ends_and_its_slots_serve_the_next(cluster: MiniCluster, gate: str, tmp_path: Path) -> None:
    client = cluster.client()
    for number in range(3):
        name = f"squares-{number}"
        client.submit(name, gated_job(gate, tmp_path / name))
        until(lambda name=name: client.status(name).get("running") == 2 * PARALLELISM)
        assert client.cancel(name)["state"] == "cancelled"
    assert [each["state"] for each in client.jobs()] == ["cancelled"] * 3


def test_who_waits_for_a_job_that_is_forgotten_as_it_ends_hears_so(gate: str, tmp_path: Path) -> None:
    registry = JobFolder(MemoryStore(), num_kept=0)
    with MiniCluster(tmp_path / "store", registry=registry) as cluster:
        client = cluster.client()
        client.submit("squares", gated_job(gate, tmp_path / "out"))
        with pytest.raises(LocalUsageError, match="there is no job 'squares'"):
            client.cancel("squares")
        assert client.jobs() == []
    assert cluster.bugs == []


def test_a_savepoint_is_there_when_the_answer_comes(cluster: MiniCluster, gate: str, tmp_path: Path) -> None:
    client = cluster.client()
    client.submit("squares", gated_job(gate, tmp_path / "out"))
    until(lambda: client.status("squares").get("running") == 2 * PARALLELISM)
    client.savepoint("squares", "before")
    assert list((tmp_path / "store" / "squares").glob("*before*"))
    with pytest.raises(LocalUsageError, match="before"):
        client.savepoint("squares", "before")
    client.cancel("squares")
    assert list((tmp_path / "store" / "squares").glob("*before*"))


def test_user_code_that_fails_always_ends_the_job_with_its_words(cluster: MiniCluster) -> None:
    environment = StreamEnvironment(Config(checkpoint_interval_ms=50), parallelism=2)
    environment.from_collection(range(10)).rebalance().map(lambda number: 1 // (number - 7)).sink(print)
    client = cluster.client()
    client.submit("divide", environment)
    shown = client.wait("divide")
    assert shown["state"] == "failed"
    assert "ZeroDivisionError" in shown["why"]


@pytest.mark.parametrize("shape", [(3, 2), (3, 1), (1, 1)])
def test_a_job_with_blocking_exchanges_runs_region_by_region(shape: tuple[int, int], tmp_path: Path) -> None:
    FOUND.clear()
    spilled = tmp_path / "spilled"
    with MiniCluster(tmp_path / "store", *shape) as cluster:
        client = cluster.client()
        client.submit("batch", collecting_words(batch_config(spilled)))
        assert client.wait("batch")["state"] == "finished"
        assert sorted(FOUND) == expected()
        until(lambda: files_in(spilled) == [])
        until(lambda: cluster.free_slots() == shape[0] * shape[1])
    assert cluster.bugs == []


def test_requests_that_make_no_sense_are_refused(cluster: MiniCluster, gate: str, tmp_path: Path) -> None:
    client = cluster.client()
    with pytest.raises(LocalUsageError, match="there is no job 'other'; the jobs are: none"):
        client.cancel("other")
    client.submit("squares", gated_job(gate, tmp_path / "out"))
    with pytest.raises(LocalUsageError, match="there is a job squares already"):
        client.submit("squares", gated_job(gate, tmp_path / "out"))
    client.cancel("squares")
    with pytest.raises(LocalUsageError, match="does not run"):
        client.savepoint("squares", "after")


def test_clients_that_have_gone_cost_nothing(cluster: MiniCluster) -> None:
    def ask() -> None:
        client = cluster.client()
        assert client.jobs() == []
        client.close()

    ask()
    before = threading.active_count()
    for _ in range(5):
        ask()
    until(lambda: threading.active_count() <= before)


def test_nobody_answers_where_nobody_leads(cluster: MiniCluster) -> None:
    client = cluster.client(timeout_s=0.2)
    cluster.crash(DISPATCHER)
    with pytest.raises(RemoteTransportError, match=r"list: .*is it up"):
        client.jobs()
