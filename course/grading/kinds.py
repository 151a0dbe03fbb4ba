"""The one rule of all checks for kinds of values: what counts is the value, not the class it has.

    a whole number   Python's, numpy's, whatever Python takes for an index; no truth value, no float, no text
    a truth value    Python's or numpy's
    bytes            bytes, a bytearray, a memoryview; no text, no list of numbers
    a list           a list, a tuple, an array, also what can be gone through only once; no text, no bytes, no dict

A number that is given out goes on as a number: one of numpy's so narrow that twice the number does not fit is another
as soon as somebody calculates on, and hardly a word is said. It is no whole number here. What a part keeps for itself
may be narrow.

Only 0.1 asks for the very kinds, since there the type of a value decides how it is written.

Drivers use this in the judge and in the child, which cannot import `course`; so it is handed to it as text. Standard
library only, and numpy is not loaded for it.
"""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["members", "octets", "own", "plain", "whole"]


def own(value: Any) -> Any:
    """One of numpy's numbers or truth values as Python's; everything else as it is."""
    return value.item() if _is_numpys(value) else value


def whole(value: Any) -> int | None:
    """The whole number, of any kind that it goes on in; `None` for what is none."""
    number = own(value)
    if isinstance(number, bool) or not hasattr(type(number), "__index__") or not _goes_on(value, number):
        return None
    if isinstance(number, int):
        return int.__int__(number)
    try:
        return operator.index(number)
    except TypeError:  # an array of numbers
        return None


def plain(value: Any) -> Any:
    """A number, a truth value or nothing as it is, whatever its type; of anything else the type, behind a "?"."""
    value = own(value)
    if value is None or isinstance(value, bool):
        return value
    number = whole(value)
    return f"?{type(value).__name__}"[:60] if number is None else number


def octets(value: Any) -> bytes | None:
    """The bytes, of any kind; `None` for what is none."""
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def members(value: Any) -> list[Any] | None:
    """What a list of any kind holds; `None` for what is none. What can be gone through once is then used up."""
    if isinstance(value, str | bytes | bytearray | memoryview | dict) or not hasattr(type(value), "__iter__"):
        return None
    return list(value)


def _is_numpys(value: Any) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def _goes_on(value: Any, number: Any) -> bool:
    """Whether twice the number has room in the kind that it is of."""
    if not _is_numpys(value) or not isinstance(number, int):
        return True
    num_bits = 8 * int(value.dtype.itemsize) - (value.dtype.kind == "i")
    return bool(2 * abs(number) < 1 << num_bits)
