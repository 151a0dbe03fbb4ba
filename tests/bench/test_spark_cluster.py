"""One job on Spark's executors and beside them: every contender once, and a wrong answer has no speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench import spark_cluster
from tests.bench.measure import WrongAnswerError
from tests.bench.spark_cluster import CONTENDERS, FORMAT, main, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def test_all_come_to_one_answer_and_what_is_printed_is_what_is_written(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    assert main(["--rows", "2000", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert (found["format"], found["rows"], found["rounds"]) == (FORMAT, 2000, 1)
    assert found["machine"]["versions"]["PySpark"]
    rows = found["contenders"]
    assert [row["name"] for row in rows] == [*CONTENDERS]
    for row in rows:
        assert row["rows_per_s"]["median"] > 0
        assert set(row["times"]) == set(CONTENDERS) - {row["name"]}
        assert {"driver, JVM", "driver, Python"} <= set(row["peak_mib"])
        assert all(mib > 1 for mib in row["peak_mib"].values())
        assert row["cpu_s"]["driver, JVM"] > 0
    assert "driver, Python worker" in rows[0]["peak_mib"]  # on this master the JVM is the only executor
    printed = capsys.readouterr().out
    assert spark_cluster.as_table(rows) in printed
    assert f"All of it: {file}" in printed


def test_who_loses_a_row_or_counts_it_for_another_user_is_found_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTENDERS, "Spark", lambda frame: spark_cluster.by_spark(frame.limit(99)))
    with pytest.raises(WrongAnswerError, match="Spark: 99 of 100 rows came"):
        measure(spark, ["Spark"], 1000, 1)
    monkeypatch.setitem(CONTENDERS, "threads", lambda _frame: {"nobody": (100, 0)})
    with pytest.raises(WrongAnswerError, match=r"threads: nobody has \(100, 0\), with Spark, every row None"):
        measure(spark, ["Spark, every row", "threads"], 1000, 1)


@pytest.mark.parametrize("words", [["--rows", "0"], ["--rounds", "0"], ["--only", "nobody"]])
def test_wrong_use_is_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
