"""The book's operators for batches, and for values that no record is made for.

The user's function is asked once for a batch if it is `Vectorized`. If it raises, the records are treated one by one:
so the error names the record, as it does without shortcuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refimpl.consumer.two_inputs import FIRST, SECOND
from refimpl.errors import USER_CODE_RAISES, shown
from refimpl.records.elements import Column, RecordBatch, StreamRecord
from refimpl.shortcuts.forms import BatchForm, BatchOutput
from refimpl.shortcuts.windows import WindowForm
from refimpl.task.co_operators import CoMapOperator, TwoInputOperator
from refimpl.task.operators import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    SinkOperator,
    WatermarkOperator,
)
from refimpl.task.sink_operators import ExactlyOnce
from refimpl.task.watermarks import TimestampsAndWatermarksOperator
from refimpl.task.window_operator import WindowOperator

__all__ = ["Value", "batch_form", "co_value_forms", "value_form"]

Value = Callable[[object, int | None], None]
"""Treats a value with its time."""

_FEW = 8  # as `input.MIN_RECORDS_AT_ONCE`


class _Passing(BatchForm):
    """Passes batches on as they are."""

    @property
    def takes_batches(self) -> bool:
        return True

    def process_batch(self, batch: RecordBatch) -> None:
        self.output.collect_batch(batch)


class _OfUser(BatchForm):
    """Calls the operator's own `process_batch`."""

    @property
    def takes_batches(self) -> bool:
        return bool(getattr(self.operator, "takes_batches", True))

    def process_batch(self, batch: RecordBatch) -> None:
        of_user: Any = self.operator
        try:
            of_user.process_batch(batch)
        except USER_CODE_RAISES as error:
            raise self.operator.fail(batch, error) from error


class _Calling(BatchForm):
    """Asks the user's function once for all, if it is `Vectorized` now."""

    @property
    def _function(self) -> Callable[..., object]:
        assert isinstance(self.operator, FunctionOperator), f"{self.operator} calls no function"
        return self.operator.user_function

    @property
    def _many(self) -> Callable[[RecordBatch], Any] | None:
        return getattr(self._function, "many", None)

    @property
    def takes_batches(self) -> bool:
        return self._many is not None

    def process_batch(self, batch: RecordBatch) -> None:
        if (many := self._many) is None:
            self.process_each(batch)
            return
        try:
            answer = self._answer(batch, many(batch))
        except USER_CODE_RAISES as error:
            raise self.refused(batch, error) from error
        self._send_on(batch, answer)

    def _send_on(self, batch: RecordBatch, answer: RecordBatch | None) -> None:
        if answer is not None and len(answer):
            self.output.collect_batch(answer)

    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        """What to send on when the function has answered for a batch; nothing at the end of a stream.

        Raises:
            ValueError: the answer does not fit the batch.
        """
        return None


class _Mapping(_Calling):
    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        columns = found if isinstance(found, tuple) else (found,)
        _check_lengths(batch, columns)
        return batch.with_columns(columns, is_tuple=isinstance(found, tuple))


class _Filtering(_Calling):
    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        mask = np.asarray(np.ma.filled(found, False), bool)  # a missing value is no `True`
        _check_lengths(batch, (mask,))
        return batch if mask.all() else batch.take(mask)


class _FlatMapping(_Calling):
    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        if not isinstance(found, RecordBatch):
            raise ValueError(f"for a batch a flat_map function answers a RecordBatch, not {shown(found)}")
        return found


class _Timing(_Calling):
    """Gives a batch its times, and cuts it where a watermark is due."""

    operator: WatermarkOperator

    @property
    def _function(self) -> Callable[..., object]:
        return self.operator.timestamp_of

    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        times = _times_of(found)
        return None if times is None else batch.with_timestamps(times)

    def _send_on(self, batch: RecordBatch, answer: RecordBatch | None) -> None:
        if answer is None or answer.timestamps is None:
            self.process_each(batch)
            return
        start, operator = 0, self.operator
        while start < len(answer):
            end = min(len(answer), start + operator.num_until_watermark)
            piece = answer if end - start == len(answer) else answer.take(slice(start, end))
            if end - start < _FEW:
                self.process_each(piece)
            else:
                self.output.collect_batch(piece)
                operator.advance(int(answer.timestamps[start:end].max()), end - start)
            start = end


class _TimingPeriodically(_Calling):
    """Gives a batch its times, if the generator needs to know the latest of them only."""

    operator: TimestampsAndWatermarksOperator

    @property
    def _function(self) -> Callable[..., object]:
        return self.operator.timestamp_of or _keep

    @property
    def takes_batches(self) -> bool:
        return self._many is not None and self.operator.takes_latest

    def _answer(self, batch: RecordBatch, found: Any) -> RecordBatch | None:
        times = _times_of(found)
        return None if times is None else batch.with_timestamps(times)

    def _send_on(self, batch: RecordBatch, answer: RecordBatch | None) -> None:
        if answer is None or answer.timestamps is None or not self.takes_batches:
            self.process_each(batch)
        elif len(answer):
            self.output.collect_batch(answer)
            self.operator.note_latest(int(answer.timestamps.max()))


