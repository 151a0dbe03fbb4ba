"""What every run offers while its job runs: the same commands by the same verbs, or the reason why not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, runtime_checkable

from refimpl.errors import LocalUsageError
from refimpl.job.commands import Command, Pause, Resume, SetTimeout, Slow, Swap, SwapFunction
from refimpl.job.snapshots import JobSnapshot

__all__ = ["Controls", "RunControl", "Stopwatch"]


@runtime_checkable
class RunControl(Protocol):
    """A run as it is seen from outside: what a view or an experiment needs of it."""

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""

    def snapshot(self) -> JobSnapshot:
        """The whole job at this moment."""

    def offers(self, kind: type[Command]) -> bool:
        """Whether `do` takes commands of that kind."""

    def do(self, command: Command) -> None:
        """Carry a command out.

        Raises:
            LocalUsageError: this driver does not offer it, and why; or the command's own reasons.
        """


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
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to stop."""
        return 0.0 if self._started_s is None else (self._stopped_s or time.monotonic()) - self._started_s

    @property
    def is_started(self) -> bool:
        return self._started_s is not None

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

    def check_started(self) -> None:
        """Refuse to wait for a run that has not begun.

        Raises:
            LocalUsageError: it has not.
        """
        if not self.is_started:
            raise LocalUsageError("this run has not been started; there is nothing to wait for")
