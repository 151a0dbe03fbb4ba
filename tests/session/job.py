"""A job for clusters: windows over lines of a file, into files, each result once. It ends when a gate is opened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.job import StreamEnvironment
from refimpl.job.data_stream import DataStream
from refimpl.records import StreamRecord
from refimpl.task import SlidingWindows
from tests.chaos.job import DISORDER_MS, SIZE_MS, SLIDE_MS, CountAndSum, LineReader, text, write_flights

__all__ = ["batch_lines", "committed", "windows_job"]

_PAUSE_S = 0.002


class GatedLines:
    """The lines of a `LineReader`, one after the other, each after a pause; the last comes when `gate` is there."""

    def __init__(self, lines: LineReader, num_lines: int, gate: Path, pause_s: float) -> None:
        self._lines = lines
        self._num_left = num_lines
        self._num_lines = num_lines
        self._gate = gate
        self._pause_s = pause_s

    def seek(self, position: int) -> None:
        self._lines.seek(position)
        self._num_left = self._num_lines - position

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if self._num_left == 1 and not self._gate.exists():
            time.sleep(0.02)  # in a process of the cluster: there is nothing else to wait for
            return []
        time.sleep(self._pause_s)
        self._num_left = max(0, self._num_left - 1)
        return self._lines.read(1)

    def close(self) -> None: ...


def _windows(environment: StreamEnvironment, source: Path, num_records: int, gate: Path, pause_s: float) -> DataStream:
    def reader(subtask: int, parallelism: int) -> GatedLines:
        num_lines = len(range(subtask, num_records, parallelism))
        return GatedLines(LineReader(source, subtask, parallelism), num_lines, gate, pause_s)

    lines = environment.source(reader, "flights").assign_timestamps(lambda value: value[2], DISORDER_MS, name="times")
    windows = lines.key_by(lambda value: value[0]).window(SlidingWindows(SIZE_MS, SLIDE_MS))
    return windows.aggregate(CountAndSum(), name="sliding").map(text("sliding"), name="text")


def windows_job(folder: Path, name: str, num_records: int, parallelism: int = 2) -> tuple[StreamEnvironment, Path]:
    """The job, whose results go to `folder / name`, and its gate: a file to be made."""
    source, gate = folder / f"{name}.csv", folder / f"{name}.gate"
    write_flights(source, num_records)
    environment = StreamEnvironment(Config(num_buffers=256, checkpoint_interval_ms=200), parallelism=parallelism)
    _windows(environment, source, num_records, gate, _PAUSE_S).sink_to(FileSink(folder / name))
    return environment, gate


def batch_lines(folder: Path, num_records: int, parallelism: int = 2) -> list[str]:
    """What the job gives without checkpoints, files and faults, sorted."""
    source, gate = folder / "batch.csv", folder / "batch.gate"
    write_flights(source, num_records)
    gate.touch()
    environment, lines = StreamEnvironment(parallelism=parallelism), list[str]()
    _windows(environment, source, num_records, gate, 0.0).sink(lines.append)
    Simulation(environment, check_every=0).run()
    return sorted(lines)


def committed(folder: Path, name: str) -> list[str]:
    """What counts of the results of a job, sorted."""
    out = folder / name
    files = [each for each in out.iterdir() if not each.name.startswith(".")] if out.is_dir() else []
    return sorted(line for each in files for line in each.read_text().splitlines())
