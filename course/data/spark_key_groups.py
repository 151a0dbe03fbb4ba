"""Flink's key groups as Spark expressions: which subtask a key goes to, worked out without the engine.

Nothing here calls `refimpl`: it is a second implementation, in another language, so that the two can be compared.
Spark's numbers have 64 bits and refuse to overflow; all steps stay below, and are cut to 32 bits after each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["java_hash_code", "key_group", "murmur_hash", "subtask_of"]

_MASK = 0xFFFFFFFF


def java_hash_code(text: Column) -> Column:
    """`String.hashCode` of a text, as 32 bits without a sign; for characters of one UTF-16 unit."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    places = F.sequence(F.lit(1), F.length(text))

    def step(code: Column, place: Column) -> Column:
        return _cut(code * 31 + F.ascii(F.substring(text, place, F.lit(1))))

    code = F.aggregate(places, F.lit(0).cast("bigint"), step)
    return F.when(F.length(text) == 0, F.lit(0).cast("bigint")).otherwise(code)


def murmur_hash(code: Column) -> Column:
    """Flink's `MathUtils.murmurHash` of 32 bits: 0 to 2^31 - 1."""
    mixed = _turned(_times(code, 0xCC9E2D51), 15)
    mixed = _turned(_times(mixed, 0x1B873593), 13)
    mixed = _cut(mixed * 5 + 0xE6546B64)
    mixed = _folded(_cut(_let(mixed, lambda it: it.bitwiseXOR(_whole(4)))), 16)
    mixed = _folded(_times(mixed, 0x85EBCA6B), 13)
    mixed = _folded(_times(mixed, 0xC2B2AE35), 16)
    return _let(mixed, _absolute)


def key_group(text: Column, max_parallelism: int) -> Column:
    """The key group of a text: 0 to `max_parallelism` - 1, for good."""
    return murmur_hash(java_hash_code(text)) % max_parallelism


def subtask_of(text: Column, parallelism: int, max_parallelism: int) -> Column:
    """The subtask that owns the key group of a text."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.floor(key_group(text, max_parallelism) * parallelism / max_parallelism).cast("int")


def _let(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use` of a value that is worked out once: an expression that names its input twice would double it each time."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.element_at(F.transform(F.array(value), use), 1)


def _whole(number: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.lit(number).cast("bigint")


def _cut(number: Column) -> Column:
    """The lower 32 bits."""
    return number.bitwiseAND(_whole(_MASK))


def _times(number: Column, factor: int) -> Column:
    """A product of 32 bits: the factor in two halves, since the whole product would need 64 without a sign."""
    from pyspark.sql import functions as F  # noqa: N812

    def product(it: Column) -> Column:
        upper = F.shiftleft((it * _whole(factor >> 16)).bitwiseAND(_whole(0xFFFF)), 16)
        return _cut(it * _whole(factor & 0xFFFF) + upper)

    return _let(number, product)


def _turned(number: Column, bits: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return _let(number, lambda it: _cut(F.shiftleft(it, bits)).bitwiseOR(F.shiftright(it, 32 - bits)))


def _folded(number: Column, bits: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return _let(number, lambda it: it.bitwiseXOR(F.shiftright(it, bits)))


def _absolute(code: Column) -> Column:
    """The value without its sign of 32 bits that have one; what has no such value becomes 0."""
    from pyspark.sql import functions as F  # noqa: N812

    least = 1 << 31
    return F.when(code < least, code).when(code > least, _whole(1 << 32) - code).otherwise(_whole(0))
