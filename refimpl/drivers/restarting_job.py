"""What a driver does next for a job that may fail and go on: decided here, carried out there.

A driver whose clock runs by itself, and that keeps its tasks somewhere else than in the hands of whoever steps them,
asks `next_step` after each piece of news and when the time it was given has come. It carries the step out in its own
way, and says what came of it:

    DeployTasks   make the tasks of `recovery.graph`: `recovery.snapshots()` asks the store    deployed, or failed
    Wait          for news, or until a time; if all tasks have ended well meanwhile            ended, or failed
    StopTasks     end all tasks and give back what they held                                   stopped
    Over          nothing is left to do

Beside that it makes the calls of the store, one after the other: `next_call`, then `called`. Between two steps, calls
into this object never overlap; the calls of the store and the steps themselves are carried out outside of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.restart import GiveUp
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.store_calls import StoreWork
from refimpl.drivers.task_gateways import TaskGateway
from refimpl.errors import SluiceError

__all__ = ["DeployTasks", "Over", "RestartingJob", "Step", "StopTasks", "Wait"]


@dataclass(frozen=True, slots=True)
class DeployTasks:
    """Make the tasks of the next attempts; nothing of the store is under way meanwhile."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again at news, or at `until_ms`."""

    until_ms: float | None


@dataclass(frozen=True, slots=True)
class StopTasks:
    """End all tasks of the attempts that run. `error` is why; without one somebody has cancelled the job."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Over:
    """The job has ended for ever: well or cancelled, or with `error`."""

    error: BaseException | None


Step = DeployTasks | Wait | StopTasks | Over


class _Phase(Enum):
    """Where the job stands: its tasks are to be made, run, are to be stopped, or are no more.

    SETTLING: what is begun in the store is brought to its end, and then, if there is one, the time of the restart.
    """

    DEPLOYING = "deploying"
    RUNNING = "running"
    STOPPING = "stopping"
    SETTLING = "settling"
    OVER = "over"


class RestartingJob:
    """A job that goes on from its newest checkpoint after a failure, as often and when `recovery` says so.

    `is_cancelled` after `cancel`: then no failure counts any more. Times are the driver's, in ms.

    Flink:   JobMaster, DefaultScheduler (runtime.jobmaster, runtime.scheduler), 1.11.4
    """

    def __init__(self, recovery: JobRecovery) -> None:
        self.recovery = recovery
        self.is_cancelled = False
        self._phase = _Phase.DEPLOYING
        self._error: BaseException | None = None  # of the attempts that end, or of the job
        self._restart_ms: float | None = None
        self._has_ended_well = False
        self._call: StoreWork | None = None

    # -- steps -----------------------------------------------------------------------------------------

    def next_step(self, now_ms: float) -> Step:
        """What to do now; asking again without news gives the same."""
        if self._phase is _Phase.RUNNING:
            until_ms = self._coordinate(now_ms)
            if self._phase is _Phase.RUNNING:
                return Wait(until_ms)
        if self._phase is _Phase.SETTLING:
            return self._settle(now_ms)
        match self._phase:
            case _Phase.STOPPING:
                return StopTasks(self._error)
            case _Phase.DEPLOYING if not self.is_cancelled:
                return DeployTasks()
        self._phase = _Phase.OVER
        return Over(None if self.is_cancelled else self._error)

    def deployed(self, tasks: Mapping[str, TaskGateway], now_ms: float) -> None:
        """The tasks, by name, are there and about to run."""
        self._phase, self._error = _Phase.RUNNING, None
        self.recovery.start(tasks, now_ms)

    def failed(self, error: BaseException, now_ms: float) -> None:
        """The attempts that run have failed, or could not be deployed."""
        match self._phase:
            case _Phase.RUNNING:
                self._phase, self._error = _Phase.STOPPING, error
            case _Phase.DEPLOYING:
                self._error = error
                self._decide(now_ms)
            case _:
                """One failure is enough."""

    def ended(self, now_ms: float) -> None:
        """All tasks have ended well, and nothing is left of them; their last words are there to be taken."""
        if self._phase is not _Phase.RUNNING:
            return
        self.recovery.collect(now_ms)
        self.recovery.stop(now_ms)
        self._phase, self._has_ended_well = _Phase.SETTLING, True

    def stopped(self, now_ms: float) -> None:
        """All tasks are no more, and what they held has been given back."""
        if self._phase is _Phase.STOPPING:
            self._decide(now_ms)

    def cancel(self) -> None:
        """Let the job end where it is; what it has in the store stays there."""
        self.is_cancelled = True

    # -- the store -------------------------------------------------------------------------------------

    def next_call(self) -> StoreWork | None:
        """The call of the store to make now; none while one is being made."""
        work = self.recovery.checkpoints.work
        if self._call is not None or not work:
            return None
        self._call = work.popleft()
        return self._call

    def called(self, error: BaseException | None, now_ms: float) -> None:
        """The call has returned, or raised `error`; what is no `SluiceError` is not the store's word, and is fatal."""
        assert self._call is not None, "no call is being made"
        call, self._call = self._call, None
        if error is None or isinstance(error, SluiceError):
            call.then(error, now_ms)
        elif self._phase is _Phase.RUNNING:
            self.failed(error, now_ms)
        elif self._phase is _Phase.STOPPING or self._restart_ms is not None or self._error is None:
            self._error, self._restart_ms = error, None  # it would have gone on, but for this

    # -- what follows ----------------------------------------------------------------------------------

    def _coordinate(self, now_ms: float) -> float | None:
        """Take what tasks say to the coordinator, and its word to them; when it wants to be called again."""
        checkpoints = self.recovery.checkpoints
        self.recovery.collect(now_ms)
        if (deadline_ms := checkpoints.next_deadline) is not None and deadline_ms <= now_ms:
            checkpoints.on_timeout(now_ms)
        if self.is_cancelled:
            self._phase = _Phase.STOPPING
        elif self.recovery.failure is not None:
            self.failed(self.recovery.failure, now_ms)
        return checkpoints.next_deadline

    def _decide(self, now_ms: float) -> None:
        """No task is left: whether there will be others, and when."""
        self._phase = _Phase.SETTLING
        if self.is_cancelled or self._error is None:
            self.recovery.stop(now_ms)
            return
        decision = self.recovery.failed(self._error, now_ms)
        self._restart_ms = None if isinstance(decision, GiveUp) else decision.at_ms

    def _settle(self, now_ms: float) -> Step:
        """What is under way in the store decides from where the job goes on, so it comes to its end first."""
        if self._call is not None or self.recovery.checkpoints.work:
            return Wait(None)
        if self.is_cancelled or (self._restart_ms is None and not self._has_ended_well):
            self._phase = _Phase.OVER
        elif self._has_ended_well:
            self._has_ended_well = False
            self._error = self._error or self.recovery.failure
            if self._error is None:
                self.recovery.dispose()
        elif self._restart_ms is not None and now_ms < self._restart_ms:
            return Wait(self._restart_ms)
        else:
            self._phase, self._restart_ms = _Phase.DEPLOYING, None
        return self.next_step(now_ms)
