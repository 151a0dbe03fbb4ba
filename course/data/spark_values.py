"""The values of Spark's types in the engine: one for each type, whichever way a row comes in or goes out.

    Spark                                   value                       Arrow on the way
    boolean, tinyint … bigint               bool, int                   the same
    float, double                           float                       the same
    decimal(p, s)                           Decimal                     decimal128
    string, char(n), varchar(n)             str                         string
    binary                                  bytes                       binary
    date                                    date                        date32
    timestamp                               datetime in UTC             timestamp[us, UTC]
    timestamp_ntz                           datetime without a zone     timestamp[us]
    interval day … second                   timedelta                   duration[us]
    array<t>                                list                        list
    map<k, v>                               list of (key, value)        map
    struct<…>                               dict by name                struct
    void                                    None                        string

A year before 1 or after 9999 is no Python date and is refused. So is every other type, before a job runs: `void`
within another type, `interval year … month`, `interval`, `variant`, `time`, `geometry`, `geography`, types of users.

Source:  the types of Spark 4.3 (pyspark.sql.types); Python's are those that `DataFrame.collect` gives, but for the zone
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from refimpl.errors import LocalUsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["arrow_schema", "check_names", "conformed", "event_times_ms", "quoted", "rows_as_arrow", "values_of"]

_MS_PER_DAY = 86_400_000


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it, whatever characters it has."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse two columns of one name, which Spark compares without regard to case.

    Raises:
        LocalUsageError: names them; `what` says whose columns they are.
    """
    for name, count in Counter(map(str.casefold, names)).items():
        if count > 1:
            alike = ", ".join(repr(each) for each in names if each.casefold() == name)
            raise LocalUsageError(f"{what} has several columns of one name: {alike}; rename them in Spark")


def arrow_schema(struct: StructType, what: str, names: Sequence[str] | None = None) -> pa.Schema:
    """Arrow's schema of rows of `struct`, as in the table above, with other `names` for the columns if they are given.

    Raises:
        LocalUsageError: a column is of a type that has no value here, or a struct has two fields of one name.
    """
    import pyarrow as pa

    named = zip(struct.names if names is None else names, struct, strict=True)
    return pa.schema([pa.field(name, _arrow_type(each.dataType, quoted(name), what)) for name, each in named])


def _arrow_type(kind: DataType, path: str, what: str) -> pa.DataType:
    import pyarrow as pa
    from pyspark.sql import types as T  # noqa: N812 (Spark's own convention)

    plain = {
        T.BooleanType: pa.bool_(), T.ByteType: pa.int8(), T.ShortType: pa.int16(), T.IntegerType: pa.int32(),
        T.LongType: pa.int64(), T.FloatType: pa.float32(), T.DoubleType: pa.float64(), T.StringType: pa.string(),
        T.CharType: pa.string(), T.VarcharType: pa.string(), T.BinaryType: pa.binary(), T.DateType: pa.date32(),
        T.TimestampType: pa.timestamp("us", "UTC"), T.TimestampNTZType: pa.timestamp("us"),
        T.DayTimeIntervalType: pa.duration("us"),
    }  # fmt: skip
    if type(kind) in plain:
        return plain[type(kind)]
    match kind:
        case T.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case T.ArrayType():
            return pa.list_(_arrow_type(kind.elementType, f"{path}.element", what))
        case T.MapType():
            key = _arrow_type(kind.keyType, f"{path}.key", what)
            return pa.map_(key, _arrow_type(kind.valueType, f"{path}.value", what))
        case T.StructType():
            if len(set(kind.names)) != len(kind.names):
                raise LocalUsageError(f"{what}: {path} has two fields of one name; rename them in Spark")
            return pa.struct(
                [pa.field(each.name, _arrow_type(each.dataType, f"{path}.{quoted(each.name)}", what)) for each in kind]
            )
    raise LocalUsageError(
        f"{what}: {path} is of type {kind.simpleString()}, which has no value in Python here; "
        f"cast it in Spark, say to string, or leave it out"
    )


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with the names and types of `schema`, column by column.

    Parquet keeps intervals as numbers, and times without their zone; Spark sends times in the zone of the session.
    """
    import pyarrow as pa

    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_as_arrow(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows that `fit_of_row` has made, as one batch."""
    import pyarrow as pa

    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def values_of(column: pa.Array, name: str = "") -> list[Any]:
    """The values of a column of `arrow_schema`.

    Raises:
        LocalUsageError: a date or a time is none in Python.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise LocalUsageError(
            f"column {name!r} has a value of type {column.type} that Python has none for ({error}); "
            f"dates and times go from year 1 to year 9999"
        ) from error
    return [*map(_in_utc, values)] if _has_zone(column.type) else values


def _has_zone(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(number).type) for number in range(kind.num_fields))


def _in_utc(value: Any) -> Any:
    """The value with Python's own UTC: Arrow takes the zone of a package, if there is one."""
    match value:
        case datetime():
            return value if value.tzinfo is None else value.replace(tzinfo=UTC)
        case list() | tuple():
            return type(value)(map(_in_utc, value))
        case dict():
            return {name: _in_utc(each) for name, each in value.items()}
    return value


def event_times_ms(column: pa.Array, name: str) -> Any:
    """A column of event times in ms: of whole numbers as they are, of times and dates since 1970 in UTC, rounded down.

    Raises:
        LocalUsageError: a row has none, or the column is of another type.
    """
    import numpy as np
    import pyarrow as pa

    if column.null_count:
        raise LocalUsageError(f"column {name!r} has rows without a time; leave them out in Spark")
    kind = column.type
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.floor_divide(micros, 1000)
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64) * _MS_PER_DAY
    if pa.types.is_integer(kind):
        return column.to_numpy(zero_copy_only=False).astype(np.int64)
    raise LocalUsageError(f"column {name!r} is of type {kind} and no event time: take whole ms, a timestamp or a date")
