"""One task of a barrier stage of Spark: a TaskManager, and the rows that come of it.

Spark starts all tasks of such a stage at the same time or none, and if one is lost all of them again. They
tell each other where they listen; from then on they speak with one another, and Spark only carries the rows
away. Spark drops the rows of a try before: so no result is counted twice. A stage that is tried again starts the
job from its beginning, or, where checkpoints are kept, from the newest, which has the results so far with it.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from refimpl.drivers.processes.messages import Saved, pack, unpack
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.processes.worker import Delivery
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.restore_point import RestorePoint
from refimpl.drivers.spark.completion import Coordinator, Participant, Vote
from refimpl.drivers.spark.fed_source import DealtBatches, FedReader, same_size
from refimpl.drivers.spark.job_master import TryRecovery, Where
from refimpl.drivers.spark.kept_results import KeptResults
from refimpl.drivers.spark.rows import COUNTS, ERROR, RESULT, TRACE, TaskRows, TraceSender, TraceTable
from refimpl.drivers.spark.try_checkpoints import TryCheckpoints, TrySummary
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.drivers.transport.streams import Security
from refimpl.errors import RemoteTransportError
from refimpl.invariants import check_end_here
from refimpl.job.environment import StreamEnvironment
from refimpl.laws.records import RecordCounts
from refimpl.state.layout import JobStore
from refimpl.task.source import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Order", "run_task_manager"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """The order to every task. `sinks` are operators of `job` whose values go into rows.

    `fed` is the source that reads the batches from Spark, and `make_reader` makes its reader of them.
    With `trace_table` there is a trace, and its rows go out as that makes tables of them. With `where` checkpoints are
    kept there.
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
    where: Where | None = None


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


def _feed(order: Order, number: int, input_: _Shared, *, is_kept: bool) -> None:
    """Let the source that Spark feeds read `input_` on this TaskManager."""
    if order.fed is None or order.make_reader is None:
        return
    make, node = order.make_reader, order.job.graph.nodes[order.fed]
    if not is_kept:
        node.make_reader = lambda _subtask, _parallelism: make(iter(input_))
        return
    executions = order.job.execution_graph(order.num_task_managers, order.run_id).vertices
    here = [each for each in executions if each.task_manager == number]
    dealt = DealtBatches(same_size(input_), [each.subtask for each in here if each.vertex.nodes[0].id == order.fed])
    node.make_reader = lambda subtask, _parallelism: FedReader(dealt, subtask, make)


