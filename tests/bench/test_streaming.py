"""Structured Streaming beside the engine: every contender once, and what it says is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench import streaming
from tests.bench.measure import WrongAnswerError
from tests.bench.streaming import Contender, NotShownError, as_table, by_hand, latency, lateness, take_turns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]
SHORTEST = "spark.sql.streaming.realTimeMode.minBatchDuration"


def test_each_way_shows_every_record(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "REAL_TIME_BATCH", "1 second")
    spark.conf.set(SHORTEST, "1000")
    try:
        rows = latency(spark, rounds=1, seconds=0.2)
    finally:
        spark.conf.unset(SHORTEST)
    assert [row["contender"] for row in rows] == [
        f"{what}: {who}"
        for what in ("passed on", "counted by key")
        for who in ("engine", "Spark micro-batch", "Spark real-time")
    ]
    for row in rows:
        assert "not measured" not in row, row
        assert 0 < row["p50_ms"]["median"] <= row["p99_ms"]["median"]


def test_spark_loses_none_in_one_batch_and_the_engine_those_behind_its_watermark(spark: SparkSession) -> None:
    (row,) = lateness(spark, num_flights=600, batches=(1, 4), bounds=(0,))
    assert row["engine, each record"] > row["each 64"] > 0
    assert (row["batches of 4096"], row["Spark, 1 micro-batch"]) == (0, 0)
    assert row["4 micro-batches"] <= row["engine, each record"]


def test_what_is_late_by_hand() -> None:
    hour = 3_600_000
    flights = [{"event_time_ms": time, "origin": "JFK"} for time in (0, hour, hour - 1, hour + 5, hour - 1)]
    assert by_hand(flights, 0) == {(0, "JFK"): 1, (hour, "JFK"): 2}
    assert by_hand(flights, 5) == {(0, "JFK"): 2, (hour, "JFK"): 2}
    assert by_hand(flights, 6) == {(0, "JFK"): 3, (hour, "JFK"): 2}


def test_what_cannot_be_driven_stands_in_the_table_and_a_wrong_answer_ends_it() -> None:
    def fail() -> dict[str, float]:
        raise NotShownError("needs Kafka")

    def lie() -> dict[str, float]:
        raise WrongAnswerError("one is missing")

    rows = take_turns([Contender("a", lambda: {"p50_ms": 1.5}), Contender("b", fail)], rounds=2)
    table = as_table(rows).splitlines()
    assert table[1].split() == ["a", "1.50", "[1.50", "..", "1.50]"]
    assert table[2] == "b          not measured: needs Kafka"
    with pytest.raises(WrongAnswerError):
        take_turns([Contender("c", lie)], rounds=1)


def test_each_way_comes_to_one_answer_and_the_command_writes_json(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    words = ["--only", "throughput", "--rounds", "1", "--flights", "300", "--json", str(file)]
    assert streaming.main(words) == 0
    found = json.loads(file.read_text())
    assert found["format"] == streaming.FORMAT
    assert found["machine"]["versions"]["pyspark"]
    names = [row["contender"] for row in found["throughput"]]
    assert names == ["engine, 1 subtask", "Spark, 1 micro-batch", "Spark, 8 micro-batches"]
    assert "flights_per_s" in capsys.readouterr().out
