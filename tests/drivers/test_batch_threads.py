"""A bounded job region by region on drivers whose clock runs by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from refimpl.batch_options import Compression
from refimpl.cluster import FixedDelayRestart
from refimpl.drivers import AsyncRun, ThreadedRun
from refimpl.errors import DiskBudgetError, LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.state.store import MemoryStore
from tests.support.batch_jobs import NUM, batch_config, expected, files_in, words

ROOT = Path(__file__).resolve().parents[2]
EACH = pytest.mark.parametrize("driver", [ThreadedRun, AsyncRun])
Driver = type[ThreadedRun] | type[AsyncRun]


@EACH
@pytest.mark.parametrize("num_task_managers", [1, 2, 3])
@pytest.mark.parametrize("compression", Compression)
def test_the_results_are_those_of_the_stream_and_no_file_is_left(
    compression: Compression, num_task_managers: int, driver: Driver, tmp_path: Path
) -> None:
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path, compression=compression), found)
    driver(job, num_task_managers=num_task_managers).run()
    assert sorted(found) == expected()
    assert files_in(tmp_path) == []


def failing_once(job: StreamEnvironment, found: list[tuple[str, int]]) -> None:
    """Let the sink of `words` fail once, in the middle."""
    failures = iter([RuntimeError("it breaks")])

    def fail_once(value: tuple[str, int]) -> None:
        found.append(value)
        if len(found) == NUM // 2 and (error := next(failures, None)) is not None:
            raise error

    job.graph.nodes[2].make_operator = StreamEnvironment().from_collection([1]).sink(fail_once).node.make_operator


@EACH
@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_a_consumer_that_has_failed_reads_again_without_its_producer(
    num_task_managers: int, driver: Driver, tmp_path: Path
) -> None:
    num_read: Counter[int] = Counter()
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path), found, num_read)
    failing_once(job, found)
    driver(job, num_task_managers=num_task_managers, restart=FixedDelayRestart(1, 1.0)).run()
    assert num_read == {0: 1, 1: 1}
    assert sorted(found[NUM // 2 :]) == expected()
    assert files_in(tmp_path) == []


@EACH
def test_without_a_restart_the_first_failure_is_the_last_and_no_file_is_left(driver: Driver, tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    job = words(batch_config(tmp_path), found)
    failing_once(job, found)
    with pytest.raises(UserCodeError, match="it breaks"):
        driver(job).run()
    assert files_in(tmp_path) == []


@EACH
def test_one_slot_is_enough_where_the_stream_takes_three(driver: Driver, tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    driver(words(batch_config(tmp_path), found), num_slots=1).run()
    assert sorted(found) == expected()


@EACH
def test_a_disk_budget_that_is_too_small_ends_the_job_also_with_restarts(driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(DiskBudgetError, match=r"numbers-[01] → pair"):
        driver(words(batch_config(tmp_path, max_spill_bytes=200), []), restart=FixedDelayRestart(9, 0.0)).run()
    assert files_in(tmp_path) == []


@EACH
def test_a_store_for_checkpoints_is_refused(driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(LocalUsageError, match="there are no checkpoints with them"):
        driver(words(batch_config(tmp_path), []), store=MemoryStore())


def test_a_run_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    run = ThreadedRun(words(batch_config(tmp_path), []))
    with run.start():
        run.cancel()
    assert files_in(tmp_path) == []


def test_what_a_run_that_was_killed_has_left_goes_when_the_next_one_begins(tmp_path: Path) -> None:
    killed = """
import os, sys
from pathlib import Path
from refimpl.drivers import Simulation
from tests.support.batch_jobs import batch_config, words
run = Simulation(words(batch_config(Path(sys.argv[1])), []))
while not run.regions.num_result_bytes:
    run.step()
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], cwd=ROOT, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    left = files_in(tmp_path)
    assert len(left) > 1
    found: list[tuple[str, int]] = []
    with ThreadedRun(words(batch_config(tmp_path), found)) as run:
        assert set(files_in(tmp_path)).isdisjoint(left)
        run.run()
    assert sorted(found) == expected()
    assert files_in(tmp_path) == []
