"""Records too long for memory in whole jobs: the right answer, an error with numbers, and never a file left behind.

A full disk is the operating system's own limit on the size of a file, set in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import SpillError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, SpillingAdaptiveSpanningRecordDeserializer

THRESHOLD = 1_000
LARGE = 50_000
ROOT = Path(__file__).parents[2]


class Watched(SpillingAdaptiveSpanningRecordDeserializer):
    """Says whether one of them has more than fits in memory of a record it is still gathering."""

    made: list[Watched] = []  # noqa: RUF012 - one list for all is the point

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.made.append(self)

    @classmethod
    def is_spilling(cls) -> bool:
        return any(len(part.get_unconsumed()) > THRESHOLD + 100 for part in cls.made)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    Watched.made.clear()
    yield
    Watched.made.clear()


def payload(number: int) -> bytes:
    """Every other one is too long for memory; no two are alike."""
    return bytes([number]) * (LARGE + number if number % 2 else 10)


def job(
    directory: Path, results: list[object], count: int = 6, function: Callable[[bytes], object] = bytes
) -> StreamEnvironment:
    config = Config(
        segment_size_bytes=512, num_buffers=64, spill_threshold_bytes=THRESHOLD, spill_directory=str(directory)
    )
    environment = StreamEnvironment(config).use(SpillingAdaptiveSpanningRecordDeserializer=Watched)
    source = environment.from_collection(map(payload, range(count)), type=BYTES)
    source.rebalance().map(function, type=BYTES).rebalance().sink(results.append)
    return environment


def run_until_spilling(simulation: Simulation) -> None:
    for _ in range(10_000):
        simulation.step()
        if Watched.is_spilling():
            return
    raise AssertionError("no record was spilled in 10000 steps")


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun])
def test_records_too_long_for_memory_arrive_whole_and_leave_no_file(
    tmp_path: Path, driver: type[Simulation | ThreadedRun]
) -> None:
    results: list[object] = []
    driver(job(tmp_path, results)).run()
    assert results == [payload(number) for number in range(6)]
    assert list(tmp_path.iterdir()) == []


def test_a_record_on_disk_has_no_name_there_from_its_first_byte_on(tmp_path: Path) -> None:
    num_open = psutil.Process().num_fds()
    with Simulation(job(tmp_path, [])) as simulation:
        run_until_spilling(simulation)
        assert psutil.Process().num_fds() > num_open
        assert list(tmp_path.iterdir()) == []
    assert psutil.Process().num_fds() == num_open


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun])
def test_a_job_that_fails_while_a_record_is_on_disk_leaves_no_file_and_no_buffer(
    tmp_path: Path, driver: type[Simulation | ThreadedRun]
) -> None:
    def fails(value: bytes) -> bytes:
        if len(value) > THRESHOLD:
            raise ValueError("too long for me")
        return value

    num_open = psutil.Process().num_fds()
    run = driver(job(tmp_path, [], function=fails))
    with pytest.raises(UserCodeError, match="map, subtask 0, raised ValueError: too long for me"):
        run.run()
    assert list(tmp_path.iterdir()) == []
    assert psutil.Process().num_fds() == num_open
    assert run.deployment.pool.num_free == 64


def test_a_simulation_interrupted_while_a_record_is_on_disk_leaves_no_file_and_no_buffer(tmp_path: Path) -> None:
    num_open = psutil.Process().num_fds()
    simulation = Simulation(job(tmp_path, []))

    def interrupt(_simulation: Simulation) -> None:
        if Watched.is_spilling():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulation.run(on_step=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert psutil.Process().num_fds() == num_open
    assert simulation.deployment.pool.num_free == 64


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun])
def test_a_directory_that_is_not_there_fails_the_job_by_name_and_gives_everything_back(
    tmp_path: Path, driver: type[Simulation | ThreadedRun]
) -> None:
    results: list[object] = []
    run = driver(job(tmp_path / "missing", results))
    with pytest.raises(SpillError, match="must be spilled to disk") as caught:
        run.run()
    error = caught.value
    assert (error.record_bytes, error.directory) == (1 + 4 + len(payload(1)), str(tmp_path / "missing"))
    assert results in ([], [payload(0)])
    assert run.deployment.pool.num_free == 64


# -- in a process of its own -----------------------------------------------------------------------


def child(directory: Path, body: str) -> list[str]:
    """Arguments of a Python process in which `job` and the drivers are at hand."""
    program = """
        import os, resource, sys
        from pathlib import Path
        from refimpl.drivers import Simulation, ThreadedRun
        from refimpl.errors import SpillError
        from tests.refimpl.test_spilling import Watched, job, run_until_spilling
        directory = Path(sys.argv[1])
    """
    return [sys.executable, "-c", textwrap.dedent(program) + textwrap.dedent(body), str(directory)]


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["Simulation", "ThreadedRun"])
def test_a_disk_that_fills_up_fails_the_job_with_the_size_of_the_record(tmp_path: Path, driver: str) -> None:
    """The record is longer than any file may become."""
    body = f"""
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        run = {driver}(job(directory, []))
        try:
            run.run()
        except SpillError as error:
            print(error.record_bytes, error.directory, run.deployment.pool.num_free)
            print(error)
    """
    done = subprocess.run(child(tmp_path, body), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    numbers, said = done.stdout.splitlines()
    assert numbers == f"{1 + 4 + LARGE + 1} {tmp_path} 64"
    assert "refused to take more: File too large; free some space or set spill_directory to a larger disk" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda signum: signum.name)
def test_a_process_stopped_while_a_record_is_on_disk_leaves_no_file(tmp_path: Path, signum: signal.Signals) -> None:
    body = """
        with Simulation(job(directory, [])) as simulation:
            run_until_spilling(simulation)
            print(Watched.is_spilling(), flush=True)
            sys.stdin.read()
    """
    command = child(tmp_path, body)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        os.kill(process.pid, signum)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []
