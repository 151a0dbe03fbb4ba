"""A task as those who coordinate its checkpoints reach it, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from refimpl.records.events import CheckpointBarrier
from refimpl.state.subtask_state import SubtaskState
from refimpl.task.checkpoint_reports import Report
from refimpl.task.task import Task

__all__ = ["LocalTask", "StateToPut", "TaskGateway"]


@dataclass(frozen=True, slots=True)
class StateToPut:
    """A task's state for a checkpoint, to be put into the store; then the task is told with `written`."""

    checkpoint_id: int
    state: SubtaskState


class TaskGateway(Protocol):
    """One attempt of a task: what it has to say, and what it is told. No call waits.

    Flink:   TaskManagerGateway (runtime.jobmanager.slots), CheckpointResponder (runtime.taskmanager), 1.11.4
    """

    @property
    def is_done(self) -> bool:
        """Whether it has ended well; all that it has said by then is there to be taken."""

    def take(self) -> Iterator[StateToPut | Report]:
        """What it has said since it was asked last, in order. One that puts its state itself says so when it is put."""

    def send_barrier(self, barrier: CheckpointBarrier) -> None:
        """Let a source send it."""

    def notify_complete(self, checkpoint_id: int) -> None:
        """A checkpoint counts."""

    def notify_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint will never count."""

    def written(self, checkpoint_id: int, trouble: str | None = None) -> None:
        """What it had for the store is durable, or it is not because of `trouble`."""


class LocalTask:
    """A task of this process. `wake` is called when it has been told something, on the thread that did.

    `on_news` is called when it has something to say, on the task's thread: it sets a flag, and no more.
    """

    def __init__(
        self, task: Task, wake: Callable[[], None] = lambda: None, on_news: Callable[[], None] | None = None
    ) -> None:
        self.task = task
        self._wake = wake
        if on_news is not None:
            task.checkpoints.on_news = on_news

    def __repr__(self) -> str:
        return f"LocalTask({self.task.name})"

    @property
    def is_done(self) -> bool:
        return self.task.is_done

    def take(self) -> Iterator[StateToPut | Report]:
        held = self.task.checkpoints
        while held.writes:
            yield StateToPut(*held.writes.popleft())
        while held.reports:
            yield held.reports.popleft()

    def send_barrier(self, barrier: CheckpointBarrier) -> None:
        self._submit(partial(self.task.checkpoints.pass_on, barrier))

    def notify_complete(self, checkpoint_id: int) -> None:
        self._submit(partial(self.task.checkpoints.notify_complete, checkpoint_id))

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._submit(partial(self.task.checkpoints.notify_aborted, checkpoint_id))

    def written(self, checkpoint_id: int, trouble: str | None = None) -> None:
        if trouble is None:
            self._submit(partial(self.task.checkpoints.written, checkpoint_id))
        else:
            self._submit(partial(self.task.checkpoints.write_failed, checkpoint_id, trouble))

    def _submit(self, action: Callable[[], None]) -> None:
        self.task.submit(action)
        self._wake()
