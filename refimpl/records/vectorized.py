"""Functions that can do many records at once: the same function twice, for a value and for a batch.

Operators call `one` for a record. With shortcuts they call `many` for a batch: so a job is right with plain functions,
and faster with these. What an operator of the user's own may say of batches: `refimpl.shortcuts.forms`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeVar

from refimpl.records.elements import RecordBatch

__all__ = ["Field", "Vectorized", "for_one"]

F = TypeVar("F", bound=Callable[..., Any])


class Vectorized:
    """A function of one value, and what does the same to a batch.

    `many` gets a `RecordBatch` and answers for all its records: a tuple of columns where `one` returns a
    tuple, else one column; a filter's is a mask.

    Flink:   pandas UDFs, `udf(..., udf_type="pandas")` (PyFlink), 1.11
    """

    def __init__(self, one: Callable[[Any], Any], many: Callable[[RecordBatch], Any]) -> None:
        self.one = one
        self.many = many

    def __call__(self, value: Any) -> Any:
        return self.one(value)


class Field(Vectorized):
    """Takes one field out of values, by its number in a tuple or its name in a dict."""

    def __init__(self, field: int | str) -> None:
        super().__init__(itemgetter(field), itemgetter(field))
        self.field = field

    def __repr__(self) -> str:
        return f"Field({self.field!r})"


def for_one(function: F) -> F:
    """The function of one value in `function`, be it vectorized or not."""
    one: F = getattr(function, "one", function)
    return one
