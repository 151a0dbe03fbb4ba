"""The user's functions, each in the operator that calls it.

An operator gets one record at a time, or a batch of them, and sends what it makes of it to its output. One
that knows single records only takes a batch apart. One that needs no more than value and time has a
`process_value`: at the head of a chain no record is made for it. It knows neither the network nor its
neighbours. An exception in the user's function becomes a `UserCodeError` that names operator, subtask, record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refimpl.errors import LocalUsageError, SluiceError, UserCodeError, speaks_for_itself
from refimpl.records.elements import (
    MIN_TIMESTAMP,
    Column,
    LatencyMarker,
    RecordBatch,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.vectorized import for_one
from refimpl.task.outputs import Output, process

__all__ = [
    "FilterOperator",
    "FlatMapOperator",
    "FunctionOperator",
    "MapOperator",
    "Operator",
    "OperatorContext",
    "SinkOperator",
    "WatermarkOperator",
]


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """Where an operator runs: its name, which of `parallelism` subtasks, how many key groups."""

    name: str
    subtask: int
    parallelism: int
    max_parallelism: int


class Operator:
    """Passes everything on; real operators override what they treat otherwise.

    `setup` is called once before `open`; `open` before the first record, `finish` after the last.

    Flink:   AbstractStreamOperator, OneInputStreamOperator (streaming.api.operators), 1.11.4
    """

    context: OperatorContext
    output: Output

    def setup(self, context: OperatorContext, output: Output) -> None:
        self.context = context
        self.output = output
        self.current_watermark = MIN_TIMESTAMP

    def open(self) -> None: ...

    def process(self, record: StreamRecord) -> None:
        self.output.collect(record)

    @property
    def takes_batches(self) -> bool:
        """Whether a batch stays one here. One that leaves records as they are does so with batches."""
        return type(self).process is Operator.process

    def process_batch(self, batch: RecordBatch) -> None:
        """Treat all records of a batch: at once, or where that is not known, one by one."""
        if self.takes_batches:
            self.output.collect_batch(batch)
        else:
            self.process_each(batch)

    def process_each(self, batch: RecordBatch) -> None:
        """Treat the records of a batch one by one."""
        for record in batch.records():
            process(self, record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        self.output.emit_watermark(watermark)

    def process_status(self, status: StreamStatus) -> None:
        self.output.emit_status(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.output.emit_latency_marker(marker)

    def finish(self) -> None: ...

    def fail(self, record: object, error: Exception) -> SluiceError:
        """The error to raise when the user's function raised `error` on `record`."""
        if isinstance(error, SluiceError) and speaks_for_itself(error):
            return error
        return UserCodeError(self.context.name, self.context.subtask, record, error)


class FunctionOperator(Operator):
    """An operator around one function of the user's; the function is a seam of its own.

    If the function is `Vectorized`, it is asked once for a batch.

    Flink:   AbstractUdfStreamOperator (streaming.api.operators), 1.11.4
    """

    def __init__(self, function: Callable[[object], object]) -> None:
        self.swap_function(function)

    def swap_function(self, function: Callable[[object], object]) -> None:
        """Use another function from the next record on."""
        self.function: Callable[[object], object] = for_one(function)
        self.many: Callable[[RecordBatch], Any] | None = getattr(function, "many", None)

    @property
    def takes_batches(self) -> bool:
        return self.many is not None

    def process_batch(self, batch: RecordBatch) -> None:
        if self.many is None:
            self.process_each(batch)
            return
        try:
            answer = self.answer(batch, self.many(batch))
        except Exception as error:
            raise self.fail(batch, error) from error
        if answer is not None and len(answer):
            self.output.collect_batch(answer)

    def answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        """What to send on when the function has answered for a batch; nothing at the end of a stream.

        Raises:
            ValueError: the answer does not fit the batch.
        """
        return None


