"""The messages between the processes of a run, and how they cross the pipes between them.

Three pipes join a TaskManager's process to the one that started it: requests come in, a `Command` of the job among
them; each is answered by one `Answer`; `Results` go out, and behind the last of them `Ended`. Answers have a pipe of
their own, since results wait while a sink is slow. An error takes it too.

    request    answer's value
    Deploy     where others connect to read, or None
    Start      None
    Look       the snapshot of this part of the job
    Settle     counts of the records here (`RecordCounts`), and the last snapshot
    Close      None; the process ends then
    a Command  None

What crosses is pickled: both ends are processes of one user, and no socket is near.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.transport.streams import Security
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described
from refimpl.job.commands import Command
from refimpl.job.environment import StreamEnvironment
from refimpl.task.operators import Operator
from refimpl.trace import Trace

__all__ = [
    "TICKET_BYTES",
    "Answer",
    "Close",
    "Deploy",
    "Ended",
    "Look",
    "Request",
    "Results",
    "Settle",
    "Start",
    "pack",
    "unpack",
    "without_sinks",
]

TICKET_BYTES = 8
"""Before each request stands a number, which comes back before its answer; 0 before an error that is no answer."""


@dataclass(frozen=True, slots=True)
class Deploy:
    """The first request: become TaskManager `number`. `sinks` are operators of `job` whose values we get.

    `make_trace` makes the trace of a TaskManager, by its number, in its own process.
    """

    job: StreamEnvironment
    sinks: list[int]
    number: int
    num_task_managers: int
    run_id: bytes
    host: str
    security: Security | None
    make_trace: Callable[[int], Trace] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Start all tasks; `addresses` are where the TaskManagers listen, by number."""

    addresses: list[tuple[str, int] | None]


@dataclass(frozen=True, slots=True)
class Look:
    """Show this part of the job at one moment."""


@dataclass(frozen=True, slots=True)
class Settle:
    """After the last task everywhere has ended: check that nothing is left here."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the tasks that still run, and the process."""


Request = Deploy | Start | Look | Settle | Close | Command


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: its value, or the exception it raised."""

    value: Any = None
    error: SentError | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """Values for the sinks, in order: operator, subtask, and the value as `pack` makes it."""

    values: list[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class Ended:
    """No task runs any more, or one has failed."""

    error: SentError | None


def pack(value: object) -> bytes:
    """A value as it crosses a pipe.

    Raises:
        LocalUsageError: something in it belongs to this process, such as an open file.
    """
    try:
        return bytes(cloudpickle.dumps(value))
    except USER_CODE_RAISES as error:
        raise LocalUsageError(f"this cannot be sent to another process: {described(error)}") from error


def unpack(data: bytes) -> Any:
    """The value that `pack` was given, in the process it was sent to.

    Raises:
        LocalUsageError: it cannot be made again here, since a module is missing, say.
    """
    try:
        return cloudpickle.loads(data)
    except USER_CODE_RAISES as error:
        raise LocalUsageError(f"what another process sent cannot be read here: {described(error)}") from error


def without_sinks(environment: StreamEnvironment) -> tuple[StreamEnvironment, list[int]]:
    """The job for another process without the functions of its sinks, and the numbers of these sinks."""
    job = StreamEnvironment(environment.config, environment.parallelism)
    job.parts = environment.parts
    job.graph.edges = environment.graph.edges
    nodes = environment.graph.nodes
    job.graph.nodes = {
        number: node if node.sink is None else replace(node, sink=None, make_operator=Operator)
        for number, node in nodes.items()
    }
    return job, [number for number, node in nodes.items() if node.sink is not None]
