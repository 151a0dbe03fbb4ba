"""The generated tables: the same rows in any partitioning, and what their descriptions promise."""

import itertools
import statistics

import pytest
from pyspark.sql import functions as F  # noqa: N812

from course.data import generated
from course.data.comparison import fingerprint, rows_of
from course.data.datasets import DATA_SETS, NUM_FRAMES, NoSuchDataError, data_set, table
from course.data.flights import ARRIVAL_ORDER, load
from course.data.statistics import describe, lateness
from course.flink.recorded import conversation
from refimpl.producer.key_groups import key_group_of, operator_index_of

pytestmark = pytest.mark.spark

GENERATED = ["documents", "zipf", "bursts", "disorder", "metrics", "plans"]


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("name", GENERATED)
def test_rows_do_not_depend_on_partitions(spark, name):
    make = getattr(generated, name)
    three, eight = (fingerprint(make(spark.range(0, 5_000, 1, parts), 11)) for parts in (3, 8))
    assert three == eight
    assert three.num_rows == 5_000


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("name", GENERATED)
def test_a_row_depends_on_its_number_and_the_seed_and_on_nothing_else(spark, name):
    make = getattr(generated, name)
    few, many = make(spark.range(0, 200), 11), make(spark.range(0, 5_000), 11)
    assert fingerprint(few) == fingerprint(many.where("id < 200"))
    assert fingerprint(few) != fingerprint(make(spark.range(0, 200), 12))


@pytest.mark.parametrize("name", GENERATED)
def test_columns_are_as_described(spark, name):
    assert dict(table(name, spark, rows=10).dtypes) == data_set(name).types


def test_the_flights_are_as_described_too(spark):
    assert dict(table("flights", spark, rows=10).dtypes) == data_set("flights").types


def test_documents_have_the_length_they_say(spark):
    frame = table("documents", spark, rows=50_000)
    wrong = frame.where(F.length("text") != F.col("size_bytes")).count()
    assert wrong == 0
    sizes = frame.agg(F.min("size_bytes"), F.max("size_bytes"), F.median("size_bytes")).collect()[0]
    assert (sizes[0], sizes[1]) == (1, generated.LARGEST_DOCUMENT)
    assert 50 < sizes[2] < 80


def test_the_most_frequent_user_has_a_ninth_of_all_rows(spark):
    top = table("zipf", spark, rows=50_000).groupBy("user").count().orderBy(F.desc("count")).first()
    assert top.user == "user-00001"
    assert 0.1 < top["count"] / 50_000 < 0.12


def test_bursts_arrive_in_the_order_of_their_numbers(spark):
    times = [time for (time,) in rows_of(table("bursts", spark, rows=2_000).orderBy("id").select("arrival_ms"))]
    assert times == sorted(times)
    starts = times[::64]
    assert min(b - a for a, b in itertools.pairwise(starts)) >= 300


@pytest.mark.parametrize("delays", generated.DELAYS)
def test_late_rows_are_a_tenth_and_two_seconds_late_on_average(spark, delays):
    late = table("disorder", spark, rows=40_000, delays=delays).select(
        (F.col("arrival_ms") - F.col("event_time_ms")).alias("ms")
    )
    share, mean = late.agg(F.avg((F.col("ms") > 0).cast("int")), F.avg(F.when(F.col("ms") > 0, F.col("ms")))).first()
    assert abs(share - 0.1) < 0.005
    assert 1_000 < mean < 3_500


