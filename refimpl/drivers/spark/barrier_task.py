"""One task of a barrier stage of Spark: a TaskManager, and the rows that come of it.

Spark starts all tasks of such a stage at the same time or none, and if one is lost all of them again. They
tell each other where they listen; from then on they speak with one another, and Spark only carries the rows
away. A stage that is tried again starts the job from its beginning, and Spark drops the rows of the try
before: so no result is counted twice.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from refimpl.drivers.processes.messages import pack, unpack
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.processes.worker import Delivery
from refimpl.drivers.spark.completion import Coordinator, Participant, Vote
from refimpl.drivers.spark.rows import COUNTS, ERROR, RESULT, TRACE, TaskRows, TraceSender, TraceTable
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.drivers.transport.streams import Security
from refimpl.errors import RemoteTransportError
from refimpl.invariants import check_end_here
from refimpl.job.environment import StreamEnvironment
from refimpl.laws.records import RecordCounts
from refimpl.task.source import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Order", "run_task_manager"]


@dataclass(frozen=True, slots=True)
class Order:
    """The order to every task. `sinks` are operators of `job` whose values go into rows.

    `fed` is the source that reads the batches from Spark, and `make_reader` makes its reader of them.
    With `trace_table` there is a trace, and its rows go out as that makes tables of them.
    """

    job: StreamEnvironment
    sinks: list[int]
    num_task_managers: int
    run_id: bytes
    token: bytes
    security: Security | None
    fed: int | None = None
    make_reader: Callable[[Iterator[pa.RecordBatch]], SourceReader] | None = None
    trace_table: TraceTable | None = None


class _Shared:
    """The batches from Spark, shared by all subtasks of the source that run here: each is read by one of them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            return next(self._batches)


class _TaskManager:
    """TaskManager `number` of an order, from its start to the common decision."""

    def __init__(self, order: Order, number: int, host: str, rows: TaskRows, input_: _Shared) -> None:
        self.decision: Vote | None = None
        self._rows = rows
        self._voting = threading.Lock()
        self._has_voted = False
        nodes = order.job.graph.nodes
        for sink in order.sinks:
            nodes[sink].make_operator = partial(Delivery, rows, sink)
        if order.fed is not None:
            assert order.make_reader is not None, "a source that is fed needs a reader"
            make_reader = order.make_reader
            nodes[order.fed].make_reader = lambda _subtask, _parallelism: make_reader(iter(input_))
        self._completion: Coordinator | Participant
        if number == 0:
            self._completion = Coordinator(
                order.num_task_managers,
                order.token,
                self._on_decision,
                host,
                order.security,
                on_trouble=lambda error: self.threads.fail(error),
            )
        else:
            self._completion = Participant(number, order.token, self._on_decision, order.security)
        self._sender = None if order.trace_table is None else TraceSender(order.trace_table, number, rows)
        try:
            trace = None if self._sender is None else self._sender.trace
            graph = order.job.execution_graph(order.num_task_managers, order.run_id)
            self.threads = TaskManagerThreads(graph, trace, number, host, order.security, self._on_end)
        except BaseException:
            self._completion.close()
            self._end_trace()
            raise

    @property
    def places(self) -> dict[str, Any]:
        """Where the others find this one."""
        return {"tasks": self.threads.connections.address, "coordinator": self._completion.address}

    def start(self, places: list[dict[str, Any]]) -> None:
        """Start all tasks."""
        self._completion.start(tuple(places[0]["coordinator"]))
        several = len(places) > 1
        self.threads.start([tuple(place["tasks"]) for place in places] if several else [])

    def counts(self) -> RecordCounts:
        """The counts of this TaskManager, after DONE: nothing may be left here."""
        self.threads.settle()
        self._end_trace()
        check_end_here(self.threads.deployment)
        return RecordCounts.of(self.threads.deployment)

    @property
    def trace_error(self) -> Exception | None:
        """Why the trace ended before the job, if it did."""
        return None if self._sender is None else self._sender.error

    def close(self) -> None:
        self.threads.close()
        self._completion.close()
        self._end_trace()

    def _end_trace(self) -> None:
        """Leave nothing of the trace behind the rows."""
        if self._sender is not None:
            self._rows.close()
            self._sender.close()

    def _on_end(self) -> None:
        """Vote how it went here, once."""
        with self._voting:
            if self._has_voted:
                return
            self._has_voted = True
        error = self.threads.error
        if error is None:
            self._completion.vote(Vote.DONE)
        else:
            self._completion.vote(Vote.LOST if isinstance(error, RemoteTransportError) else Vote.FAILED)

    def _on_decision(self, decision: Vote) -> None:
        self.decision = decision
        if decision is not Vote.DONE:
            self.threads.cancel()
        self._rows.close()


def run_task_manager(order: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of a barrier task: yields rows as in `ROW_SCHEMA`.

    Raises:
        RemoteTransportError: a TaskManager is gone; Spark is to try again.
    """
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    number = context.partitionId()
    hosts = [_host_of(info.address) for info in context.getTaskInfos()]
    rows, input_ = TaskRows(number), _Shared(batches)
    with ExitStack() as stack:
        manager: _TaskManager | None = None
        error: BaseException | None = None
        try:
            manager = _task_manager(unpack(order), number, hosts, rows, input_)
            stack.callback(manager.close)
        except RemoteTransportError:
            raise
        except BaseException as problem:  # noqa: BLE001 - the others are told, then it is reported
            error = problem
        said = {"attempt": secrets.token_hex(8), "places": manager and manager.places}
        everybody = [json.loads(each) for each in context.allGather(json.dumps(said))]
        rows.attempt = everybody[0]["attempt"]
        if error is not None:
            yield rows.row(ERROR, pack(SentError.of(error)))
        places = [each["places"] for each in everybody]
        if manager is None or None in places:
            return
        manager.start(places)
        yield from rows
        yield from _last_rows(manager, rows)
    if manager.decision is Vote.DONE:
        for _ in input_:  # a Python that has not read all is not used again, and the next job waits for a new one
            pass


def _task_manager(order: Order, number: int, hosts: list[str], rows: TaskRows, input_: _Shared) -> _TaskManager:
    if len(hosts) != order.num_task_managers:
        # The stage had ended, and then rows of some tasks were lost: Spark starts these tasks alone. They cannot
        # work alone, and once one of them has failed it starts all.
        raise RemoteTransportError(f"the rows of {len(hosts)} TaskManagers were lost")
    return _TaskManager(order, number, hosts[number], rows, input_)


def _last_rows(manager: _TaskManager, rows: TaskRows) -> Iterator[pa.RecordBatch]:
    """The rows after the decision; none if another TaskManager says what is wrong."""
    error: BaseException | None = manager.threads.error
    if manager.decision is Vote.LOST:
        raise RemoteTransportError(f"{error or 'another TaskManager is gone'}")
    if manager.decision is Vote.DONE:
        try:
            counts = manager.counts()
            error = manager.trace_error
        except AssertionError as broken:
            error = broken
        if error is None:
            yield from rows  # of the trace
            yield rows.row(COUNTS, pack((rows.num(RESULT), rows.num(TRACE), counts)))
    manager.close()
    if error is not None and not isinstance(error, RemoteTransportError):
        yield rows.row(ERROR, pack(SentError.of(error)))


def _host_of(address: str) -> str:
    """The machine of a task, from `host` or `host:port`; Spark calls this one by its name."""
    host = address.rpartition(":")[0] or address
    return "127.0.0.1" if host == "localhost" else host.strip("[]")
