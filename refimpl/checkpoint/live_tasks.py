"""What the coordinator knows of the attempts of a running job: who can be asked for a checkpoint, and who is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from refimpl.checkpoint.pending import Ack, AttemptId
from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state

__all__ = ["TASK_TRANSITIONS", "LiveTasks", "TaskEvent", "TaskPhase"]


class TaskPhase(Enum):
    """How far an attempt is, as far as checkpoints are concerned."""

    DEPLOYED = "deployed"
    RUNNING = "running"
    ENDED = "ended"  # its input is, and it waits for one more notification
    FINISHED = "finished"
    FAILED = "failed"


class TaskEvent(Enum):
    """What an attempt reports."""

    RUN = "run"
    END = "end"
    FINISH = "finish"
    FAIL = "fail"


_P, _E = TaskPhase, TaskEvent

TASK_TRANSITIONS: dict[TaskPhase, dict[TaskEvent, TaskPhase]] = {
    _P.DEPLOYED: {_E.RUN: _P.RUNNING, _E.END: _P.ENDED, _E.FINISH: _P.FINISHED, _E.FAIL: _P.FAILED},
    _P.RUNNING: {_E.RUN: _P.RUNNING, _E.END: _P.ENDED, _E.FINISH: _P.FINISHED, _E.FAIL: _P.FAILED},
    _P.ENDED: {_E.RUN: _P.ENDED, _E.END: _P.ENDED, _E.FINISH: _P.FINISHED, _E.FAIL: _P.FAILED},
    _P.FINISHED: {_E.RUN: _P.FINISHED, _E.END: _P.FINISHED, _E.FINISH: _P.FINISHED, _E.FAIL: _P.FINISHED},
    _P.FAILED: {_E.RUN: _P.FAILED, _E.END: _P.FAILED, _E.FINISH: _P.FAILED, _E.FAIL: _P.FAILED},
}


class LiveTasks:
    """The attempts of one run of a job. `final_acks` are the final snapshots of those that have ended.

    `final_id` is the checkpoint that is made of them, once it has begun. From `remind_at_ms` on those that have ended
    are to be told again that it is complete: no other checkpoint would cover a message that was lost.
    """

    def __init__(self, attempts: Sequence[AttemptId] = (), sources: Sequence[AttemptId] = ()) -> None:
        strangers = [each for each in sources if each not in attempts]
        if strangers:
            raise LocalUsageError(f"{strangers} are sources, and not among the attempts {list(attempts)}")
        self.sources = tuple(sources)
        self.final_acks: dict[AttemptId, Ack] = {}
        self.final_id: int | None = None
        self.remind_at_ms: float | None = None
        self._phases = dict.fromkeys(attempts, TaskPhase.DEPLOYED)

    @property
    def phases(self) -> Mapping[AttemptId, TaskPhase]:
        return self._phases

    @property
    def attempts(self) -> tuple[AttemptId, ...]:
        return tuple(self._phases)

    @property
    def can_be_cut(self) -> bool:
        """Whether all sources run and nobody is done: after the first has ended there is no checkpoint but FINAL.

        Flink:   CheckpointCoordinator.getTriggerExecutions, getAckTasks (runtime.checkpoint), 1.11.4
        """
        live = (TaskPhase.DEPLOYED, TaskPhase.RUNNING)
        return bool(self._phases) and (
            all(self._phases[source] is TaskPhase.RUNNING for source in self.sources)
            and all(phase in live for phase in self._phases.values())
        )

    @property
    def all_done(self) -> bool:
        """Whether every attempt has finished or ended."""
        done = (TaskPhase.ENDED, TaskPhase.FINISHED)
        return bool(self._phases) and all(phase in done for phase in self._phases.values())

    def in_phase(self, *phases: TaskPhase) -> tuple[AttemptId, ...]:
        """The attempts in one of these phases, in the order of the job."""
        return tuple(attempt for attempt, phase in self._phases.items() if phase in phases)

    def replace(self, attempts: Mapping[AttemptId, AttemptId]) -> list[Ack]:
        """Attempts that are no more have others in their places; the final snapshots of the old ones, for nobody now.

        Whoever has ended waits for another FINAL checkpoint: its snapshot stays.
        """
        self._phases = {
            attempts.get(each, each): TaskPhase.DEPLOYED if each in attempts else phase
            for each, phase in self._phases.items()
        }
        self.sources = tuple(attempts.get(each, each) for each in self.sources)
        self.final_id = self.remind_at_ms = None
        return [self.final_acks.pop(each) for each in attempts if each in self.final_acks]

    def report(self, attempt: AttemptId, event: TaskEvent) -> bool:
        """An attempt says how it is; true if that was news. What another run's attempt says is none."""
        if attempt not in self._phases:
            return False
        before = self._phases[attempt]
        self._phases[attempt] = next_state(TASK_TRANSITIONS, before, event, attempt)
        return self._phases[attempt] is not before
