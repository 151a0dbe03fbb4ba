"""The checkpoints of a job as its JobMaster has them: what it tells them, and what comes of it.

Whoever keeps them asks a store, and that takes a while. So nothing is answered at once: the JobMaster takes the news
after each thing it has told, and whoever drives it says when there is some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import NotifyTask, RestoreFrom, TaskState, TriggerTask
from refimpl.task.checkpoint_reports import Report

__all__ = ["CheckpointNews", "JobCheckpoints", "LeadLost", "MustFail", "PassToTask", "Restored"]


@dataclass(frozen=True, slots=True)
class Restored:
    """It is known what the next attempts go on from."""

    restore: RestoreFrom


@dataclass(frozen=True, slots=True)
class PassToTask:
    """Send this to the TaskManager of an attempt; a message that is lost is covered by the next."""

    message: TriggerTask | NotifyTask


@dataclass(frozen=True, slots=True)
class MustFail:
    """The job is to fail; what it would meet again is not `is_recoverable`."""

    why: str
    is_recoverable: bool = True


@dataclass(frozen=True, slots=True)
class LeadLost:
    """Another leads the job by now, as the store says; the job is that one's."""

    why: str


CheckpointNews = Restored | PassToTask | MustFail | LeadLost


class JobCheckpoints(Protocol):
    """The checkpoints of one job under one leadership; times are the driver's, in ms.

    Flink:   CheckpointCoordinator (runtime.checkpoint), as the SchedulerBase (runtime.scheduler) has it, 1.11.4
    """

    @property
    def next_deadline(self) -> float | None: ...

    def on_timeout(self, now_ms: float) -> None: ...

    def recover(self) -> None:
        """Find out what the next attempts go on from; what is under way comes to its end before."""

    def start(self, executions: Sequence[ExecutionId], now_ms: float) -> None:
        """These attempts are on their way to their TaskManagers; others that were started before go on."""

    def stop(self, executions: Sequence[ExecutionId], now_ms: float) -> None:
        """These attempts are to end; no checkpoint that they have not acknowledged will be."""

    def task_is(self, execution: ExecutionId, state: TaskState, now_ms: float) -> None:
        """An attempt runs, or has finished."""

    def task_says(self, execution: ExecutionId, report: Report, now_ms: float) -> None:
        """What an attempt has done of a checkpoint."""

    def take_news(self) -> Sequence[CheckpointNews]:
        """What has come since it was asked last, in order."""
