"""Two streams that one operator reads, each with values of its own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from refimpl.job.transformed import Transformed
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.task.co_operators import CoFlatMapOperator, CoMapOperator, TwoInputOperator

__all__ = ["ConnectedStreams"]

Stream = TypeVar("Stream", bound=Transformed)


class ConnectedStreams(Generic[Stream]):
    """Two streams into one operator, which knows of each record which stream it is of.

    Flink:   ConnectedStreams (streaming.api.datastream), 1.11.4
    """

    def __init__(self, first: Stream, second: Stream) -> None:
        self._first = first
        self._second = second

    def map(
        self,
        of_first: Callable[[Any], object],
        of_second: Callable[[Any], object],
        name: str = "co_map",
        type: TypeSerializer = ANY,
    ) -> Stream:
        """One result for each value: a function for the values of each stream."""
        return self.transform(name, lambda: CoMapOperator(of_first, of_second), type)

    def flat_map(
        self,
        of_first: Callable[[Any], object],
        of_second: Callable[[Any], object],
        name: str = "co_flat_map",
        type: TypeSerializer = ANY,
    ) -> Stream:
        """Any number of results for each value: the functions return iterables."""
        return self.transform(name, lambda: CoFlatMapOperator(of_first, of_second), type)

    def transform(self, name: str, make_operator: Callable[[], TwoInputOperator], type: TypeSerializer = ANY) -> Stream:
        """Any operator of two inputs; each subtask gets its own from `make_operator`."""
        return self._first.transform_with(self._second, name, make_operator, type)
