"""When the sources of a job send barriers: every so often, one checkpoint at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from refimpl.config import Config
from refimpl.records.events import CheckpointBarrier, alignment_of, alignment_timeout_of
from refimpl.task.source import SourceInput
from refimpl.task.task import Task

__all__ = ["CheckpointTrigger"]


class CheckpointTrigger:
    """Lets the sources among `tasks`, those of one TaskManager, send barrier 1, then 2, then 3.

    The next one waits until the last has passed every task here, or the news that it will not. A source sends it
    between two records, and none once it has ended. The barrier's timestamp is the driver's time, in ms.

    Flink:   CheckpointCoordinator.ScheduledTrigger (runtime.checkpoint), 1.11.4
    Differs: each TaskManager counts by itself, without a coordinator. Each of its sources gets every number, so number
             n is one cut of the whole job; who is ahead waits, since what it reads from the others does not align.
    """

    def __init__(self, tasks: Sequence[Task], config: Config) -> None:
        self._tasks = tasks
        self._sources = [task for task in tasks if isinstance(task.input, SourceInput)]
        self._interval_ms = config.checkpoint_interval_ms
        self._alignment, self._timeout_ms = alignment_of(config), alignment_timeout_of(config)
        self._due_ms = float(self._interval_ms)
        self.next_id = 1

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms from the start; `None` when no barrier will be sent any more."""
        if not self._interval_ms or all(source.is_done for source in self._sources):
            return None
        return self._due_ms

    @property
    def is_last_over(self) -> bool:
        """Whether the last barrier has passed every task here."""
        return all(task.is_done or task.checkpoints.last_id >= self.next_id - 1 for task in self._tasks)

    def on_timeout(self, now_ms: float) -> bool:
        """Send the next barrier if it is due; true if so, and then the sources are to be woken.

        While the last one is under way it is put off by one interval.
        """
        if (due_ms := self.next_deadline) is None or now_ms < due_ms:
            return False
        self._due_ms += self._interval_ms * (1 + (now_ms - due_ms) // self._interval_ms)
        if not self.is_last_over:
            return False
        alignment, timeout_ms = self._alignment, self._timeout_ms
        barrier = CheckpointBarrier(self.next_id, round(now_ms), alignment=alignment, alignment_timeout_ms=timeout_ms)
        self.next_id += 1
        for source in self._sources:
            source.submit(partial(source.checkpoints.pass_on, barrier))
        return True
