"""The operators of two inputs, and the user's functions that they call: one for the values of each."""

from __future__ import annotations

from collections.abc import Callable

from refimpl.consumer.two_inputs import FIRST
from refimpl.errors import USER_CODE_RAISES
from refimpl.records.elements import StreamRecord
from refimpl.records.vectorized import for_one
from refimpl.task.operators import Operator, called_for_all, collect_all

__all__ = ["CoFlatMapOperator", "CoMapOperator", "TwoInputOperator"]


class TwoInputOperator(Operator):
    """An operator of two inputs. It is the head of its chain; watermarks and statuses come to it as those of both.

    Flink:   TwoInputStreamOperator, BoundedMultiInput (streaming.api.operators), 1.11.4
    Differs: the input makes one watermark of two; there is no `processWatermark1`.
    """

    def process(self, record: StreamRecord) -> None:
        raise AssertionError(f"{self.context.name} has two inputs: {record} is of neither")

    def process_first(self, record: StreamRecord) -> None:
        """Treat a record of the first input."""
        raise NotImplementedError(f"{type(self).__name__}.process_first")

    def process_second(self, record: StreamRecord) -> None:
        """Treat a record of the second input."""
        raise NotImplementedError(f"{type(self).__name__}.process_second")

    def process_from(self, side: int, record: StreamRecord) -> None:
        """Treat a record of input `side`."""
        if side == FIRST:
            self.process_first(record)
        else:
            self.process_second(record)

    def end_input(self, side: int) -> None:
        """Do what is to be done when input `side` has ended; `finish` follows when both have."""


class _OfTwoFunctions(TwoInputOperator):
    """An operator around two functions of the user's."""

    def __init__(self, of_first: Callable[[object], object], of_second: Callable[[object], object]) -> None:
        self.function_of_first: Callable[[object], object] = for_one(of_first)
        self.function_of_second: Callable[[object], object] = for_one(of_second)


class CoMapOperator(_OfTwoFunctions):
    """One value out for each value of either input.

    Flink:   CoStreamMap (streaming.api.operators.co), 1.11.4
    """

    def process_first(self, record: StreamRecord) -> None:
        self._map(self.function_of_first, record)

    def process_second(self, record: StreamRecord) -> None:
        self._map(self.function_of_second, record)

    def _map(self, function: Callable[[object], object], record: StreamRecord) -> None:
        try:
            result = function(record.value)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        self.output.collect(StreamRecord(result, record.timestamp))


class CoFlatMapOperator(_OfTwoFunctions):
    """Any number of values out for each value of either input: the functions return iterables.

    Flink:   CoStreamFlatMap (streaming.api.operators.co), 1.11.4
    """

    def process_first(self, record: StreamRecord) -> None:
        self._flat_map(self.function_of_first, record)

    def process_second(self, record: StreamRecord) -> None:
        self._flat_map(self.function_of_second, record)

    def _flat_map(self, function: Callable[[object], object], record: StreamRecord) -> None:
        collect_all(self, called_for_all(self, function, record.value), record.value, record.timestamp)
