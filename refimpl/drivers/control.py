"""The commands of a run, by the same verbs on every driver, or the reason why not; and runs in the background."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from refimpl.errors import LocalUsageError
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction
from refimpl.job.deployment import Deployment
from refimpl.job.snapshots import JobSnapshot
from refimpl.task.task import Task

__all__ = ["BackgroundRun", "Controls", "Deployed", "RunControl", "RunsHere", "Stopwatch", "pause_ms"]

_TICK_S = 0.2


@runtime_checkable
class RunControl(Protocol):
    """A run as views and experiments see it."""

    @property
    def is_done(self) -> bool: ...

    def snapshot(self) -> JobSnapshot: ...

    def offers(self, kind: type[Command]) -> bool: ...

    def do(self, command: Command) -> None: ...


class Controls:
    """The verbs of a run, each defined here once: a verb makes a command and gives it to `do`.

    A driver says in `_command` how a command reaches its TaskManagers, and in `refusals` which ones do not and why.
    """

    refusals: ClassVar[Mapping[type[Command], str]] = MappingProxyType({})

    def offers(self, kind: type[Command]) -> bool:
        """Whether `do` takes commands of that kind."""
        return kind not in self.refusals

    def do(self, command: Command) -> None:
        """Carry a command out, in every part of the job.

        Raises:
            LocalUsageError: this driver does not offer it, and why; or the command's own reasons.
        """
        if not self.offers(type(command)):
            why = self.refusals[type(command)]
            raise LocalUsageError(f"{type(self).__name__} does not offer {type(command).__name__}: {why}")
        self._command(command)

    def pause(self) -> None:
        """Let every task stand still after the step it is in."""
        self.do(Pause())

    def resume(self) -> None:
        """Let the tasks go on."""
        self.do(Resume())

    def slow(self, name: str, rest_ms: float) -> None:
        """Let a task, or every task with that operator, rest so long after each buffer; 0 is full speed again."""
        self.do(Slow(name, rest_ms))

    def swap(self, **parts: object) -> None:
        """Put other parts into the running job: `swap(SpanningRecordSerializer=Mine)`."""
        self.do(Swap(parts))

    def swap_function(self, operator_name: str, function: Callable[..., Any]) -> None:
        """Put another function into an operator of the running job."""
        self.do(SwapFunction(operator_name, function))

    def set_buffer_timeout(self, timeout_ms: int) -> None:
        """Flush after another time from now on, -1 never by time; not from or to 0."""
        self.do(SetTimeout(timeout_ms))

    def _command(self, command: Command) -> None:
        raise NotImplementedError


class Stopwatch:
    """The time of a run in seconds: 0 before `start`, and no more after `stop`."""

    def __init__(self) -> None:
        self._started_s: float | None = None
        self._stopped_s: float | None = None

    @property
    def is_started(self) -> bool:
        return self._started_s is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to stop."""
        return 0.0 if self._started_s is None else (self._stopped_s or time.monotonic()) - self._started_s

    def start(self) -> None:
        """Begin.

        Raises:
            LocalUsageError: it has begun before, so this run has been started before.
        """
        if self.is_started:
            raise LocalUsageError("this run has been started before; make a new one")
        self._started_s = time.monotonic()

    def stop(self) -> None:
        """End; a second call changes nothing."""
        self._stopped_s = self._stopped_s or time.monotonic()


def pause_ms(task: Task) -> float:
    """How long a driver that has a clock waits after a step of `task`: so slow it is, or its input has nothing."""
    return max(task.rest_ms, task.input.pause_ms) if task.is_work else 0.0


class Deployed(Protocol):
    """The attempts of a job, where they can be looked at."""

    @property
    def deployments(self) -> list[Deployment]:
        """The part of the job that each TaskManager has."""


class RunsHere:
    """A run whose TaskManagers are in this process."""

    @property
    def deployments(self) -> list[Deployment]:
        """The part of the job that each TaskManager has; after a restart there are others."""
        return self._newest.deployments

    @property
    def deployment(self) -> Deployment:
        """The part of the job that TaskManager 0 has; with one TaskManager the whole job."""
        return self.deployments[0]

    @property
    def _newest(self) -> Deployed:
        """The newest attempts."""
        raise NotImplementedError


class BackgroundRun(Controls):
    """A run that goes on by itself, on other threads or processes, between `start` and its end.

    Leaving a `with` block cancels the job. `_changed` is notified whenever it may be over.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stopwatch = Stopwatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.cancel()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to end."""
        return self._stopwatch.elapsed_s

    def start(self) -> Self:
        """Start the job; returns at once."""
        raise NotImplementedError

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        raise NotImplementedError

    def run(self) -> Self:
        """Start and wait for the end."""
        self.start().join()
        return self

    def cancel(self) -> None:
        """End the job. Does nothing after the end."""
        raise NotImplementedError

    def _wait_until(self, is_over: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until it is over; false if `timeout_s` passed first. A wait that is interrupted cancels the run.

        Raises:
            LocalUsageError: the run has not been started.
        """
        if not self._stopwatch.is_started:
            raise LocalUsageError("this run has not been started; there is nothing to wait for")
        give_up_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        try:
            with self._changed:
                while not is_over():
                    if (left_s := give_up_s - time.monotonic()) <= 0:
                        return False
                    # A wait without end cannot be interrupted by Ctrl-C on every platform.
                    self._changed.wait(min(left_s, _TICK_S))
        except BaseException:
            self.cancel()
            raise
        return True
