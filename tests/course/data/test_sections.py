"""The lessons' data sections: prediction and measurement agree, for several seeds; late records; wrong predictions."""

import dataclasses
import re
from collections import Counter

import pytest
from pyspark.sql import functions as F  # noqa: N812

from course.curriculum.manifest import EXERCISES, LESSONS
from course.data import session as session_module
from course.data.comparison import Shape, compare_frames, compare_rows, fingerprint
from course.data.datasets import table
from course.data.oracle import ORACLES, expected
from course.data.sections import SECTIONS, Outcome, SectionStatus
from course.data.sections_jobs import plan_of
from course.data.sections_memory import results_of_copies
from course.data.spark_key_groups import java_hash_code, key_group, murmur_hash
from course.data.watermarks import late_in_the_engine, late_records
from refimpl.producer.key_groups import java_hash_code as java_hash_code_of
from refimpl.producer.key_groups import key_group_of
from refimpl.producer.key_groups import murmur_hash as murmur_hash_of
from refimpl.records import SerializationResult
from tests.cluster.places import RECEIPT, SECTION

pytestmark = pytest.mark.spark


def test_every_lesson_with_a_data_section_has_one():
    assert list(SECTIONS) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("lesson", SECTIONS)
def test_the_engine_measures_what_spark_predicts(spark, lesson):
    """Each lesson's notebook does so too, and is stored with the receipt."""
    outcome = SECTIONS[lesson].run(spark)
    assert outcome.is_done, outcome
    assert outcome.measured, "there is something to predict"
    assert re.fullmatch(
        rf"L{lesson:02d} ✓ (\d+) of \1 as predicted; \d+ rows of \w+, seed 7; [0-9a-f]{{12}}", outcome.receipt
    )
    if lesson == SECTION:  # `tests/cluster` does the same on executors that are processes of their own
        assert outcome.receipt == RECEIPT


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("lesson", [1, 2, 3, 7, 11])
def test_and_for_another_seed(spark, lesson):
    few = dataclasses.replace(SECTIONS[lesson], rows=min(SECTIONS[lesson].rows, 700))
    outcome = few.run(spark, 20110404)
    assert outcome.is_done, outcome


@pytest.mark.parametrize("lesson", SECTIONS)
def test_the_query_that_runs_can_be_read(lesson):
    section = SECTIONS[lesson]
    words, _, code = section.query.partition("\n\n    def ")
    assert words.startswith(f"Spark is asked, of {section.rows} rows of {section.data}:\n  ")
    assert section.ask.__doc__.split("\n")[0] in words
    assert code.startswith(section.ask.__name__ + "(")
    assert section.ask.__doc__ not in code
    assert not re.search(r"noqa|from pyspark| +$", section.query, re.MULTILINE)


def test_a_query_is_shown_with_its_expressions_and_numbers():
    query = SECTIONS[5].query
    assert query.count("def _with_salt(") == query.count("def subtask_of(") == 1, "each once"
    assert "_loads(" in query
    assert "def _loads(" not in query, "this one only writes the answer down"
    assert query.splitlines()[-1].startswith("    with NUM_SUBTASKS = 4, ")
    assert "NUM_SALTS = 16" in query.splitlines()[-1]
    assert "def java_hash_code(" not in query, "two modules away"
    assert "with" not in SECTIONS[0].query, "it has no numbers"


def test_a_plan_is_shown_as_stages_with_the_exchanges_between_them(spark):
    rows = table("zipf", spark, rows=10)
    twice = spark.sql("SELECT max(n) FROM (SELECT count(*) AS n FROM {rows} GROUP BY user)", rows=rows)
    assert repr(plan_of(twice)) == (
        "  [ Range → Project → HashAggregate ]\n      └─ Exchange: hash of user\n"
        "  [ HashAggregate → HashAggregate ]\n      └─ Exchange: all to one\n"
        "  [ HashAggregate ]"
    )
    assert plan_of(rows.repartition(3)).exchanges == ("round robin",)
    assert plan_of(rows.orderBy("user", "id")).exchanges == ("range of user, id",)
    assert plan_of(rows.where("id > 3")).num_exchanges == 0


def test_a_wrong_prediction_says_where(spark):
    section = dataclasses.replace(SECTIONS[0], rows=100)
    right = section.run(spark).measured
    airport = next(iter(right))
    outcome = section.run(spark, prediction={**right, airport: right[airport] + 1, "XXX": 3})
    assert outcome.status is SectionStatus.FAILED
    assert not outcome.is_done
    assert outcome.wrong == [
        f"{airport}: predicted {right[airport] + 1}, the engine measured {right[airport]}",
        "XXX: the engine has no such case",
    ]
    assert outcome.receipt.startswith("L00 ✗ 1 of 3 as predicted")
    assert "✗" in repr(outcome)
    assert "<table>" in outcome._repr_html_()
    assert section.run(spark, prediction={}).wrong[0].endswith(f"the engine measured {right[airport]}")


def test_without_spark_a_section_is_skipped_and_not_done(monkeypatch):
    def cannot(*_arguments, **_options):
        raise session_module.SparkUnavailable("Spark could not start: Java is missing; install it.")

    monkeypatch.setattr("course.data.sections.spark", cannot)
    outcome = SECTIONS[5].run()
    assert outcome.status is SectionStatus.SKIPPED
    assert not outcome.is_done
    assert repr(outcome) == "L05 ○ skipped: Spark could not start, because java is missing; install it."


def test_the_receipt_depends_on_what_was_predicted_and_measured():
    def receipt(predicted, measured):
        return Outcome(SECTIONS[0], SectionStatus.PASSED, 7, predicted, measured).receipt

    assert receipt({"a": 1}, {"a": 1}) == receipt({"a": 1}, {"a": 1})
    assert receipt({"a": 1}, {"a": 1}) != receipt({"a": 2}, {"a": 2})