class _TaskManager:
    """TaskManager `number` of an order, from its start to the common decision.

    With `point` its tasks go on from there and take checkpoints; who has the `recovery` decides about these.
    """

    def __init__(
        self,
        order: Order,
        number: int,
        host: str,
        rows: TaskRows,
        input_: _Shared,
        point: RestorePoint | None = None,
        recovery: TryRecovery | None = None,
    ) -> None:
        self.decision: Vote | None = None
        self._rows = rows
        self._voting = threading.Lock()
        self._has_voted = False
        self._checkpoints: TryCheckpoints | None = None
        self._first_epoch = 0 if order.where is None else order.where.epoch
        saved = None if order.where is None or point is None else Saved(order.where.store, point)
        results = None if saved is None else KeptResults(rows, JobStore(saved.store, saved.point.job))
        for sink in order.sinks:
            nodes = order.job.graph.nodes
            nodes[sink].make_operator = (
                partial(Delivery, rows, sink) if results is None else partial(results.make, sink)
            )
        _feed(order, number, input_, is_kept=saved is not None)
        graph = order.job.execution_graph(order.num_task_managers, order.run_id)
        self._completion = self._voice(order, number, host)
        self._sender = None if order.trace_table is None else TraceSender(order.trace_table, number, rows)
        try:
            trace = None if self._sender is None else self._sender.trace
            snapshots = None
            if saved is not None:
                here = [each for each in graph.vertices if each.task_manager == number]
                snapshots = saved.point.snapshots(saved.store, graph, here)
            given = (host, order.security, self._on_end, snapshots, self._on_news)
            self.threads = TaskManagerThreads(graph, trace, number, *given)
            if saved is not None and results is not None:
                clock = ProcessingClock(order.job.config.epoch_ms)
                self._checkpoints = TryCheckpoints(self.threads, saved, results, self._completion, recovery, clock)
        except BaseException:
            self._completion.close()
            self._end_trace()
            raise

    def _voice(self, order: Order, number: int, host: str) -> Coordinator | Participant:
        if number:
            return Participant(number, order.token, self._on_decision, order.security, self._hear_coordinator)
        return Coordinator(
            order.num_task_managers,
            order.token,
            self._on_decision,
            host,
            order.security,
            on_trouble=lambda error: self.threads.fail(error),
            on_words=self._hear_participant,
        )

    @property
    def places(self) -> dict[str, Any]:
        """Where the others find this one."""
        return {"tasks": self.threads.connections.address, "coordinator": self._completion.address}

    def start(self, places: list[dict[str, Any]]) -> None:
        """Start all tasks."""
        self._completion.start(tuple(places[0]["coordinator"]))
        several = len(places) > 1
        if self._checkpoints is not None:
            self._checkpoints.start()
        self.threads.start([tuple(place["tasks"]) for place in places] if several else [])

    def restored_rows(self) -> Iterator[pa.RecordBatch]:
        """Rows of what sinks had got before the checkpoint that the tasks go on from."""
        if self._checkpoints is not None:
            for node_id, values in self._checkpoints.results.restored():
                yield self._rows.row(RESULT, pack(values), node_id)

    def counts(self) -> RecordCounts:
        """The counts of this TaskManager, after DONE: nothing may be left here."""
        self.threads.settle()
        self._end_trace()
        check_end_here(self.threads.deployment)
        return RecordCounts.of(self.threads.deployment)

    @property
    def summary(self) -> TrySummary | None:
        """What came of the checkpoints, if they were decided here."""
        return None if self._checkpoints is None else self._checkpoints.summary(self._first_epoch)

    @property
    def trace_error(self) -> Exception | None:
        """Why the trace ended before the job, if it did."""
        return None if self._sender is None else self._sender.error

    def close(self) -> None:
        self.threads.close()
        if self._checkpoints is not None:
            self._checkpoints.close(has_ended_well=self.decision is Vote.DONE)
        self._completion.close()
        self._end_trace()

    def _end_trace(self) -> None:
        """Leave nothing of the trace behind the rows."""
        if self._sender is not None:
            self._rows.close()
            self._sender.close()

    def _hear_coordinator(self, words: bytes) -> None:
        if self._checkpoints is not None:
            self._checkpoints.hear_coordinator(words)

    def _hear_participant(self, _number: int, words: bytes) -> None:
        if self._checkpoints is not None:
            self._checkpoints.hear_participant(words)

    def _on_news(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.note_news()

    def _on_end(self) -> None:
        """Vote how it went here, once; where checkpoints are, behind all that tasks have said of them."""
        has_said_all = self._checkpoints is None or self._checkpoints.has_said_all(self._on_end)
        with self._voting:
            if self._has_voted or (self.threads.error is None and not has_said_all):
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


def run_task_manager(order: bytes, keeps: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of a barrier task: yields rows as in `ROW_SCHEMA`. Checkpoints are kept if it `keeps` any.

    Raises:
        RemoteTransportError: a TaskManager is gone; Spark is to try again.
    """
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    number = context.partitionId()
    hosts = [_host_of(info.address) for info in context.getTaskInfos()]
    rows, input_ = TaskRows(number), _Shared(batches)
    with ExitStack() as stack:
        maker = _Maker(order, hosts, number, rows, input_)
        if keeps:
            maker.find_restore_point(context.allGather)
        manager = maker.make()
        if manager is not None:
            stack.callback(manager.close)
        said = {"attempt": secrets.token_hex(8), "places": manager and manager.places}
        everybody = [json.loads(each) for each in context.allGather(json.dumps(said))]
        rows.attempt = everybody[0]["attempt"]
        if maker.error is not None:
            yield rows.row(ERROR, pack(SentError.of(maker.error)))
        places = [each["places"] for each in everybody]
        if manager is None or None in places:
            return
        manager.start(places)
        yield from manager.restored_rows()
        yield from rows
        yield from _last_rows(manager, rows)
    if manager.decision is Vote.DONE:
        for _ in input_:  # a Python that has not read all is not used again, and the next job waits for a new one
            pass


class _Maker:
    """Makes TaskManager `number`, step by step: an `error` in one is told when all of them know who is there.

    Raises:
        RemoteTransportError: the others are not there, and Spark is to begin with all.
    """

    def __init__(self, order: bytes, hosts: list[str], number: int, rows: TaskRows, input_: _Shared) -> None:
        self.error: BaseException | None = None
        self._given = (number, hosts[number], rows, input_)
        self._point: RestorePoint | None = None
        self._recovery: TryRecovery | None = None
        self._order: Order | None = self._carried_out(lambda: unpack(order))
        if self._order is None:
            return
        if len(hosts) != self._order.num_task_managers:
            # The stage had ended, and then rows of some tasks were lost: Spark starts these tasks alone. They cannot
            # work alone, and once one of them has failed it starts all.
            raise RemoteTransportError(f"the rows of {len(hosts)} TaskManagers were lost")

    def find_restore_point(self, all_gather: Callable[[str], list[str]]) -> None:
        """Let number 0 become the leader, and all hear what the try goes on from."""
        self._point = self._carried_out(self._found)
        said = all_gather("" if self._point is None else pack(self._point).hex())[0]
        self._point = unpack(bytes.fromhex(said)) if said else None

    def make(self) -> _TaskManager | None:
        """The TaskManager; none after an error, here or where the restore point was to be found."""
        order = self._order
        if self.error is not None or order is None or (order.where is not None and self._point is None):
            return None
        return self._carried_out(lambda: _TaskManager(order, *self._given, self._point, self._recovery))

    def _found(self) -> RestorePoint | None:
        """What number 0 finds; the others only see whether they could have."""
        order = self._order
        if order is None or order.where is None:
            return None
        order.where.check()
        if self._given[0] != 0:
            return None
        self._recovery = TryRecovery(order.job.execution_graph(order.num_task_managers, order.run_id), order.where)
        return self._recovery.restore_point()

    def _carried_out(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except RemoteTransportError:
            raise
        except BaseException as error:  # noqa: BLE001 - the others are told, then it is reported
            self.error = error
            return None


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
            yield rows.row(COUNTS, pack((rows.num(RESULT), rows.num(TRACE), counts, manager.summary)))
    manager.close()
    if error is not None and not isinstance(error, RemoteTransportError):
        yield rows.row(ERROR, pack(SentError.of(error)))


def _host_of(address: str) -> str:
    """The machine of a task, from `host` or `host:port`; Spark calls this one by its name."""
    host = address.rpartition(":")[0] or address
    return "127.0.0.1" if host == "localhost" else host.strip("[]")
