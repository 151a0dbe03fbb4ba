"""The messages between the processes of a run, and how they cross the pipes between them.

Three pipes join a TaskManager's process to the one that started it: requests come in, a `Command` of the job among
them; each is answered by one `Answer`; what the tasks have to say goes out in order: `Results`, `Committed`,
`TaskSaid`, and behind the last of them `Ended`. Answers have a pipe of their own, since results wait while a sink is
slow. An error takes it too.

    request    answer's value
    Deploy     where others connect to read, or None
    Start      None
    Look       the snapshot of this part of the job
    TakeSamples  takes samples of back pressure, and says what those before have found
    Settle     counts of the records here (`RecordCounts`), and the last snapshot
    TellTask   None
    Drop       None
    Stop       whether nothing of the attempts is at work any more
    Close      None; the process ends then
    a Command  None

After `Stop` comes another `Deploy`, of the next attempts; of a job that runs region by region several are there at one
time. What goes out has the number of its deployment with it: of those that were stopped nothing counts any more. That a
task has saved its state is said behind the results that went before: so a checkpoint counts only if the sinks have had
them.

What crosses is pickled: both ends are processes of one user, and no socket is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from refimpl.cluster.back_pressure import SampleTasks
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.restore_point import RestorePoint
from refimpl.drivers.transport.streams import Security
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.commands import Command
from refimpl.job.environment import StreamEnvironment
from refimpl.job.job_graph import Place
from refimpl.records.events import CheckpointBarrier
from refimpl.records.types import TypeSerializer
from refimpl.state.store import SnapshotStore
from refimpl.task.checkpoint_reports import Report
from refimpl.task.operators import Operator
from refimpl.trace import Trace

__all__ = [
    "TICKET_BYTES",
    "Answer",
    "Close",
    "Committed",
    "Deploy",
    "Drop",
    "Ended",
    "JobOrder",
    "Look",
    "Outgoing",
    "RegionOrder",
    "Request",
    "Results",
    "Saved",
    "Settle",
    "Start",
    "Stop",
    "TakeSamples",
    "TaskSaid",
    "TellTask",
    "Verdict",
    "pack",
    "unpack",
    "without_sinks",
]

TICKET_BYTES = 8
"""Before each request stands a number, which comes back before its answer; 0 before an error that is no answer."""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job for another process: without the functions of its sinks, whose numbers are there instead.

    `held` are the sinks that hold values back, with the types of their values.
    """

    environment: StreamEnvironment
    sinks: list[int] = field(default_factory=list)
    held: Mapping[int, TypeSerializer] = field(default_factory=dict)

    @staticmethod
    def of(environment: StreamEnvironment) -> JobOrder:
        """The job, to be sent."""
        job, sinks = without_sinks(environment)
        nodes = job.graph.nodes
        held = {number: node.held_sink.value_type for number, node in nodes.items() if node.held_sink is not None}
        for number in held:
            nodes[number] = replace(nodes[number], held_sink=None, make_operator=Operator)
        return JobOrder(job, sinks, held)


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the attempts of a deployment keep their states, and what they go on from."""

    store: SnapshotStore
    point: RestorePoint


@dataclass(frozen=True, slots=True)
class RegionOrder:
    """Which subtasks of a job are deployed, and the folder in which this TaskManager keeps blocking results."""

    places: frozenset[Place]
    folder: Path


@dataclass(frozen=True, slots=True)
class Deploy:
    """The first request, and again after `Stop`: become TaskManager `number` of the attempts of a generation.

    `deployment` tells them from all others; `attempts` has how often each subtask has begun before. Without a `region`
    they are all of the job.

    `make_trace` makes the trace of a TaskManager, by its number, in its own process. Without `saved` checkpoints keep
    no state.
    """

    job: JobOrder
    number: int
    num_task_managers: int
    run_id: bytes
    host: str
    security: Security | None
    make_trace: Callable[[int], Trace] | None = None
    generation: int = 0
    saved: Saved | None = None
    deployment: int = 0
    attempts: Mapping[Place, int] = field(default_factory=dict)
    region: RegionOrder | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Start the tasks of a deployment; `addresses` are where the TaskManagers listen, by number."""

    addresses: list[tuple[str, int] | None]
    deployment: int


@dataclass(frozen=True, slots=True)
class Look:
    """Show this part of the job at one moment."""


@dataclass(frozen=True, slots=True)
class TakeSamples:
    """Begin to take samples of tasks that are here, if `order` says so; the answer is what earlier ones have found.

    That is a list of the number of an order, the name of a task, and the ratio in which it was held back.
    """

    order: SampleTasks | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """After the last task of a deployment has ended, everywhere: check that nothing is left here."""

    deployment: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A checkpoint counts, or never will."""

    checkpoint_id: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class TellTask:
    """A word to a task of these attempts about a checkpoint; one that is not here any more does not hear it."""

    generation: int
    task: str
    what: CheckpointBarrier | Verdict


@dataclass(frozen=True, slots=True)
class Stop:
    """End the tasks of a deployment, or of all, and give back what they hold; the process stays for others."""

    deployment: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Nobody needs these blocking results any more."""

    results: tuple[ResultPartitionId, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """End the tasks that still run, and the process."""


Request = Deploy | Start | Look | TakeSamples | Settle | TellTask | Drop | Stop | Close | Command


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: its value, or the exception it raised."""

    value: Any = None
    error: SentError | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """Values for the sinks, in order: operator, subtask, and the value as `pack` makes it."""

    generation: int
    values: list[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class Committed:
    """The values of a transaction of a sink that holds values back, as `pack` makes them: their checkpoint counts."""

    generation: int
    node_id: int
    transaction: str
    values: bytes


@dataclass(frozen=True, slots=True)
class TaskSaid:
    """What a task has done of a checkpoint, or without `report` that it has ended well."""

    generation: int
    task: str
    report: Report | None


@dataclass(frozen=True, slots=True)
class Ended:
    """No task of these attempts runs any more, or one has failed."""

    generation: int
    error: SentError | None


Outgoing = Results | Committed | TaskSaid | Ended
"""What a TaskManager has to say unasked."""


def pack(value: object) -> bytes:
    """A value as it crosses a pipe.

    Raises:
        LocalUsageError: something in it belongs to this process, such as an open file.
    """
    import cloudpickle  # here, as in `sent_error`: where there are no processes, as in a browser, it is not

    try:
        return bytes(cloudpickle.dumps(value))
    except USER_CODE_RAISES as error:
        raise LocalUsageError(f"this cannot be sent to another process: {described(error)}") from error


def unpack(data: bytes) -> Any:
    """The value that `pack` was given, in the process it was sent to.

    Raises:
        LocalUsageError: it cannot be made again here, since a module is missing, say.
    """
    import cloudpickle

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