def _keep(value: object) -> object:
    """Stands where there is no function: records keep their times, one by one."""
    return value


def _map_value(operator: Operator) -> Value:
    assert isinstance(operator, MapOperator), f"{operator} does not map"
    collect = operator.output.collect

    def process_value(value: object, timestamp: int | None) -> None:
        try:
            result = operator.function(value)
        except USER_CODE_RAISES as error:
            raise operator.fail(value, error) from error
        collect(StreamRecord(result, timestamp))

    return process_value


def _sink_value(operator: Operator) -> Value:
    assert isinstance(operator, SinkOperator), f"{operator} is no sink"

    def process_value(value: object, timestamp: int | None) -> None:
        try:
            operator.function(value)
        except USER_CODE_RAISES as error:
            raise operator.fail(value, error) from error

    return process_value


def _exactly_once_value(operator: Operator) -> Value:
    assert isinstance(operator, ExactlyOnce), f"{operator} is no sink of transactions"

    def process_value(value: object, timestamp: int | None) -> None:
        operator.sink.invoke(value)

    return process_value


def _co_map_value(operator: TwoInputOperator, side: int) -> Value:
    assert isinstance(operator, CoMapOperator), f"{operator} does not map"
    function = operator.function_of_first if side == FIRST else operator.function_of_second
    collect = operator.output.collect

    def process_value(value: object, timestamp: int | None) -> None:
        try:
            result = function(value)
        except USER_CODE_RAISES as error:
            raise operator.fail(value, error) from error
        collect(StreamRecord(result, timestamp))

    return process_value


def _co_value(operator: TwoInputOperator, side: int) -> Value:
    process = operator.process_first if side == FIRST else operator.process_second

    def process_value(value: object, timestamp: int | None) -> None:
        process(StreamRecord(value, timestamp))

    return process_value


# By what `process` does: an operator with a `process` of its own is not one of the book's.
_FORMS: dict[Callable[..., None], type[BatchForm]] = {
    Operator.process: _Passing,
    MapOperator.process: _Mapping,
    FilterOperator.process: _Filtering,
    FlatMapOperator.process: _FlatMapping,
    SinkOperator.process: _Calling,
    WatermarkOperator.process: _Timing,
    TimestampsAndWatermarksOperator.process: _TimingPeriodically,
    WindowOperator.process: WindowForm,
}
_VALUES: dict[Callable[..., None], Callable[[Operator], Value]] = {
    MapOperator.process: _map_value,
    SinkOperator.process: _sink_value,
    ExactlyOnce.process: _exactly_once_value,
}


def batch_form(operator: Operator, output: BatchOutput) -> BatchForm:
    """The form of an operator; `output` is what it will send batches to."""
    if _is_of_one_class(operator, "process_batch"):
        return _OfUser(operator, output)
    return _FORMS.get(type(operator).process, BatchForm)(operator, output)


def co_value_forms(operator: TwoInputOperator) -> Sequence[Value]:
    """What treats a value of the first input, and of the second, without a record around it."""
    kind = type(operator)
    is_map = (kind.process_first, kind.process_second) == (CoMapOperator.process_first, CoMapOperator.process_second)
    return [(_co_map_value if is_map else _co_value)(operator, side) for side in (FIRST, SECOND)]


def value_form(operator: Operator) -> Value | None:
    """What treats a value without a record around it, if there is such a form."""
    if _is_of_one_class(operator, "process_value"):
        of_user: Any = operator
        process_value: Value = of_user.process_value
        return process_value
    make = _VALUES.get(type(operator).process)
    return None if make is None else make(operator)


def _is_of_one_class(operator: Operator, name: str) -> bool:
    """Whether a method is of the class that says what `process` does, or of a class below it."""
    for kind in type(operator).__mro__:
        if name in vars(kind):
            return True
        if "process" in vars(kind):
            return False
    return False


def _times_of(found: Any) -> Column | None:
    """Event times as longs; `None` if `int` must make them, of each by itself."""
    if np.ma.is_masked(found):
        return None
    times = np.asarray(found)
    return times.astype(np.int64) if np.can_cast(times.dtype, np.int64, "safe") else None


def _check_lengths(batch: RecordBatch, columns: Sequence[Column]) -> None:
    for column in columns:
        if not isinstance(column, np.ndarray) or len(column) != len(batch):
            found = f"{len(column)} values" if isinstance(column, np.ndarray) else repr(column)
            raise ValueError(f"for {batch} the function answered {found}; it must answer an array with one for each")
