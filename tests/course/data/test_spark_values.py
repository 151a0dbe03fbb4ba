"""One value and one type for each of Spark's types, on every way; or a refusal that names column and type."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from course.data.dataframe_source import DataFrameSource
from course.data.spark_fit import fit_of_row
from course.data.table_sink import TableSink
from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment

pytestmark = pytest.mark.spark

VALUES: list[tuple[str, object]] = [
    ("true", True), ("-128Y", -128), ("32767S", 32767), ("7", 7), ("-9223372036854775808L", -(2**63)),
    ("float('nan')", float("nan")), ("float('-0.0')", -0.0), ("1.1f", float(np.float32(1.1))),
    ("double('-Infinity')", float("-inf")), ("12.90BD", Decimal("12.90")),
    ("cast('99999999999999999999999999999999999999' as decimal(38,0))", Decimal(10**38 - 1)),
    ("'a\\u0000'", "a\0"), ("'é😀'", "é😀"), ("''", ""), ("X'00ff'", b"\0\xff"), ("cast(null as int)", None),
    ("null", None),
    ("date'0001-01-01'", date(1, 1, 1)), ("date'1500-02-28'", date(1500, 2, 28)), ("date'9999-12-31'", date.max),
    ("timestamp'9999-12-31 00:00:00Z'", datetime(9999, 12, 31, tzinfo=UTC)),
    ("timestamp'0001-01-01 00:00:00Z'", datetime(1, 1, 1, tzinfo=UTC)),
    ("timestamp'1582-10-10 00:00:00Z'", datetime(1582, 10, 10, tzinfo=UTC)),
    ("timestamp'1969-12-31 23:59:59.999999Z'", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("timestamp'2026-11-01 05:30:00Z'", datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
    ("timestamp'2026-11-01 06:30:00Z'", datetime(2026, 11, 1, 6, 30, tzinfo=UTC)),
    ("timestamp_ntz'2026-03-08 02:30:00.123456'", datetime.fromisoformat("2026-03-08T02:30:00.123456")),
    ("timestamp_ntz'0001-01-01 00:00:00'", datetime.fromisoformat("0001-01-01")),
    ("interval '1' day", timedelta(1)), ("interval '-1 02:03:04.000005' day to second",
                                         -timedelta(1, 7384, 5)),
    ("array(1, null)", [1, None]), ("array(timestamp'9999-12-31 00:00:00Z')", [datetime(9999, 12, 31, tzinfo=UTC)]),
    ("map('a', timestamp'1500-01-01 00:00:00Z')", [("a", datetime(1500, 1, 1, tzinfo=UTC))]),
    ("struct(interval '1' day as `i i`, 2 as `a.b`, 3 as `c``d`)", {"i i": timedelta(1), "a.b": 2, "c`d": 3}),
    ("map(1, array(named_struct('d', date'1500-01-01')))", [(1, [{"d": date(1500, 1, 1)}])]),
]  # fmt: skip

NAMES = ["a.b", "a`b", "_id", "_partition", "_arrival_rank", "_arrival_id", "a,b;{}()", "ü %/=", "c0", " ", "x" * 200]


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kathmandu"])
def zone(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def same(one: object, other: object) -> bool:
    return (repr(one), type(one)) == (repr(other), type(other))


@pytest.mark.usefixtures("zone")
def test_each_type_has_one_value_from_files_and_from_sparks_own_batches(spark) -> None:
    frame = spark.sql("select " + ", ".join(f"{words} as `c.{place}`" for place, (words, _) in enumerate(VALUES)))
    expected = {f"c.{place}": value for place, (_, value) in enumerate(VALUES)}
    for order in (None, "c.1"):
        source = DataFrameSource(frame, order_by=order)
        (from_files,) = source(0, 1).read(10).values()
        batches = source.frame.toArrow().to_batches()
        (from_spark,) = source.make_batch_reader(iter(batches)).read(10).values()
        for name, value in expected.items():
            assert same(from_files[name], value), (name, from_files[name])
            assert same(from_spark[name], value), (name, from_spark[name])
        source.close()


REFUSED = [
    ("interval '1' year", "interval year"), ("make_interval(1)", "interval"),
    ("array()", "void"), ("parse_json('1')", "variant"), ("time'12:00:00'", "time"),
    ("struct(map(1, interval '1' month) as m)", "interval month"), ("named_struct('a', 1, 'a', 2)", "two fields"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "named"), REFUSED)
def test_other_types_are_refused_by_column_and_type_before_anything_runs(spark, words: str, named: str) -> None:
    with pytest.raises(LocalUsageError, match=rf"`the column`.*{named}"):
        DataFrameSource(spark.sql(f"select {words} as `the column`"))


@pytest.mark.parametrize(
    "words", ["date'-0001-01-01'", "timestamp'+12000-01-01 00:00:00'", "timestamp_ntz'0000-01-01'"]
)
def test_a_year_that_python_has_none_for_is_refused_by_column(spark, words: str) -> None:
    with (
        DataFrameSource(spark.sql(f"select {words} as `the column`")) as source,
        pytest.raises(LocalUsageError, match=r"'the column' has a value of type .*from year 1 to year 9999"),
    ):
        list(source(0, 1).read(1).values())


def test_names_pass_unharmed(spark) -> None:
    row = ", ".join(f"{place} as `{name.replace('`', '``')}`" for place, name in enumerate(NAMES))
    for order in (None, "a.b", ["_id", "a`b"]):
        with DataFrameSource(spark.sql(f"select {row}"), order_by=order) as source:
            assert list(source(0, 1).read(1).values()) == [{name: place for place, name in enumerate(NAMES)}]
            batches = source.frame.toArrow().to_batches()
            assert next(iter(source.make_batch_reader(iter(batches)).read(1).values()))["a`b"] == 1


def test_two_columns_of_one_name_are_refused_by_name(spark) -> None:
    with pytest.raises(LocalUsageError, match="several columns of one name: 'a', 'A'"):
        DataFrameSource(spark.sql("select 1 as a, 2 as A, 3 as b"))


TIMES = [
    ("timestamp'9999-12-31 00:00:00Z'", 253402214400000), ("timestamp'1969-12-31 23:59:59.9999Z'", -1),
    ("timestamp'1969-12-31 23:59:59.001001Z'", -999), ("timestamp'1500-01-01 00:00:00Z'", -14831769600000),
    ("timestamp_ntz'1969-12-31 23:59:59.9999'", -1), ("date'1969-12-31'", -86_400_000), ("-1L", -1), ("5Y", 5),
]  # fmt: skip


@pytest.mark.usefixtures("zone")
def test_event_times_are_whole_milliseconds_rounded_down(spark) -> None:
    frame = spark.sql("select " + ", ".join(f"{words} as c{place}" for place, (words, _) in enumerate(TIMES)))
    for place, (_, time) in enumerate(TIMES):
        with DataFrameSource(frame.select(f"c{place}"), timestamps=f"c{place}") as source:
            assert source(0, 1).read(1).timestamps.tolist() == [time]
            batches = source.frame.toArrow().to_batches()
            assert source.make_batch_reader(iter(batches)).read(1).timestamps.tolist() == [time]


@pytest.mark.parametrize("words", ["'noon'", "1.5D", "1.5BD", "array(1)", "interval '1' day", "true"])
def test_a_column_that_is_no_time_is_refused_before_anything_runs(spark, words: str) -> None:
    with pytest.raises(LocalUsageError, match=r"'t' is of type .* and no event time"):
        DataFrameSource(spark.sql(f"select {words} as t"), timestamps="t")


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("order", [None, "id"])
@pytest.mark.parametrize("drive", [Simulation, ThreadedRun, ProcessRun])
@pytest.mark.parametrize("empty", ["range", "where", "created"])
def test_an_empty_frame_is_a_stream_without_records(spark, order: str | None, drive: Any, empty: str) -> None:
    frame = {
        "range": lambda: spark.range(0),
        "where": lambda: spark.range(9).where("1=0"),
        "created": lambda: spark.createDataFrame([], "id bigint"),
    }[empty]()
    environment = StreamEnvironment()
    found: list[object] = []
    with DataFrameSource(frame, order, num_files=1 if order else None) as source:
        environment.source(source).sink(found.append)
        (drive(environment, num_task_managers=1) if drive is not Simulation else Simulation(environment)).run()
    assert found == []


# -- out ---------------------------------------------------------------------------------------------

FITS: list[tuple[str, object, object]] = [
    ("bigint", 12.0, 12), ("bigint", np.int32(5), 5), ("int", Decimal("12.00"), 12), ("tinyint", -128, -128),
    ("double", 12, 12.0), ("float", 0.1, float(np.float32(0.1))), ("double", np.float32(0.5), 0.5),
    ("decimal(4,2)", Decimal("1.5"), Decimal("1.50")), ("decimal(4,2)", 99, Decimal("99.00")),
    ("decimal(2,2)", Decimal("0E+5"), Decimal("0.00")), ("string", np.str_("a"), "a"), ("varchar(2)", "ab", "ab"),
    ("binary", bytearray(b"a"), b"a"), ("boolean", np.bool_(True), True), ("date", date(1, 1, 1), date(1, 1, 1)),
    ("timestamp", datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2026, 1, 1, tzinfo=UTC)),
    ("timestamp", datetime(9999, 12, 31, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
    ("timestamp_ntz", datetime.fromisoformat("1500-01-01"), datetime.fromisoformat("1500-01-01")),
    ("interval day to second", timedelta(-1, 1, 1), timedelta(-1, 1, 1)), ("bigint", None, None),
    ("array<int>", (1, None), [1, None]), ("map<string,int>", {"a": 1}, [("a", 1)]),
    ("struct<`first name`:string,`a.b`:int,`c``d`:int>", {"first name": "x", "a.b": 1, "c`d": 2},
     {"first name": "x", "a.b": 1, "c`d": 2}),
    ("struct<a:timestamp>", (pd.Timestamp("2026-01-01", tz="UTC"),), {"a": datetime(2026, 1, 1, tzinfo=UTC)}),
]  # fmt: skip


def test_what_fits_is_stored_and_read_again_as_it_was(spark, tmp_path) -> None:
    schema = ", ".join(f"`c.{place}` {kind}" for place, (kind, _, _) in enumerate(FITS))
    with TableSink(schema, tmp_path / "table") as sink:
        sink(tuple(value for _, value, _ in FITS))
        sink({f"c.{place}": value for place, (_, value, _) in enumerate(FITS)})
        sink.commit()
        frame = sink.frame(spark)
        assert frame.columns == [f"c.{place}" for place in range(len(FITS))]
        with DataFrameSource(frame) as source:
            for row in source(0, 1).read(9).values():
                for (kind, _, expected), found in zip(FITS, row.values(), strict=True):
                    assert same(found, expected), (kind, found)


UNFIT: list[tuple[str, object, str]] = [
    ("bigint", 12.9, "lose its fraction"), ("bigint", np.float64(12.9), "lose its fraction"),
    ("bigint", Decimal("12.9"), "lose its fraction"), ("bigint", True, "is not"), ("bigint", "12", "is not"),
    ("int", 2**31, "beyond its range"), ("tinyint", -129, "beyond its range"), ("bigint", float("nan"), "is not"),
    ("double", 2**53 + 1, "would be rounded"), ("double", 10**400, "beyond its range"), ("float", 1e300, "beyond"),
    ("float", 2**24 + 1, "would be rounded"), ("double", "1.5", "is not"), ("double", Decimal("0.1"), "is not"),
    ("double", True, "is not"), ("decimal(4,2)", Decimal("1.234"), "more decimal places"),
    ("decimal(4,2)", Decimal(100), "beyond its range"), ("decimal(4,2)", 1.5, "make a Decimal"),
    ("decimal(4,2)", Decimal("NaN"), "is not"), ("string", 7, "is not"), ("string", b"a", "is not"),
    ("string", "\ud83d", "half a character"), ("varchar(2)", "abc", "is longer"), ("binary", "a", "is not"),
    ("boolean", 1, "is not"), ("date", datetime(2026, 1, 1, tzinfo=UTC), "is not"), ("date", "2026-01-01", "is not"),
    ("timestamp", datetime.fromisoformat("2026-01-01"), "no zone"), ("timestamp", date(2026, 1, 1), "is not"),
    ("timestamp_ntz", datetime(2026, 1, 1, tzinfo=UTC), "a zone"), ("timestamp", 0, "is not"),
    ("timestamp", pd.Timestamp("2026-01-01T00:00:00.000000001Z"), "parts of a microsecond"),
    ("timestamp", pd.NaT, "is not"), ("interval day", timedelta(hours=1), "smaller parts"),
    ("interval day to second", 5, "is not"), ("array<int>", [1.5], "lose its fraction"), ("array<int>", "12", "is not"),
    ("map<string,int>", {"a": "b"}, "is not"), ("map<string,int>", {None: 1}, "never null"),
    ("struct<a:int,b:int>", (1,), "has 2 fields, and the value 1"), ("struct<a:int>", {"a": 1, "z": 2}, "no field 'z'"),
    ("struct<a:int>", {}, "needs a field 'a'"), ("bigint not null", None, "never null"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "why"), UNFIT, ids=lambda case: str(case)[:40] if isinstance(case, str) else ""
)
def test_what_would_be_changed_is_refused_with_column_type_and_value(
    spark, tmp_path, kind: str, value: object, why: str
) -> None:
    with TableSink(f"airport string, x {kind}", tmp_path / "table") as sink:
        with pytest.raises(LocalUsageError, match=f"does not fit the table .*x.*{why}"):
            sink(("JFK", value))
        sink(("JFK", None)) if "not null" not in kind else None
        sink.commit() if "not null" not in kind else None


@pytest.mark.parametrize(("row", "why"), [((1,), "2 fields"), ((1, 2, 3), "2 fields"), ({"a": 1}, "needs a field 'b'"),
                                          ({"a": 1, "b": 2, "c": 3}, "no field 'c'"), (7, "a tuple of 2"),
                                          ([1, 2], "a tuple of 2")], ids=repr)  # fmt: skip
def test_a_row_of_another_shape_is_refused(spark, tmp_path, row: object, why: str) -> None:
    with TableSink("a int, b int", tmp_path / "table") as sink, pytest.raises(LocalUsageError, match=why):
        sink(row)


@pytest.mark.parametrize("schema", ["a int, A int", "`a b` int, `A B` string"])
def test_a_table_with_two_columns_of_one_name_is_refused(spark, tmp_path, schema: str) -> None:
    with pytest.raises(LocalUsageError, match="several columns of one name"), TableSink(schema, tmp_path / "table"):
        pass


@pytest.mark.parametrize("schema", ["", "a", "a in", "a int b int", "struct<"])
def test_a_schema_that_cannot_be_read_is_said_in_words(spark, tmp_path, schema: str) -> None:
    with pytest.raises(LocalUsageError), TableSink(schema, tmp_path / "table"):
        pass


@pytest.mark.parametrize("kind", ["interval year", "variant", "void", "array<interval month>"])
def test_a_column_that_cannot_be_stored_is_refused_before_the_job(spark, tmp_path, kind: str) -> None:
    with pytest.raises(LocalUsageError, match="the table: `x`"), TableSink(f"x {kind}", tmp_path / "table"):
        pass


def test_a_struct_type_needs_no_session(tmp_path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    with TableSink(StructType([StructField("n", LongType())]), tmp_path / "table") as sink:
        sink(7)
        assert sink.commit().num_rows == 1


def test_a_fit_does_not_look_at_what_it_was_given_twice(spark) -> None:
    from pyspark.sql.types import StructType

    fit = fit_of_row(StructType.fromDDL("a array<int>"))
    given = [1, 2]
    fitted = fit((given,))
    given.append(3)
    assert fitted == {"a": [1, 2]}
