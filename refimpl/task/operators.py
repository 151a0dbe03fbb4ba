"""The user's functions, each in the operator that calls it.

An operator gets one record at a time and sends what it makes of it to its output. It knows neither
the network nor its neighbours. An exception in the user's function becomes a `UserCodeError` that
names operator, subtask, record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refimpl.config import Config
from refimpl.errors import (
    USER_CODE_RAISES,
    LocalUsageError,
    RestoreRefusedError,
    SluiceError,
    failure_of,
    is_engines,
    shown,
)
from refimpl.records.elements import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    LatencyMarker,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.vectorized import for_one
from refimpl.state.subtask_state import OperatorStates, RestoredStates
from refimpl.task.latency import LatencyStats
from refimpl.task.outputs import Output
from refimpl.task.time_service import ProcessingTimeService

__all__ = [
    "FilterOperator",
    "FlatMapOperator",
    "FunctionOperator",
    "MapOperator",
    "Operator",
    "OperatorContext",
    "SinkOperator",
    "WatermarkOperator",
    "called_for_all",
    "collect_all",
    "event_time",
]


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """Where an operator runs: its name, which of `parallelism` subtasks, how many key groups.

    `time` is that of its task, which all operators of a chain share; `config` has the options of the job, `sources`
    the names of its source operators by their ids. By `uid` a checkpoint knows the operator; `attempt` is a number that
    no other attempt of the job has had, `None` where checkpoints keep no state.
    """

    name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    time: ProcessingTimeService = field(default_factory=ProcessingTimeService, compare=False, repr=False)
    config: Config = field(default_factory=Config, compare=False, repr=False)
    sources: Mapping[int, str] = field(default_factory=dict, compare=False, repr=False)
    uid: str = ""
    attempt: int | None = None


class Operator:
    """Passes everything on; real operators override what they treat otherwise.

    `setup` is called once before `open`; `open` before the first record, `finish` after the last.

    Flink:   AbstractStreamOperator, OneInputStreamOperator (streaming.api.operators), 1.11.4
    """

    context: OperatorContext
    output: Output
    states: OperatorStates | None = None
    """All it remembers, for checkpoints: written between two records, and brought back before `open`."""

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.context = context
        self.output = output
        self.current_watermark = MIN_TIMESTAMP
        self.latency = LatencyStats()

    def open(self) -> None: ...

    def process(self, record: StreamRecord) -> None:
        self.output.collect(record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        self.output.emit_watermark(watermark)

    def process_status(self, status: StreamStatus) -> None:
        self.output.emit_status(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Note how old it is and pass it on, beside user code."""
        self.latency.report(marker, self.context.time.now_ms)
        self.output.emit_latency_marker(marker)

    def finish(self) -> None: ...

    def close(self) -> None:
        """Give up what it holds outside the job. Once or more, after a failure too, also where it was never opened."""

    def restore(self, restored: RestoredStates) -> None:
        """Take over what a checkpoint has of this operator.

        Raises:
            RestoreRefusedError: it has what this operator cannot have.
        """
        if self.states is not None:
            self.states.restore(restored)
        elif restored.keyed or restored.timers or restored.elements:
            raise RestoreRefusedError(f"the checkpoint has state of {self.context.name!r}, which remembers nothing")

    def prepare_barrier(self, checkpoint_id: int) -> None:
        """A barrier is about to go out: this is the last chance to emit before it."""

    def notify_complete(self, checkpoint_id: int) -> None:
        """A checkpoint counts: nothing before it will come again. May be missing; the next one covers it."""

    def notify_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint will never count."""

    def fail(self, record: object, error: BaseException) -> SluiceError:
        """The error to raise when the user's function raised `error` on `record`."""
        if is_engines(error):
            return error
        return failure_of(self.context.name, self.context.subtask, record, error)


def called_for_all(operator: Operator, function: Callable[[Any], object], value: object) -> Iterator[object]:
    """The results of a flat_map function for a value; what it raises names the operator."""
    try:
        values = function(value)
        if isinstance(values, Iterable):
            return iter(values)
    except USER_CODE_RAISES as error:
        raise operator.fail(value, error) from error
    wrong = TypeError(f"a flat_map function returns an iterable, not {shown(values)}")
    raise operator.fail(value, wrong)


