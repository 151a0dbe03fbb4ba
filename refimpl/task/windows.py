"""Records of the same key and the same stretch of event time, put together.

A window is complete when the watermark passes its end, however late that is by the clock. A record
whose window is complete already is late: it goes to the side output `late`, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from refimpl.errors import LocalUsageError
from refimpl.records.elements import Column, RecordBatch, StreamRecord, Watermark
from refimpl.records.vectorized import for_one
from refimpl.task.operators import Operator
from refimpl.task.outputs import OutputTag
from refimpl.task.state import EventTimeTimers, KeyedState

__all__ = ["LATE", "AggregateFunction", "BatchAggregateFunction", "TimeWindow", "TumblingWindows", "WindowOperator"]

LATE = OutputTag("late")
"""The side output of records that came after their window had fired."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Event times from `start_ms` up to but not including `end_ms`.

    Flink:   TimeWindow (streaming.api.windowing.windows), 1.11.4
    """

    start_ms: int
    end_ms: int

    @property
    def max_timestamp(self) -> int:
        """The last ms that belongs to the window: it fires when the watermark reaches this."""
        return self.end_ms - 1


class TumblingWindows:
    """Windows of `size_ms`, side by side, the first starting at `offset_ms`.

    Flink:   TumblingEventTimeWindows (streaming.api.windowing.assigners), 1.11.4
    """

    def __init__(self, size_ms: int, offset_ms: int = 0) -> None:
        if size_ms < 1 or not 0 <= offset_ms < size_ms:
            raise LocalUsageError(
                f"a window of {size_ms} ms, offset {offset_ms} ms: the size must be at least 1 "
                f"and the offset between 0 and the size"
            )
        self.size_ms = size_ms
        self.offset_ms = offset_ms

    def assign(self, timestamp: int) -> TimeWindow:
        """The window `timestamp` (ms) falls into."""
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return TimeWindow(start, start + self.size_ms)


class AggregateFunction(Protocol, Generic[A]):
    """Folds values into an accumulator of constant size.

    Flink:   AggregateFunction (api.common.functions), 1.11.4
    """

    def create_accumulator(self) -> A: ...

    def add(self, value: Any, accumulator: A) -> A: ...

    def get_result(self, accumulator: A) -> object: ...


class BatchAggregateFunction(AggregateFunction[A], Protocol):
    """One that can also fold many values at once, for many keys and windows."""

    def accumulate_groups(self, batch: RecordBatch, starts: Column) -> Sequence[A]:
        """An accumulator for each group; group i is the records from number `starts[i]` to the next group."""

    def merge(self, accumulator: A, other: A) -> A: ...


class WindowOperator(Operator):
    """Aggregates the values of each key and window; emits `(key, start_ms, end_ms, result)`.

    The result's event time is the last ms of its window. A batch is sorted by key and window, and each
    group folded at once, if `key_of` is vectorized and `aggregate` a `BatchAggregateFunction`.

    Flink:   WindowOperator with an EventTimeTrigger (streaming.runtime.operators.windowing), 1.11.4
    Differs: no allowed lateness, triggers or evictors; state is one accumulator.
    """

    def __init__(
        self,
        key_of: Callable[[object], Hashable],
        windows: TumblingWindows,
        aggregate: AggregateFunction[Any],
    ) -> None:
        self._key_of = for_one(key_of)
        self._windows = windows
        self._aggregate = aggregate
        self._keys_of: Callable[[RecordBatch], Column] | None = getattr(key_of, "many", None)
        can_group = hasattr(aggregate, "accumulate_groups")
        self._groups_of = cast("BatchAggregateFunction[Any]", aggregate) if can_group else None
        self._state: KeyedState[Any] = KeyedState()  # by key and start: windows of one size differ in nothing else
        self._timers = EventTimeTimers()
        self.num_late = 0

    @property
    def num_open_windows(self) -> int:
        """Accumulators held now."""
        return len(self._state)

    @property
    def takes_batches(self) -> bool:
        return self._keys_of is not None and self._groups_of is not None

    def process(self, record: StreamRecord) -> None:
        if record.timestamp is None:
            missing = LocalUsageError("a record without event time cannot be put into a window")
            raise self.fail(record.value, missing)
        window = self._windows.assign(record.timestamp)
        if window.max_timestamp <= self.current_watermark:
            self.num_late += 1
            self.output.collect_side(LATE, record)
            return
        try:
            key = self._key_of(record.value)
            accumulator = self._state.get(key, window.start_ms)
            if accumulator is None:
                accumulator = self._aggregate.create_accumulator()
                self._timers.register(window.max_timestamp, key, window)
            self._state.put(key, window.start_ms, self._aggregate.add(record.value, accumulator))
        except Exception as error:
            raise self.fail(record.value, error) from error

    def process_batch(self, batch: RecordBatch) -> None:
        if self._keys_of is None or self._groups_of is None or batch.timestamps is None:
            self.process_each(batch)
            return
        size_ms, offset_ms = self._windows.size_ms, self._windows.offset_ms
        window_starts = batch.timestamps - (batch.timestamps - offset_ms) % size_ms
        is_late = window_starts + size_ms - 1 <= self.current_watermark
        if is_late.any():
            self.process_each(batch.take(is_late))
            batch, window_starts = batch.take(~is_late), window_starts[~is_late]
        if not len(batch):
            return
        try:
            self._add_groups(batch, self._keys_of(batch), window_starts, self._groups_of)
        except Exception as error:
            raise self.fail(batch, error) from error

    def _add_groups(
        self, batch: RecordBatch, keys: Column, window_starts: Column, aggregate: BatchAggregateFunction[Any]
    ) -> None:
        order, group_starts = _grouped(keys, window_starts)
        partial = aggregate.accumulate_groups(batch.take(order), group_starts)
        firsts = order[group_starts]
        as_they_came = np.argsort(firsts)  # so their timers fire in the same order
        firsts = firsts[as_they_came]
        groups = zip(keys[firsts].tolist(), window_starts[firsts].tolist(), as_they_came.tolist(), strict=True)
        state, merge = self._state, aggregate.merge
        for key, start_ms, group in groups:
            known = state.get(key, start_ms)
            if known is None:
                window = TimeWindow(start_ms, start_ms + self._windows.size_ms)
                self._timers.register(window.max_timestamp, key, window)
                state.put(key, start_ms, partial[group])
            else:
                state.put(key, start_ms, merge(known, partial[group]))

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        for _, key, window in self._timers.advance(watermark.timestamp):
            assert isinstance(window, TimeWindow), f"a timer for {window!r} is no window's"
            accumulator = self._state.remove(key, window.start_ms)
            try:
                result = self._aggregate.get_result(accumulator)
            except Exception as error:
                raise self.fail((key, window), error) from error
            value = (key, window.start_ms, window.end_ms, result)
            self.output.collect(StreamRecord(value, window.max_timestamp))
        self.output.emit_watermark(watermark)


def _grouped(keys: Column, window_starts: Column) -> tuple[Column, Column]:
    """An order that puts records of one key and window side by side, and where each group starts in it."""
    _, key_numbers = np.unique(_sortable(keys), return_inverse=True)
    _, window_numbers = np.unique(window_starts, return_inverse=True)
    groups = key_numbers * (int(window_numbers.max()) + 1) + window_numbers
    groups = groups.astype(np.min_scalar_type(groups.max()))  # a stable sort of small numbers is a radix sort
    order = np.argsort(groups, kind="stable")
    is_first = np.concatenate([[True], groups[order][1:] != groups[order][:-1]])
    return order, np.flatnonzero(is_first)


def _sortable(keys: Column) -> Column:
    """Texts that differ in few places as numbers, which sort much faster; equal ones stay equal."""
    if keys.dtype.kind != "U":
        return keys
    characters = np.ascontiguousarray(keys).view(np.uint32).reshape(len(keys), -1)
    characters = characters[:, (characters != characters[0]).any(axis=0)]
    if characters.shape[1] > 8 or (characters > 0xFF).any():
        return keys
    padded = np.zeros((len(keys), 8), np.uint8)
    padded[:, : characters.shape[1]] = characters
    return padded.view(np.uint64).ravel()