def test_the_bottleneck_is_busy_and_what_is_before_it_waits(spark):
    frame = table("metrics", spark, rows=20 * 60 * 10)
    minute = F.floor(F.col("time_ms") / 60_000).alias("minute")
    means = frame.groupBy(minute, "operator", "bottleneck").agg(
        F.avg("busy_permille").alias("busy"), F.avg("backpressured_permille").alias("waits")
    )
    rows = rows_of(means.select("minute", "operator", "bottleneck", "busy", "waits"))
    truths = {(row[0], row[2]) for row in rows}
    assert len(truths) == 10, "one bottleneck in each minute"
    assert len({truth for _, truth in truths}) > 2
    for minute, truth in truths:
        waiting = [row[1] for row in rows if row[0] == minute and row[4] > 500]
        expected = generated.OPERATORS[: generated.OPERATORS.index(truth)] if truth != "none" else ()
        assert sorted(waiting) == sorted(expected)
    shares = frame.selectExpr("busy_permille + backpressured_permille + idle_permille AS all").distinct().collect()
    assert [row["all"] for row in shares] == [1000]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "nothing"}, "there is no data set 'nothing'; there are flights,"),
        ({"name": "zipf", "rows": 0}, "zipf has 1 to 100000000 rows, not 0"),
        ({"name": "flights", "rows": 328_522}, "flights has 1 to 328521 rows"),
        ({"name": "zipf", "delays": "uniform"}, "zipf has no option 'delays'; it has none"),
        ({"name": "disorder", "delays": "odd"}, "delays is exponential, uniform, pareto, not 'odd'"),
    ],
)
def test_what_there_is_none_of_is_said(spark, arguments, words):
    with pytest.raises(NoSuchDataError, match=words):
        table(session=spark, **arguments)


def test_every_data_set_says_what_it_is_for_and_where_it_comes_from():
    for each in DATA_SETS.values():
        assert each.purpose
        assert "Apache License" in each.source or "CC0" in each.source
        assert all(meaning for _, meaning in each.columns.values())
        assert set(each.keys) | set(each.sizes) | set(each.order) <= set(each.columns)


# -- statistics ------------------------------------------------------------------------------------


def test_the_page_of_the_flights_says_what_a_plain_loop_says(spark):
    rows = [row.asDict() for row in load(spark, records=2_000).collect()]
    page = describe("flights", spark, rows=2_000)
    for key in ("origin", "carrier"):
        counts = {}
        for row in rows:
            counts[row[key]] = counts.get(row[key], 0) + 1
        loads = [0] * 4
        for value, count in counts.items():
            loads[operator_index_of(key_group_of(value, 128), 128, 4)] += count
        found = page.values[key]
        assert found["distinct"] == len(counts)
        assert found["top_1"] == max(counts.values()) / 2_000
        assert found["busiest"][4] == max(loads) * 4 / 2_000
    in_order = sorted(rows, key=lambda row: tuple(row[name] for name in ARRIVAL_ORDER))
    newest = itertools.accumulate((row["event_time_ms"] for row in in_order), max)
    late = sorted(top - row["event_time_ms"] for top, row in zip(newest, in_order, strict=True))
    assert page.values["late_share"] == sum(each > 0 for each in late) / 2_000
    spread = page.values["lateness, ms"]
    assert spread["max"] == late[-1]
    assert spread["p50"] == statistics.median(late)
    assert spread["mean"] == pytest.approx(statistics.mean(late))


def test_lateness_is_the_same_in_stretches_of_any_length(spark):
    frame = table("disorder", spark, rows=3_000, delays="pareto")
    order = ("arrival_ms", "id")
    few, many = (sorted(rows_of(lateness(frame, "event_time_ms", order, num_rows))) for num_rows in (3_000, 40_000_000))
    assert few == many
    assert few[-1][0] > 1_000


def test_a_page_is_text_and_a_table(spark):
    page = describe("plans", spark)
    text, markup = repr(page), page._repr_html_()
    assert text.startswith("plans: jobs before they start")
    assert "24 rows, seed 7" in text
    assert all(name in text and f">{name}</td>" in markup for name in data_set("plans").columns)


def test_frames_are_all_that_were_recorded(spark):
    recorded = [frame for channel in conversation()["channels"] for frame in channel["frames"]]
    rows = table("frames", spark).orderBy("channel", "number").collect()
    assert [row.frame for row in rows] == recorded
    assert len(recorded) == NUM_FRAMES
