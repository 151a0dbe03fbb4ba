"""Samples of back pressure that other processes take: asked for without waiting, and found when somebody asks again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from refimpl.cluster.back_pressure import SampleTasks
from refimpl.drivers.pressure_sampling import Answer
from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.messages import TakeSamples, pack
from refimpl.job.snapshots import JobSnapshot
from refimpl.task.snapshot import Progress

__all__ = ["RemoteSamples"]


class RemoteSamples:
    """The process of one TaskManager, as who asks for samples sees it; `seen` is the job as it was seen last.

    One that is gone or does not answer has nothing to say, and nobody waits for it.
    """

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self._asked: Future[Any] | None = None
        self._standing: dict[str, bool] = {}

    def collect(self, answer: Answer) -> None:
        """Hand on what samples have found by now, and ask for what they find next."""
        if self._asked is not None and not self._asked.done():
            return
        if self._asked is not None and self._asked.exception() is None:
            for found in self._asked.result():
                answer(*found)
        self._asked = self._child.ask(pack(TakeSamples()))

    def look(self, seen: JobSnapshot) -> None:
        """Take over from a snapshot which tasks run there."""
        mine = [each for each in seen.task_managers if each.number == self._child.number]
        self._standing = {
            task.name: task.progress is not Progress.DONE and not each.is_lost for each in mine for task in each.tasks
        }

    def standing(self) -> Mapping[str, bool]:
        """Its tasks, and whether each ran when it was seen last."""
        return self._standing

    def sample(self, order: SampleTasks, answer: Answer) -> None:
        """Have it begin; what it finds comes with a later `collect`."""
        self._child.ask(pack(TakeSamples(order)))
