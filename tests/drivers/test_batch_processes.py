"""A bounded job region by region on processes: what is killed, what reads again, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from refimpl.batch_options import BoundedDataKind, Compression
from refimpl.cluster import FixedDelayRestart
from refimpl.drivers import ProcessRun
from refimpl.errors import DiskBudgetError, LocalUsageError, RemoteTransportError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.state.store import MemoryStore
from refimpl.task.source import IterableReader
from tests.support.batch_jobs import NUM, batch_config, expected, files_in, words

ROOT = Path(__file__).resolve().parents[2]


def note(log: Path, what: str) -> None:
    """Say in a file that somebody has begun; any process."""
    with log.open("a") as file:
        file.write(f"{what}\n")


def begun(log: Path) -> Counter[str]:
    return Counter(log.read_text().split())


class Pairing:
    """Says when it begins; elsewhere than where `numbers-0` was, it ends its process once, or raises."""

    def __init__(self, log: Path, kill: bool) -> None:
        self._log = log
        self._kill = kill
        self._num_values = 0

    def __call__(self, number: int) -> tuple[str, int]:
        self._num_values += 1
        if self._num_values == 1:
            note(self._log, "pair")
        is_there = self._log.with_suffix(".pid").read_text() == str(os.getpid())
        if self._num_values == NUM // 6 and not is_there and not (once := self._log.with_suffix(".once")).exists():
            once.touch()
            if self._kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("it breaks")
        return f"digit {number % 10}", number


def job_of(tmp_path: Path, found: list[tuple[str, int]], sources: int, *, kill: bool) -> StreamEnvironment:
    """Numbers by `sources` → dealt out to two, of whom one breaks once → all to one sink."""
    log = tmp_path / "log"
    environment = StreamEnvironment(batch_config(tmp_path / "results"), sources)

    def numbers(subtask: int, of: int) -> Iterator[int]:
        note(log, f"numbers-{subtask}")
        if subtask == 0:
            log.with_suffix(".pid").write_text(str(os.getpid()))
        yield from range(subtask, NUM, of)

    source = environment.source(lambda subtask, of: IterableReader(numbers(subtask, of)), "numbers")
    paired = source.rebalance().map(Pairing(log, kill), "pair").set_parallelism(2)
    paired.rebalance().sink(found.append).set_parallelism(1)
    (tmp_path / "results").mkdir()
    return environment


@pytest.mark.parametrize(
    ("num_task_managers", "compression", "kind"),
    [
        (1, Compression.NONE, BoundedDataKind.FILE_MMAP),
        (2, Compression.LZ4, BoundedDataKind.FILE),
        (3, Compression.ZSTD, BoundedDataKind.MMAP),
    ],
)
def test_the_results_are_those_of_the_stream_and_no_file_is_left(
    num_task_managers: int, compression: Compression, kind: BoundedDataKind, tmp_path: Path
) -> None:
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path, compression=compression, bounded_data=kind), found)
    with ProcessRun(job, num_task_managers) as run:
        run.run()
        assert len(run.snapshot().task_managers) == num_task_managers
        ids = run.process_ids
    assert sorted(found) == expected()
    assert files_in(tmp_path) == []
    assert [each for each in ids if psutil.pid_exists(each)] == []


def test_a_killed_consumer_reads_again_without_its_producer(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    with ProcessRun(job_of(tmp_path, found, 1, kill=True), 2, restart=FixedDelayRestart(3, 1.0)) as run:
        run.run()
    assert begun(tmp_path / "log") == {"numbers-0": 1, "pair": 3}
    assert sorted(found) == expected()
    assert files_in(tmp_path / "results") == []


def test_with_a_process_goes_what_it_has_written_and_only_that_is_written_again(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    with ProcessRun(job_of(tmp_path, found, 2, kill=True), 2, restart=FixedDelayRestart(3, 1.0)) as run:
        run.run()
    numbers = {name: times for name, times in begun(tmp_path / "log").items() if name != "pair"}
    assert numbers == {"numbers-0": 1, "numbers-1": 2}
    assert sorted(found) == expected()
    assert files_in(tmp_path / "results") == []


def test_a_consumer_that_has_failed_reads_again_in_its_process(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    with ProcessRun(job_of(tmp_path, found, 2, kill=False), 2, restart=FixedDelayRestart(1, 1.0)) as run:
        before = run.process_ids
        run.run()
        assert run.process_ids == before
    assert begun(tmp_path / "log") == {"numbers-0": 1, "numbers-1": 1, "pair": 3}
    assert sorted(found) == expected()


@pytest.mark.parametrize(("kill", "error"), [(True, RemoteTransportError), (False, UserCodeError)])
def test_without_a_restart_the_first_failure_is_the_last_and_no_file_is_left(
    kill: bool, error: type[Exception], tmp_path: Path
) -> None:
    with (
        ProcessRun(job_of(tmp_path, [], 2, kill=kill), 2) as run,
        pytest.raises(error, match="SIGKILL" if kill else "it breaks"),
    ):
        run.run()
    assert files_in(tmp_path / "results") == []


def test_one_slot_is_enough_where_the_stream_takes_three(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    with ProcessRun(words(batch_config(tmp_path), found), 1, num_slots=1) as run:
        run.run()
        assert run.job_regions is not None
        assert run.job_regions.schedule.most_slots == 1
    assert sorted(found) == expected()


def test_a_disk_budget_that_is_too_small_ends_the_job_also_with_restarts(tmp_path: Path) -> None:
    job = words(batch_config(tmp_path, max_spill_bytes=200), [])
    with pytest.raises(DiskBudgetError, match=r"numbers-[01] → pair"):
        ProcessRun(job, restart=FixedDelayRestart(9, 0.0)).run()
    assert files_in(tmp_path) == []


def test_a_store_for_checkpoints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalUsageError, match="there are no checkpoints with them"):
        ProcessRun(words(batch_config(tmp_path), []), store=MemoryStore())


def test_a_run_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    run = ProcessRun(words(batch_config(tmp_path), []))
    with run.start():
        run.cancel()
    assert files_in(tmp_path) == []


def test_what_a_run_that_was_killed_has_left_goes_when_the_next_one_begins(tmp_path: Path) -> None:
    killed = """
import os, sys
from pathlib import Path
from refimpl.drivers import ProcessRun
from tests.support.batch_jobs import batch_config, words
run = ProcessRun(words(batch_config(Path(sys.argv[1])), []))
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], cwd=ROOT, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    left = files_in(tmp_path)
    assert left
    found: list[tuple[str, int]] = []
    with ProcessRun(words(batch_config(tmp_path), found)) as run:
        assert set(files_in(tmp_path)).isdisjoint(left)
        run.run()
    assert sorted(found) == expected()
    assert files_in(tmp_path) == []
