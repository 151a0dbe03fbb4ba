"""What the words for keyed and connected streams need of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.task.co_operators import TwoInputOperator
from refimpl.task.operators import Operator

__all__ = ["Transformed"]


class Transformed(Protocol):
    """A stream an operator can be put behind, which gives another such stream."""

    def transform(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer = ANY) -> Self: ...

    def transform_with(
        self, second: Self, name: str, make_operator: Callable[[], TwoInputOperator], type: TypeSerializer = ANY
    ) -> Self:
        """An operator of two inputs: this stream and `second`."""

    def sink(self, function: Callable[[Any], object], name: str = "sink") -> Self: ...
