"""Batch jobs on clusters of real processes: results outlive their tasks, and are written anew when they are lost."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from refimpl.config import Config
from refimpl.drivers.batch_files import BatchFileOperator, remove_partial_files
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_options import NodeOptions
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from tests.support.batch_jobs import batch_config, files_in
from tests.support.polling import until

NUM_RECORDS = 400
NUM_SOURCES = 2
NUM_MIDDLE = 3


class NotedReader:
    """The numbers of one subtask; a file in `notes` says which process has read them to their end."""

    def __init__(self, notes: Path, subtask: int, parallelism: int) -> None:
        self._note = notes / f"{subtask}-of-{os.getpid()}-{secrets.token_hex(4)}"
        self._numbers = iter(range(subtask, NUM_RECORDS, parallelism))

    def seek(self, position: int) -> None: ...

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        found = [StreamRecord(number) for _, number in zip(range(max_records), self._numbers, strict=False)]
        if not found:
            self._note.touch()
        return found or None

    def close(self) -> None: ...


def squares(folder: Path, config: Config) -> StreamEnvironment:
    """Numbers → squares, which wait for a file `gate` → files in `out`; all exchanges are blocking."""

    def square_when_open(number: int) -> int:
        while not (folder / "gate").exists():
            (folder / "notes" / "waits").touch()
            time.sleep(0.01)  # in the cluster's process: there is nothing else to wait for
        return number * number

    environment = StreamEnvironment(config, parallelism=NUM_SOURCES)
    numbers = environment.source(lambda i, n: NotedReader(folder / "notes", i, n), "numbers")
    squared = numbers.shuffle().map(square_when_open).set_parallelism(NUM_MIDDLE)
    squared.rebalance().sink(print).set_parallelism(2)
    nodes = environment.graph.nodes
    out = folder / "out"
    nodes[max(nodes)] = replace(
        nodes[max(nodes)],
        sink=None,
        make_operator=partial(BatchFileOperator, out),
        on_job_finished=partial(remove_partial_files, out),
    )
    return environment


def results(out: Path) -> list[int]:
    return sorted(int(line) for each in out.iterdir() for line in each.read_text().split())


def readers(folder: Path) -> dict[int, list[int]]:
    """By subtask, in which process each attempt was that has read to the end."""
    found: dict[int, list[int]] = {}
    for note in (folder / "notes").glob("*-of-*"):
        subtask, _of, process, _attempt = note.name.split("-")
        found.setdefault(int(subtask), []).append(int(process))
    return found


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ClusterProcesses]:
    (tmp_path / "notes").mkdir()
    options = NodeOptions("", num_slots=1, heartbeat_interval_ms=500, heartbeat_timeout_ms=30_000)
    with ClusterProcesses(tmp_path / "cluster", 3, options) as made:
        made.wait_until_up()
        yield made
        ids = made.process_ids
    assert [each for each in ids.values() if psutil.pid_exists(each)] == []


@pytest.fixture
def client(processes: ClusterProcesses) -> Iterator[ClusterClient]:
    leaders = StoredLeaders(processes.folder.leases)
    made = ClusterClient(RpcService(processes.folder.secret), leaders)
    yield made
    made.close()
    leaders.close()


def test_a_batch_job_of_three_stages_leaves_nothing(
    processes: ClusterProcesses, client: ClusterClient, tmp_path: Path
) -> None:
    client.submit("squares", squares(tmp_path, batch_config(tmp_path / "spilled")))
    until(lambda: (tmp_path / "notes" / "waits").exists())
    assert {subtask: len(found) for subtask, found in readers(tmp_path).items()} == {0: 1, 1: 1}
    assert not (tmp_path / "out").exists()
    assert files_in(tmp_path / "spilled") != []
    (tmp_path / "gate").touch()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == [number * number for number in range(NUM_RECORDS)]
    assert {subtask: len(found) for subtask, found in readers(tmp_path).items()} == {0: 1, 1: 1}
    until(lambda: files_in(tmp_path / "spilled") == [])


def test_who_has_written_what_is_lost_begins_again(
    processes: ClusterProcesses, client: ClusterClient, tmp_path: Path
) -> None:
    client.submit("squares", squares(tmp_path, batch_config(tmp_path / "spilled")))
    until(lambda: (tmp_path / "notes" / "waits").exists())
    before = readers(tmp_path)
    (keeper,) = before[0]
    (name,) = [name for name, process in processes.process_ids.items() if process == keeper]
    processes.signal(name, signal.SIGKILL)
    until(lambda: len(readers(tmp_path)[0]) > 1)
    (tmp_path / "gate").touch()
    assert client.wait("squares")["state"] == "finished"
    assert results(tmp_path / "out") == [number * number for number in range(NUM_RECORDS)]
    after = readers(tmp_path)
    assert all(after[subtask] == found for subtask, found in before.items() if found != [keeper])
    until(lambda: files_in(tmp_path / "spilled") == [])
