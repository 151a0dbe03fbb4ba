"""Python values as those of a column's type, for rows that are stored: exactly, or refused with the reason.

A value changes its form and nothing else: 12 may become a double and 12.0 a bigint, 12.9 may not. Only a `float` column
rounds, to the nearest number it has. See `spark_values` for the types.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["Fit", "fit_of_row"]

Fit = Callable[[Any], Any]
"""Gives the value in the form Arrow takes, or raises a ValueError that says why not."""

_EXACT = Context(prec=10_000)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = [timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), _MICROSECOND]  # of an interval's last field


def fit_of_row(schema: StructType) -> Fit:
    """What makes a row of a tuple of the fields in order, a dict by name, or, with one column, the field."""
    of_struct = _fit_of_struct(schema, "")

    def fit(row: Any) -> Any:
        if isinstance(row, dict | tuple):
            return of_struct(row)
        if len(schema) != 1:
            raise ValueError(f"a row is a tuple of {len(schema)} fields or a dict of them by name, not {_shown(row)}")
        return of_struct((row,))

    return fit


def _fit_of(kind: DataType, nullable: bool, path: str) -> Fit:
    fit = _plain_fit(kind, path)

    def fit_or_null(value: Any) -> Any:
        if value is not None:
            return fit(value)
        if not nullable:
            raise ValueError(f"{path} is never null, and has no value")
        return None

    return fit_or_null


def _plain_fit(kind: DataType, path: str) -> Fit:
    from pyspark.sql import types as T  # noqa: N812 (Spark's own convention)

    sizes: dict[type[DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}
    bits = sizes.get(type(kind))
    if bits is not None:
        return lambda value: _whole(value, bits, path, kind.simpleString())
    match kind:
        case T.BooleanType():
            booleans = ("bool", "bool_")  # numpy calls its own so, or so
            return lambda value: bool(value) if type(value).__name__ in booleans else _refuse(value, path, kind)
        case T.FloatType() | T.DoubleType():
            return lambda value: _number(value, path, kind)
        case T.DecimalType():
            return lambda value: _decimal(value, kind.precision, kind.scale, path, kind)
        case T.StringType() | T.CharType() | T.VarcharType():
            return lambda value: _text(value, getattr(kind, "length", None), path, kind)
        case T.BinaryType():
            return lambda value: bytes(value) if isinstance(value, bytes | bytearray) else _refuse(value, path, kind)
        case T.DateType():
            return lambda value: (
                value if isinstance(value, date) and not isinstance(value, datetime) else _refuse(value, path, kind)
            )
        case T.TimestampType() | T.TimestampNTZType():
            return lambda value: _time(value, isinstance(kind, T.TimestampType), path, kind)
        case T.DayTimeIntervalType():
            return lambda value: _interval(value, _UNITS[kind.endField], path, kind)
        case T.ArrayType():
            element = _fit_of(kind.elementType, kind.containsNull, f"{path}.element")
            return lambda value: (
                [*map(element, value)] if isinstance(value, list | tuple) else _refuse(value, path, kind)
            )
        case T.MapType():
            return _fit_of_map(kind, path)
        case T.StructType():
            return _fit_of_struct(kind, path)
    raise AssertionError(f"{kind} has been refused by `arrow_schema`")


def _fit_of_struct(kind: StructType, path: str) -> Fit:
    fits = {each.name: _fit_of(each.dataType, each.nullable, f"{path}.{each.name}".lstrip(".")) for each in kind}
    where = path or "a row"

    def fit(value: Any) -> Any:
        if isinstance(value, dict):
            if unknown := [name for name in value if name not in fits]:
                raise ValueError(f"{where} has no field {unknown[0]!r}; it has {', '.join(fits)}")
            if missing := [name for name in fits if name not in value]:
                raise ValueError(f"{where} needs a field {missing[0]!r}, null if it has no value")
            return {name: each(value[name]) for name, each in fits.items()}
        if isinstance(value, tuple) and len(value) == len(fits):
            return {name: each(part) for (name, each), part in zip(fits.items(), value, strict=True)}
        if isinstance(value, tuple):
            raise ValueError(f"{where} has {len(fits)} fields, and the value {len(value)}")
        return _refuse(value, path, kind)

    return fit


def _fit_of_map(kind: Any, path: str) -> Fit:
    key_fit = _fit_of(kind.keyType, False, f"{path}.key")
    value_fit = _fit_of(kind.valueType, kind.valueContainsNull, f"{path}.value")

    def fit(value: Any) -> Any:
        pairs = value.items() if isinstance(value, Mapping) else value
        if not isinstance(value, Mapping | list):
            return _refuse(value, path, kind)
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"{path} is a dict or a list of pairs, not {_shown(value)}")
        fitted = [(key_fit(key), value_fit(each)) for key, each in pairs]
        if len({repr(key) for key, _ in fitted}) != len(fitted):
            raise ValueError(f"{path} has a key twice: {_shown(value)}")
        return fitted

    return fit


# -- single values -----------------------------------------------------------------------------------


def _refuse(value: Any, path: str, kind: DataType) -> Any:
    raise ValueError(f"{path} is of type {kind.simpleString()}, which {_shown(value)} is not")


def _shown(value: Any) -> str:
    return f"{value!r:.100} ({type(value).__name__})"


def _is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(type(value), "__index__") and not hasattr(value, "__len__")


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (type(value).__module__ == "numpy" and hasattr(value, "is_integer"))


def _whole(value: Any, bits: int, path: str, kind: str) -> int:
    if _is_integer(value):
        number = int(value)
    elif (_is_float(value) and math.isfinite(value)) or (isinstance(value, Decimal) and value.is_finite()):
        number = int(value)
        if number != value:
            raise ValueError(f"{path} is of type {kind}, and {_shown(value)} would lose its fraction")
    else:
        raise ValueError(f"{path} is of type {kind}, which {_shown(value)} is not")
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{path} is of type {kind}, and {number} is beyond its range")
    return number


def _number(value: Any, path: str, kind: DataType) -> float:
    if not (_is_float(value) or _is_integer(value)):
        _refuse(value, path, kind)
    try:
        number = float(value)
        stored = number if kind.typeName() == "double" else struct.unpack(">f", struct.pack(">f", number))[0]
    except OverflowError:
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} is beyond its range") from None
    if _is_integer(value) and int(stored) != int(value):
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} would be rounded to {stored!r}")
    return float(stored)


def _decimal(value: Any, precision: int, scale: int, path: str, kind: DataType) -> Decimal:
    if not isinstance(value, Decimal) and not _is_integer(value):
        raise ValueError(f"{path} is of type {kind.simpleString()}; make a Decimal of {_shown(value)}")
    number = value if isinstance(value, Decimal) else Decimal(int(value))
    if not number.is_finite():
        _refuse(value, path, kind)
    _, digits, exponent = number.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int), "it is finite"
    num_whole = len(digits) + exponent if any(digits) else 0
    if -exponent > scale and any(digits):
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} has more decimal places")
    if num_whole > precision - scale:
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} is beyond its range")
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _text(value: Any, length: int | None, path: str, kind: DataType) -> str:
    if not isinstance(value, str):
        _refuse(value, path, kind)
    if length is not None and len(value) > length:
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} is longer")
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path} is text, and {_shown(value)} has half a character") from None
    return text


def _time(value: Any, has_zone: bool, path: str, kind: DataType) -> datetime:
    if not isinstance(value, datetime) or value != value:
        _refuse(value, path, kind)
    if getattr(value, "nanosecond", 0):
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} has parts of a microsecond")
    if has_zone != (value.utcoffset() is not None):
        zone = "no zone; give it one, such as tzinfo=UTC" if has_zone else "a zone; a timestamp column keeps it"
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} has {zone}")
    plain = datetime.combine(value.date(), value.timetz())
    return plain.astimezone(UTC) if has_zone else plain


def _interval(value: Any, unit: timedelta, path: str, kind: DataType) -> timedelta:
    if not isinstance(value, timedelta):
        _refuse(value, path, kind)
    if getattr(value, "nanoseconds", 0) or value % unit:
        raise ValueError(f"{path} is of type {kind.simpleString()}, and {_shown(value)} has smaller parts")
    return timedelta(value.days, value.seconds, value.microseconds)