# -- oracles ---------------------------------------------------------------------------------------


def test_the_demo_has_an_oracle_and_every_lesson_a_section():
    assert {"demo", "0.1", "3.1"} <= set(ORACLES) <= {"demo", *EXERCISES}
    assert set(LESSONS) <= set(SECTIONS)


def test_the_oracle_of_the_serializer_counts_what_the_serializer_says(spark):
    frame = table("documents", spark, rows=300)
    records = [bytes(row.size_bytes) for row in frame.orderBy("id").collect()]
    for row in expected("3.1", frame):
        counts = Counter(results_of_copies(records, row.segment_size))
        assert counts == {
            result: number
            for result, number in (
                (SerializationResult.FULL_RECORD, row.full_record),
                (SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL, row.partial),
                (SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL, row.full_record_and_buffer),
            )
            if number
        }


def test_the_oracle_of_the_map_counts_early_flights_as_0(spark):
    frame = spark.sql("SELECT 0L AS event_time_ms, 'EWR' AS origin, explode(array(-5, 7)) AS dep_delay_minutes")
    assert [row.delay_sum_minutes for row in expected("0.1", frame)] == [7]
    assert [row.delay_sum_minutes for row in expected("demo", frame)] == [2]


def test_no_oracle_for_what_is_no_exercise():
    with pytest.raises(KeyError, match=r"there is no oracle for 9.9; there are demo, 0.1, 3.1"):
        expected("9.9", None)


# -- comparison ------------------------------------------------------------------------------------


def test_rows_of_any_shape_are_compared_by_their_keys():
    shape = Shape(("user", "day", "clicks", "mean"), 2)
    want = [("a", 1, 5, 0.5), ("b", 1, 3, 0.1), ("b", 1, 4, 0.1)]
    assert compare_rows(reversed(want), want, shape).message() == "equal: 3 rows"
    assert compare_rows([want[0], want[1], ("b", 1, 4, 0.1 + 1e-12)], want, shape).is_equal
    found = compare_rows([("a", 1, 6, 0.5), ("b", 1, 4, 0.1), ("b", 1, 3, 0.1), ("c", 2, 1, 0.0)], want, shape)
    assert found.message() == (
        "4 rows, expected 3:\n"
        "  unexpected or twice: 1\n"
        "    c 2  clicks 1, mean 0.0\n"
        "  different: 1\n"
        "    a 1  clicks 6, expected 5"
    )


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"\(1,\) is not a row of a, b"):
        compare_rows([(1,)], [], Shape(("a", "b"), 1))
    with pytest.raises(ValueError, match="has 1 to 2 keys, not 3"):
        Shape(("a", "b"), 3)


def test_frames_are_compared_in_spark(spark):
    want = table("zipf", spark, rows=2_000)
    assert compare_frames(want.repartition(3), want, ["id"]).message() == "equal: 2000 rows"
    wrong = want.where("id <> 5").withColumn(
        "amount_cents", F.when(F.col("id") == 9, -1).otherwise(F.col("amount_cents"))
    )
    found = compare_frames(wrong, want, ["id"])
    assert (len(found.missing), len(found.unexpected), len(found.different)) == (1, 0, 1)
    assert "    9  amount_cents -1, expected " in found.message()
    assert "1999 rows, expected 2000" in found.message()
    with pytest.raises(ValueError, match="'x' is no column"):
        compare_frames(wrong, want, ["x"])


def test_equal_rows_do_not_cancel_in_a_fingerprint(spark):
    assert fingerprint(spark.sql("SELECT explode(array(1, 1, 2)) AS n")) != fingerprint(
        spark.sql("SELECT explode(array(3, 3, 2)) AS n")
    )
    assert fingerprint(spark.range(0)).num_rows == 0


# -- key groups, and watermarks ----------------------------------------------------------------------


def test_key_groups_in_spark_are_the_engines(spark):
    words = ["", "a", "EWR", "user-00017", "ÄÖ€", "日本語", *(f"key {i * 7919}" for i in range(300))]
    key = F.col("word")
    code = java_hash_code(key)
    frame = spark.createDataFrame([(word,) for word in words], "word string")
    for row in frame.select(
        "word", code.alias("code"), murmur_hash(code).alias("mixed"), key_group(key, 128)
    ).collect():
        assert row.code == java_hash_code_of(row.word) & 0xFFFFFFFF
        assert row.mixed == murmur_hash_of(java_hash_code_of(row.word))
        assert row[3] == key_group_of(row.word, 128)


def test_murmur_at_the_ends_of_32_bits(spark):
    codes = [0, 1, 2**31 - 1, 2**31, 2**32 - 1]
    frame = spark.createDataFrame([(code,) for code in codes], "code bigint")
    found = [row[0] for row in frame.select(murmur_hash(F.col("code"))).collect()]
    assert found == [murmur_hash_of(code) for code in codes]


@pytest.mark.slow
def test_a_watermark_per_record_finds_more_late_records_than_one_per_batch(spark):
    found = late_records(spark, num_records=300, bounds_min=(0,), num_batches=(4, 1))
    assert found.num_records == 300
    assert found.spark[1] == {0: 0}, "one batch: nothing can be late"
    assert found.engine[0] > found.spark[4][0]
    assert "ours, per record" in repr(found)


def test_a_record_is_late_when_a_later_hour_came_first():
    hour = 3_600_000
    rows = [{"origin": "EWR", "event_time_ms": time, "dep_delay_minutes": 0} for time in (0, hour + 1, 5, hour + 2)]
    assert late_in_the_engine(rows, bound_min=0) == 1
    assert late_in_the_engine(rows, bound_min=1) == 0
