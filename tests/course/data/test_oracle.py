"""Spark's answer against one worked out in plain Python, and the words in which answers are compared."""

from collections import defaultdict

import pytest

from course.data import Departures, compare, departures_per_window, load
from course.data.oracle import HOUR_MS

ROWS = [
    Departures(0, "EWR", 2, -2, -1.0),
    Departures(0, "JFK", 3, 1, 1 / 3),
    Departures(HOUR_MS, "EWR", 1, 90, 90.0),
]


@pytest.mark.spark
@pytest.mark.parametrize("window_ms", [HOUR_MS, 7 * 60_000])
def test_spark_answers_as_a_plain_loop_does(spark, window_ms):
    frame = load(spark, records=5000)
    delays = defaultdict(list)
    for row in frame.toArrow().to_pylist():
        start = row["event_time_ms"] // window_ms * window_ms
        delays[start, row["origin"]].append(row["dep_delay_minutes"])
    wanted = [Departures(*key, len(them), sum(them), sum(them) / len(them)) for key, them in sorted(delays.items())]
    assert departures_per_window(frame, window_ms) == wanted


@pytest.mark.spark
def test_windows_before_1970_start_before_their_records(spark):
    frame = spark.sql("SELECT -1L AS event_time_ms, 'EWR' AS origin, 5 AS dep_delay_minutes")
    assert departures_per_window(frame) == [Departures(-HOUR_MS, "EWR", 1, 5, 5.0)]


@pytest.mark.spark
def test_all_flights(spark):
    rows = departures_per_window(load(spark))
    assert len(rows) == 19_434
    assert sum(row.departures for row in rows) == 328_521
    assert compare(rows, rows).is_equal


def test_equal_answers_in_another_order_as_plain_tuples():
    assert compare([tuple(row) for row in reversed(ROWS)], ROWS).message() == "equal: 3 rows"


def test_the_rounding_of_means_is_forgiven_and_nothing_else():
    assert compare([*ROWS[:1], ROWS[1]._replace(delay_mean_minutes=0.33333333333), ROWS[2]], ROWS).is_equal
    assert not compare([*ROWS[:1], ROWS[1]._replace(delay_mean_minutes=0.3333), ROWS[2]], ROWS).is_equal
    assert not compare([*ROWS[:1], ROWS[1]._replace(delay_sum_minutes=2), ROWS[2]], ROWS).is_equal


def test_each_kind_of_difference_is_named():
    got = [ROWS[0]._replace(departures=1), ROWS[2], ROWS[2], Departures(0, "XXX", 1, 0, 0.0)]
    found = compare(got, ROWS)
    assert not found.is_equal
    assert found.message() == (
        "4 rows, expected 3:\n"
        "  missing: 1\n"
        "    1970-01-01 00:00Z JFK  3 departures, 1 min in all, mean 0.333\n"
        "  unexpected or twice: 2\n"
        "    1970-01-01 00:00Z XXX  1 departures, 0 min in all, mean 0.000\n"
        "    1970-01-01 01:00Z EWR  1 departures, 90 min in all, mean 90.000\n"
        "  different: 1\n"
        "    1970-01-01 00:00Z EWR  departures 1, expected 2"
    )


def test_a_long_list_is_cut():
    rows = [Departures(hour * HOUR_MS, "EWR", 1, 0, 0.0) for hour in range(9)]
    assert "    … and 4 more" in compare([], rows).message(limit=5).splitlines()


def test_an_empty_answer_is_not_equal():
    assert not compare([], ROWS).is_equal
    assert compare([], []).is_equal
