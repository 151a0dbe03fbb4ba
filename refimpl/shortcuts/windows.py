"""Windows for batches: records are sorted by key and window, and each group is folded at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from refimpl.errors import USER_CODE_RAISES
from refimpl.producer.key_groups import java_identity
from refimpl.records.elements import MAX_WATERMARK, MIN_TIMESTAMP, Column, RecordBatch
from refimpl.shortcuts.forms import BatchForm
from refimpl.task.triggers import EventTimeTrigger
from refimpl.task.window_assigners import TimeWindow, TumblingWindows
from refimpl.task.window_operator import AggregateFunction, WindowOperator

__all__ = ["BatchAggregateFunction", "WindowForm"]

A = TypeVar("A")


class BatchAggregateFunction(AggregateFunction[A], Protocol):
    """An aggregate that can also fold many values at once, for many keys and windows."""

    def accumulate_groups(self, batch: RecordBatch, starts: Column) -> Sequence[A]:
        """An accumulator for each group; group i is the records from number `starts[i]` to the next group."""

    def merge(self, accumulator: A, other: A) -> A: ...


class WindowForm(BatchForm):
    """Folds a batch by key and window, if `key_of` is `Vectorized` and the aggregate a `BatchAggregateFunction`.

    Only tumbling windows that fire once: others take records one by one.

    Stands for `WindowOperator.process`.
    """

    operator: WindowOperator

    @property
    def _keys_of(self) -> Callable[[RecordBatch], Column] | None:
        return getattr(self.operator.key_of, "many", None)

    @property
    def takes_batches(self) -> bool:
        operator = self.operator
        is_plain = type(operator.windows) is TumblingWindows and type(operator.trigger) is EventTimeTrigger
        is_once = is_plain and not operator.allowed_lateness_ms
        return is_once and self._keys_of is not None and hasattr(operator.aggregate, "accumulate_groups")

    def process_batch(self, batch: RecordBatch) -> None:
        keys_of = self._keys_of
        if keys_of is None or not self.takes_batches or batch.timestamps is None:
            self.process_each(batch)
            return
        windows = self.operator.windows
        assert isinstance(windows, TumblingWindows), f"{windows} take no batches"
        size_ms, offset_ms = windows.size_ms, windows.offset_ms
        if _nears_the_ends(batch.timestamps, 2 * size_ms):
            self.process_each(batch)
            return
        window_starts = batch.timestamps - (batch.timestamps - offset_ms) % size_ms
        is_late = window_starts + size_ms - 1 <= self.operator.current_watermark
        if is_late.any():
            self.process_each(batch.take(is_late))
            batch, window_starts = batch.take(~is_late), window_starts[~is_late]
        if not len(batch):
            return
        try:
            self._add_groups(batch, keys_of(batch), window_starts, size_ms)
        except USER_CODE_RAISES as error:
            raise self.refused(batch, error) from error

    def _add_groups(self, batch: RecordBatch, keys: Column, window_starts: Column, size_ms: int) -> None:
        operator = self.operator
        aggregate = cast("BatchAggregateFunction[Any]", operator.aggregate)
        order, group_starts = _grouped(keys, window_starts)
        partial = aggregate.accumulate_groups(batch.take(order), group_starts)
        firsts = order[group_starts]
        as_they_came = np.argsort(firsts)  # so their timers fire in the same order
        firsts = firsts[as_they_came]
        groups = zip(keys[firsts].tolist(), window_starts[firsts].tolist(), as_they_came.tolist(), strict=True)
        accumulators, merge = operator.accumulators, aggregate.merge
        for key, start_ms, group in groups:
            window = TimeWindow(start_ms, start_ms + size_ms)
            known = accumulators.get(key, window)
            if known is None:
                operator.timers.register(window.max_timestamp, key, window)
                accumulators.put(key, window, partial[group])
            else:
                accumulators.put(key, window, merge(known, partial[group]))


def _nears_the_ends(timestamps: Column, margin_ms: int) -> bool:
    """Whether a bound of a window may be no long: numpy's sums would wrap around."""
    earliest, latest = int(timestamps.min()), int(timestamps.max())
    return earliest < MIN_TIMESTAMP + margin_ms or latest > MAX_WATERMARK.timestamp - margin_ms


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
    """Numbers or texts that are equal where the keys are the same key, see `java_identity`.

    Texts that differ in few places become numbers, which sort much faster.
    """
    if keys.dtype.kind == "f":
        numbers = keys.astype(np.float64)
        return np.where(np.isnan(numbers), np.int64(0x7FF8 << 48), numbers.view(np.int64))
    if keys.dtype.kind == "O":
        found: dict[Hashable, int] = {}
        return np.array([found.setdefault(java_identity(key), len(found)) for key in keys.tolist()])
    if keys.dtype.kind != "U":
        return keys
    characters = np.ascontiguousarray(keys).view(np.uint32).reshape(len(keys), -1)
    characters = characters[:, (characters != characters[0]).any(axis=0)]
    if characters.shape[1] > 8 or (characters > 0xFF).any():
        return keys
    padded = np.zeros((len(keys), 8), np.uint8)
    padded[:, : characters.shape[1]] = characters
    return padded.view(np.uint64).ravel()
