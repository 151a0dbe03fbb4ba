"""Commands to a running job, as values: a TaskManager in another process gets them pickled.

`Deployment.do` carries each of them out. A driver decides only when: under the monitor, in the event loop, between two
steps, or at the other end of a pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refimpl.errors import LocalUsageError

__all__ = ["Command", "Pause", "Resume", "SetTimeout", "Slow", "Swap", "SwapFunction"]

_LONGEST_REST_MS = 60_000  # a minute: more is a pause


@dataclass(frozen=True, slots=True)
class Pause:
    """Let every task stand still after the step it is in."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Let the tasks go on after a `Pause`."""


@dataclass(frozen=True, slots=True)
class Slow:
    """Let the task called `name`, or every task with an operator of that name, rest `rest_ms` after each buffer.

    0 is full speed again.

    Raises:
        LocalUsageError: `rest_ms` is no time from 0 to 60 000 ms; when it is carried out: the job has no such name.
    """

    name: str
    rest_ms: float

    def __post_init__(self) -> None:
        rest_ms: object = self.rest_ms
        if isinstance(rest_ms, bool) or not isinstance(rest_ms, int | float) or not 0 <= rest_ms <= _LONGEST_REST_MS:
            raise LocalUsageError(f"rest_ms={rest_ms!r} cannot work: from 0 to {_LONGEST_REST_MS}")


@dataclass(frozen=True, slots=True)
class Swap:
    """Put other parts into the running job, each task between two of its steps; `parts` by their names in `Parts`.

    Raises (when it is carried out):
        LocalUsageError: there is no such part, or one that cannot change in a running job.
    """

    parts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SwapFunction:
    """Put another function into the operator called `operator_name`, in every subtask.

    Raises:
        LocalUsageError: `function` is none; when it is carried out: no operator of that name holds a function.
    """

    operator_name: str
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise LocalUsageError(f"{self.function!r} is no function")


@dataclass(frozen=True, slots=True)
class SetTimeout:
    """Flush after `timeout_ms` from now on; -1 is never by time.

    Raises:
        LocalUsageError: this is no such time; when it is carried out: the job was built to flush after each record,
            which is decided when it is built.
    """

    timeout_ms: int

    def __post_init__(self) -> None:
        is_number = isinstance(self.timeout_ms, int) and not isinstance(self.timeout_ms, bool)
        if not is_number or self.timeout_ms < -1 or self.timeout_ms == 0:
            raise LocalUsageError(
                f"buffer_timeout_ms={self.timeout_ms!r}: a running job takes -1 or a whole number above 0"
            )


Command = Pause | Resume | Slow | Swap | SwapFunction | SetTimeout
