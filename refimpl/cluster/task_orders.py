"""What a TaskManager wants done with its tasks: values, carried out in the order in which they are handed out."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import NotifyTask, SubmittedTask, TriggerTask

__all__ = ["DropResults", "StartTask", "StopTask", "TaskOrder", "WordForTask"]


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run this attempt, and say `task_is` of it; the last thing that is said is how it ended."""

    task: SubmittedTask


@dataclass(frozen=True, slots=True)
class StopTask:
    """Stop this attempt, then say how it ended; one that has ended by itself meanwhile is no mistake."""

    execution: ExecutionId
    why: str


@dataclass(frozen=True, slots=True)
class WordForTask:
    """Tell this attempt what its JobMaster says of checkpoints; one that has ended meanwhile hears nothing."""

    message: TriggerTask | NotifyTask


@dataclass(frozen=True, slots=True)
class DropResults:
    """Nobody needs what these attempts have written for who reads it later."""

    executions: tuple[ExecutionId, ...]


TaskOrder = StartTask | StopTask | WordForTask | DropResults
"""What whoever runs the tasks of a TaskManager is asked to do."""
