"""What `sluice demo` shows in a terminal: the queues while they move, and the figures at the end."""

from __future__ import annotations

import time
from typing import Any, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot

__all__ = ["DemoView"]

_FRAMES_PER_SECOND = 10
_STEPS_BETWEEN_LOOKS = 200
_SIGNS = {"made": "● moving", "idle": "○ idle", "backpressured": "▲ backpressured", "done": "✓ done"}


class Observed(Protocol):
    """A run, on whatever driver."""

    def snapshot(self) -> JobSnapshot: ...


class DemoView:
    """A live table on a terminal; without one, only the stages and the summary, as plain lines."""

    seconds_between_frames = 1 / _FRAMES_PER_SECOND

    def __init__(self, *, is_quiet: bool) -> None:
        # Machines read standard output: what moves goes to standard error then, if a person looks at it.
        self._console = Console(stderr=is_quiet)
        self._is_live = self._console.is_terminal
        self._is_quiet = is_quiet and not self._is_live
        self._progress = Progress(TextColumn("flights"), BarColumn(), MofNCompleteColumn(), console=self._console)
        self._bar = self._progress.add_task("flights", total=None)
        self._stage = ""
        self._live = Live(console=self._console, refresh_per_second=_FRAMES_PER_SECOND, transient=True)
        self._last_frame_s = 0.0

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._is_live:
            self._live.stop()

    def stage(self, text: str) -> None:
        """Say what happens now."""
        self._stage = text
        if self._is_live:
            self._live.update(Text(f"{text} …"))
        elif not self._is_quiet:
            self._console.print(f"{text} …")

    def show_now_and_then(self, run: Simulation, total: int) -> None:
        """Draw a running simulation, but not at every step."""
        if self._is_live and run.num_steps % _STEPS_BETWEEN_LOOKS == 0:
            now = time.monotonic()
            if now - self._last_frame_s > self.seconds_between_frames:
                self._last_frame_s = now
                self.show(run, total)

    def show(self, run: Observed, total: int) -> None:
        """Draw this moment of a run, if anybody looks."""
        if not self._is_live:
            return
        snapshot = run.snapshot()
        num_read = sum(task.num_records_in for task in snapshot.tasks if task.operators[0] == "flights")
        self._progress.update(self._bar, completed=num_read, total=total)
        self._live.update(Group(Text(f"{self._stage} …"), self._progress, _queues(snapshot), _tasks(snapshot)))

    def summary(self, figures: dict[str, Any], verdict: str) -> None:
        """Print the figures of the run and whether Spark agrees."""
        table = Table(show_header=False, box=None, padding=(0, 2))
        for name in (
            "records_in",
            "windows",
            "records_late",
            "seconds",
            "records_per_second",
            "spark_seconds",
            "driver",
            "task_managers",
            "parallelism",
            "tasks",
            "buffers",
            "segment_size",
            "steps",
            "law_checks",
        ):
            value = figures[name]
            if value or name == "records_late":
                table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
        self._console.print(table)
        if figures["equal_to_spark"]:
            said = f"✓ equal to Spark's own answer in all {figures['windows']:,} windows"
        else:
            said = f"✗ not equal to Spark's own answer: {verdict}"
        self._console.print(said, highlight=False)


def _queues(snapshot: JobSnapshot) -> Table:
    """Each channel's queue: one sign for each buffer, by how full it is."""
    table = Table("channel", "pool", "queue", "backlog", "MB sent", title=None)
    for partition in snapshot.partitions:
        pool = partition.pool
        for subpartition in partition.subpartitions:
            signs = "".join(
                " ▁▂▃▄▅▆▇█"[8 * entry.written_bytes // max(1, entry.capacity_bytes)] if entry.segment_id >= 0 else "E"
                for entry in subpartition.queue
            )
            table.add_row(
                f"{partition.name}-{subpartition.index}",
                f"{pool.num_in_use}/{pool.size}",
                signs,
                str(subpartition.backlog),
                f"{subpartition.num_bytes_total / 1e6:.1f}",
            )
    return table


def _tasks(snapshot: JobSnapshot) -> Table:
    """Each task: what it does, how much has gone in."""
    table = Table("task", "state", "records in", "records out")
    for task in snapshot.tasks:
        table.add_row(task.name, _SIGNS[task.progress.value], f"{task.num_records_in:,}", f"{task.num_records_out:,}")
    return table