class MapOperator(FunctionOperator):
    """One value in, one value out.

    Flink:   StreamMap (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        self.process_value(record.value, record.timestamp)

    def process_value(self, value: object, timestamp: int | None) -> None:
        """`process`, without a record around the value."""
        try:
            result = self.function(value)
        except Exception as error:
            raise self.fail(value, error) from error
        self.output.collect(StreamRecord(result, timestamp))

    def answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        columns = found if isinstance(found, tuple) else (found,)
        _check_lengths(batch, columns)
        return batch.with_columns(columns, is_tuple=isinstance(found, tuple))


class FilterOperator(FunctionOperator):
    """Passes on the records for which the function is true.

    Flink:   StreamFilter (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        try:
            is_kept = bool(self.function(record.value))
        except Exception as error:
            raise self.fail(record.value, error) from error
        if is_kept:
            self.output.collect(record)

    def answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        mask = np.asarray(found, bool)
        _check_lengths(batch, (mask,))
        return batch if mask.all() else batch.take(mask)


class FlatMapOperator(FunctionOperator):
    """One value in, any number out: the function returns an iterable; for a batch, a batch.

    Flink:   StreamFlatMap (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        values = self._call(record)
        while True:
            try:
                value = next(values)
            except StopIteration:
                return
            except Exception as error:
                raise self.fail(record.value, error) from error
            self.output.collect(StreamRecord(value, record.timestamp))

    def _call(self, record: StreamRecord) -> Iterator[object]:
        try:
            values = self.function(record.value)
            if isinstance(values, Iterable):
                return iter(values)
        except Exception as error:
            raise self.fail(record.value, error) from error
        wrong = TypeError(f"a flat_map function returns an iterable, not {values!r}")
        raise self.fail(record.value, wrong)

    def answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        if not isinstance(found, RecordBatch):
            raise ValueError(f"for a batch a flat_map function answers a RecordBatch, not {found!r}")
        return found


class SinkOperator(FunctionOperator):
    """The end of a stream: calls the function with every value.

    Flink:   StreamSink (streaming.api.operators), 1.11.4
    """

    def process(self, record: StreamRecord) -> None:
        self.process_value(record.value, record.timestamp)

    def process_value(self, value: object, timestamp: int | None) -> None:
        """`process`, without a record around the value."""
        try:
            self.function(value)
        except Exception as error:
            raise self.fail(value, error) from error

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp

    def process_status(self, status: StreamStatus) -> None: ...

    def process_latency_marker(self, marker: LatencyMarker) -> None: ...


class WatermarkOperator(Operator):
    """Gives each record its event time and says, now and then, how far event time has come.

    `timestamp_of` maps a value to ms. The watermark is the largest time seen, less
    `max_out_of_orderness_ms`, less one: a record exactly at the bound is not late. It goes out
    after each `every` records, if it has advanced. Watermarks from upstream are dropped, but for
    the last one, which ends event time.

    Flink:   TimestampsAndWatermarksOperator with BoundedOutOfOrdernessWatermarks, 1.11.4
    Differs: counts records; Flink asks every 200 ms of processing time, so its results depend on
             how fast it runs. After a batch the watermark goes out once.
    """

    def __init__(self, timestamp_of: Callable[[object], int], max_out_of_orderness_ms: int, every: int = 64) -> None:
        if max_out_of_orderness_ms < 0 or every < 1:
            bound = f"out-of-orderness {max_out_of_orderness_ms} ms must be 0 or more"
            raise LocalUsageError(f"{bound}, every {every} records must be 1 or more")
        self._timestamp_of, self._timestamps_of = for_one(timestamp_of), getattr(timestamp_of, "many", None)
        self._bound_ms = max_out_of_orderness_ms
        self._every = every
        self._num_since = 0
        self._max_timestamp = MIN_TIMESTAMP + max_out_of_orderness_ms + 1

    def process(self, record: StreamRecord) -> None:
        try:
            timestamp = int(self._timestamp_of(record.value))
        except Exception as error:
            raise self.fail(record.value, error) from error
        record.timestamp = timestamp
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self.output.collect(record)
        self._say_watermark(1)

    @property
    def takes_batches(self) -> bool:
        return self._timestamps_of is not None

    def process_batch(self, batch: RecordBatch) -> None:
        if self._timestamps_of is None:
            self.process_each(batch)
            return
        try:
            timed = batch.with_timestamps(np.asarray(self._timestamps_of(batch)).astype(np.int64, casting="same_kind"))
        except Exception as error:
            raise self.fail(batch, error) from error
        assert timed.timestamps is not None
        if len(timed):
            self._max_timestamp = max(self._max_timestamp, int(timed.timestamps.max()))
            self.output.collect_batch(timed)
            self._say_watermark(len(timed))

    def _say_watermark(self, num_records: int) -> None:
        self._num_since += num_records
        if self._num_since >= self._every:
            self._num_since = 0
            self._emit(self._max_timestamp - self._bound_ms - 1)

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp == 2**63 - 1:
            self._emit(watermark.timestamp)

    def _emit(self, timestamp: int) -> None:
        if timestamp > self.current_watermark:
            self.current_watermark = timestamp
            self.output.emit_watermark(Watermark(timestamp))


def _check_lengths(batch: RecordBatch, columns: Sequence[Column]) -> None:
    for column in columns:
        if not isinstance(column, np.ndarray) or len(column) != len(batch):
            found = f"{len(column)} values" if isinstance(column, np.ndarray) else repr(column)
            raise ValueError(f"for {batch} the function answered {found}; it must answer an array with one for each")