def collect_all(operator: Operator, values: Iterator[object], cause: object, timestamp: int | None) -> None:
    """Emit the values one by one; what the user's code raises between two of them names `cause`."""
    while True:
        try:
            value = next(values)
        except StopIteration:
            return
        except USER_CODE_RAISES as error:
            raise operator.fail(cause, error) from error
        operator.output.collect(StreamRecord(value, timestamp))


class FunctionOperator(Operator):
    """An operator around one function of the user's, which is a seam of its own.

    `user_function` is the function as it was given, `function` what is called with a value.

    Flink:   AbstractUdfStreamOperator (streaming.api.operators), 1.11.4
    """

    def __init__(self, function: Callable[[object], object]) -> None:
        self.swap_function(function)

    def swap_function(self, function: Callable[[object], object]) -> None:
        """Use another function from the next record on."""
        self.user_function = function
        self.function: Callable[[object], object] = for_one(function)


class MapOperator(FunctionOperator):
    """One value in, one value out.

    Flink:   StreamMap (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        try:
            result = self.function(record.value)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        self.output.collect(StreamRecord(result, record.timestamp))


class FilterOperator(FunctionOperator):
    """Passes on the records for which the function is true.

    Flink:   StreamFilter (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        try:
            is_kept = bool(self.function(record.value))
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        if is_kept:
            self.output.collect(record)


class FlatMapOperator(FunctionOperator):
    """One value in, any number out: the function returns an iterable.

    Flink:   StreamFlatMap (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        collect_all(self, called_for_all(self, self.function, record.value), record.value, record.timestamp)


class SinkOperator(FunctionOperator):
    """The end of a stream: calls the function with every value.

    Flink:   StreamSink (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        try:
            self.function(record.value)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp

    def process_status(self, status: StreamStatus) -> None: ...

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.latency.report(marker, self.context.time.now_ms)


class WatermarkOperator(Operator):
    """Gives each record its event time and says, now and then, how far event time has come.

    `timestamp_of` maps a value to ms; parts of one are rounded down. The watermark is the largest time seen, less
    `max_out_of_orderness_ms`, less one: a record exactly at the bound is not late. It goes out
    after each `every` records, if it has advanced. Watermarks from upstream are dropped, but for
    the last one, which ends event time.

    Flink:   TimestampsAndWatermarksOperator with BoundedOutOfOrdernessWatermarks, 1.11.4
    Differs: counts records; Flink asks every 200 ms of processing time, so its results depend on
             how fast it runs.
    """

    def __init__(self, timestamp_of: Callable[[object], int], max_out_of_orderness_ms: int, every: int = 64) -> None:
        if max_out_of_orderness_ms < 0 or every < 1:
            bound = f"out-of-orderness {max_out_of_orderness_ms} ms must be 0 or more"
            raise LocalUsageError(f"{bound}, every {every} records must be 1 or more")
        self.timestamp_of = timestamp_of
        self.num_until_watermark = every
        self._timestamp_of_one = for_one(timestamp_of)
        self._bound_ms = max_out_of_orderness_ms
        self._every = every
        self._max_timestamp = MIN_TIMESTAMP + max_out_of_orderness_ms + 1

    def process(self, record: StreamRecord) -> None:
        try:
            timestamp = event_time(self._timestamp_of_one(record.value))
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        record.timestamp = timestamp
        self.output.collect(record)
        self.advance(timestamp)

    def advance(self, timestamp: int, num_records: int = 1) -> None:
        """Note the largest time of records that have gone out; the watermark follows them if it is due.

        `num_records` are at most `num_until_watermark`.
        """
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self.num_until_watermark -= num_records
        if not self.num_until_watermark:
            self.num_until_watermark = self._every
            self._emit(self._max_timestamp - self._bound_ms - 1)

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark == MAX_WATERMARK:
            self._emit(watermark.timestamp)

    def _emit(self, timestamp: int) -> None:
        if timestamp > self.current_watermark:
            self.current_watermark = timestamp
            self.output.emit_watermark(Watermark(timestamp))


def event_time(found: Any) -> int:
    """What a user's function found as an event time, in ms; parts of one are rounded down.

    Raises:
        ValueError: it is no long.
    """
    timestamp = int(found)
    if not isinstance(found, str) and timestamp > found:  # `int` rounds towards 0
        timestamp -= 1
    if not MIN_TIMESTAMP <= timestamp <= MAX_WATERMARK.timestamp:
        raise ValueError(f"an event time is a long, in ms; {timestamp} is none")
    return timestamp
