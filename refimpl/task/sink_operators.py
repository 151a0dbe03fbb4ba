"""Sinks whose results leave the job exactly once: a two-phase commit, with what waits in the operator's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from refimpl.errors import LocalUsageError
from refimpl.records.elements import LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.records.types import LONG, STRING, TupleType, TypeSerializer
from refimpl.records.vectorized import for_one
from refimpl.state.keyed_state import KeyedStateBackend
from refimpl.state.state_types import ListType
from refimpl.state.subtask_state import OperatorStates
from refimpl.task.operators import Operator, OperatorContext
from refimpl.task.outputs import Output
from refimpl.task.two_phase_sink import SinkState, Transactions, TwoPhaseCommitSink

__all__ = ["ExactlyOnce", "HeldBack", "HeldSinkOperator", "TransactionalSink", "TwoPhaseSinkOperator"]


class TransactionalSink(Protocol):
    """Where the results of a job go, in transactions.

    Flink:   TwoPhaseCommitSinkFunction (streaming.api.functions.sink), FinalizeOnMaster (api.common.io), 1.11.4
    """

    def transactions(self, subtask: int, attempt: int) -> Transactions:
        """Those of one attempt of one subtask; no other attempt of the job has had this number."""

    def job_finished(self) -> None:
        """The whole job has FINISHED: what was not committed by now never will be."""


class ExactlyOnce(Operator):
    """The end of a stream: a `TwoPhaseCommitSink` that lives with checkpoints.

    Raises (setup):
        LocalUsageError: the run has no store.
    """

    states: OperatorStates
    sink: TwoPhaseCommitSink
    """From `setup` on."""

    def __init__(self, value_type: TypeSerializer) -> None:
        self.states = OperatorStates(KeyedStateBackend(), {})
        self._value_type = value_type

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        if context.attempt is None:
            raise LocalUsageError(
                f"{context.name} gives its results exactly once, so it needs checkpoints to say what counts; "
                f"give the run a store, for example ThreadedRun(job, store=...)"
            )
        pending = TupleType(LONG, STRING, ListType(self._value_type))
        self._opened = self.states.by_no_key.transactions("open", STRING)
        self._pending = self.states.by_no_key.transactions("pending", pending)
        self.sink = TwoPhaseCommitSink(self._transactions(context.subtask, context.attempt))

    def open(self) -> None:
        opened = [SinkState(name, ()) for name in self._opened.get()]
        pending = self._pending.get()
        for _, name, values in pending:
            self._take_over(name, values)
        self.sink.restore([*opened, SinkState(None, tuple((number, name) for number, name, _ in pending))])
        self._remember()

    def process(self, record: StreamRecord) -> None:
        self.sink.invoke(record.value)

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp

    def process_status(self, status: StreamStatus) -> None: ...

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.latency.report(marker, self.context.time.now_ms)

    def finish(self) -> None:
        self.sink.end_of_input()
        self._remember()

    def prepare_barrier(self, checkpoint_id: int) -> None:
        self.sink.snapshot(checkpoint_id)
        self._remember()

    def notify_complete(self, checkpoint_id: int) -> None:
        try:
            self.sink.complete(checkpoint_id)
        finally:
            self._remember()

    def notify_aborted(self, checkpoint_id: int) -> None:
        self.sink.aborted(checkpoint_id)

    def close(self) -> None:
        self.sink.close()

    def _transactions(self, subtask: int, attempt: int) -> Transactions:
        raise NotImplementedError(f"{type(self).__name__}._transactions")

    def _values_of(self, transaction: str) -> list[Any]:
        """What the state must have of a pending transaction, beside its name."""
        return []

    def _take_over(self, transaction: str, values: list[Any]) -> None:
        """Hear what the state has of a pending transaction."""

    def _remember(self) -> None:
        """Let the state say what a snapshot is to hold."""
        state = self.sink.state
        self._opened.update(() if state.open is None else (state.open,))
        self._pending.update((number, name, self._values_of(name)) for number, name in state.pending)


class TwoPhaseSinkOperator(ExactlyOnce):
    """Writes into the transactions of `sink`; the state has their names.

    Flink:   StreamSink of a TwoPhaseCommitSinkFunction (streaming.api.functions.sink), 1.11.4
    """

    def __init__(self, sink: TransactionalSink, value_type: TypeSerializer) -> None:
        super().__init__(value_type)
        self._target = sink

    def _transactions(self, subtask: int, attempt: int) -> Transactions:
        return self._target.transactions(subtask, attempt)


class HeldBack:
    """The function of a sink that holds values back until a checkpoint counts: one for all attempts of all subtasks.

    It remembers how many values of each transaction `function` has had, and goes on from there when it is given the
    transaction again.
    """

    def __init__(self, function: Callable[[Any], object], value_type: TypeSerializer) -> None:
        self.value_type = value_type
        self.function = for_one(function)
        self._num_given: dict[str, int] = {}

    def give(self, transaction: str, values: Sequence[Any]) -> None:
        """Call the function with the values of a transaction that it has not had."""
        for value in values[self._num_given.get(transaction, 0) :]:
            self.function(value)
            self._num_given[transaction] = self._num_given.get(transaction, 0) + 1


class _HeldValues:
    """Transactions that are lists of values; `give` gets them at a commit."""

    def __init__(self, give: Callable[[str, Sequence[Any]], None], prefix: str) -> None:
        self.values: dict[str, list[Any]] = {}
        self._give = give
        self._prefix = prefix
        self._num_begun = 0

    def begin(self) -> str:
        transaction = f"{self._prefix}-{self._num_begun}"
        self._num_begun += 1
        self.values[transaction] = []
        return transaction

    def write(self, transaction: str, value: object) -> None:
        self.values[transaction].append(value)

    def pre_commit(self, transaction: str) -> None: ...

    def commit(self, transaction: str) -> None:
        self._give(transaction, self.values[transaction])
        del self.values[transaction]

    def abort(self, transaction: str) -> None:
        self.values.pop(transaction, None)


class HeldSinkOperator(ExactlyOnce):
    """Hands the values of an epoch to `give`, with their transaction, once a checkpoint that has them counts.

    The same ones may be handed over again by another attempt.

    Flink:   GenericWriteAheadSink with a CheckpointCommitter (streaming.runtime.operators), 1.11.4
    Differs: the end of a bounded job gives the last epoch too.
    """

    def __init__(self, give: Callable[[str, Sequence[Any]], None], value_type: TypeSerializer) -> None:
        super().__init__(value_type)
        self._give = give

    def _transactions(self, subtask: int, attempt: int) -> Transactions:
        self._held = _HeldValues(self._give, f"{subtask}-{attempt}")
        return self._held

    def _values_of(self, transaction: str) -> list[Any]:
        return self._held.values[transaction]

    def _take_over(self, transaction: str, values: list[Any]) -> None:
        self._held.values[transaction] = values
