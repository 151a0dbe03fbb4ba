"""All parts of a learner in one job: none, some, all, and some that fail in it."""

from __future__ import annotations

import dataclasses

import pytest

from course.curriculum.manifest import EXERCISES
from course.curriculum.specimens import right_answers
from course.learner.own_parts import part_in
from course.peer import with_flink
from course.swap.all_parts import run_all_parts


@pytest.fixture(autouse=True)
def no_flink(monkeypatch):
    monkeypatch.setattr(with_flink, "missing", lambda: "there is none")


def part(exercise, number=0, method="", does="1 / 0"):
    """A right part; with `method`, one that does something else from the twentieth call of it on."""
    source = right_answers(exercise)[number].source
    if not method:
        return part_in(exercise, source)
    name = part_in(exercise, source).__name__
    return part_in(
        exercise,
        f"{source}\n\ncalls = []\n\n@L.exercise('{exercise}')\nclass Breaking({name}):\n"
        f"    def {method}(self, *given):\n        calls.append(1)\n"
        f"        if len(calls) >= 20:\n            {does}\n        return super().{method}(*given)\n",
    )


def everything(number):
    return {each: part(each, min(number, len(right_answers(each)) - 1)) for each in EXERCISES}


def row(report, exercise):
    (found,) = [each for each in report.rows if each.exercise == exercise]
    return found


def assert_is_right(report):
    assert (report.error, report.is_equal, report.flink.is_equal) == ("", True, True)
    assert report.restored_id > 0
    assert [each.exercise for each in report.rows] == list(EXERCISES)
    assert [each.exercise for each in report.rows if each.is_here and not each.num_calls] == []


def test_without_a_part_of_the_learners_ours_are_all_there():
    report = run_all_parts({})
    assert_is_right(report)
    assert {each.whose for each in report.rows} == {"the course's"}
    said = repr(report)
    assert "✓ 600 flights, seed 1: the job lost a file of a checkpoint, crashed, and went on from checkpoint" in said
    assert "✓ Flink 1.11.4 at the other end: 400 records, byte for byte what it sent" in said
    assert "✗" not in said


@pytest.mark.parametrize("number", [0, 1, 2])
def test_all_parts_of_a_learner_together_count_what_ours_count(number):
    report = run_all_parts(everything(number), seed=number + 1)
    assert_is_right(report)
    assert {each.whose for each in report.rows} == {"yours"}
    assert [each.exercise for each in report.rows if each.taken_out] == []


def test_a_seed_is_one_bad_day_and_another_seed_another():
    first, again, other = (run_all_parts({}, seed) for seed in (3, 3, 4))
    assert repr(first) == repr(again)
    assert repr(first) != repr(other)
    assert_is_right(other)


def test_what_has_no_place_in_such_a_job_says_where_it_has_one():
    report = run_all_parts({"17.2": part("17.2")}, num_flights=200)
    assert (row(report, "17.2").whose, row(report, "17.2").is_here) == ("yours", False)
    assert "17.2  Sink" in repr(report)
    assert 'has a run of its own: L.swap("17.2")' in repr(report)


@pytest.mark.parametrize(
    ("exercise", "method"),
    [("3.1", "copy_to_buffer_builder"), ("4.1", "get_next_record"), ("11.1", "on_recycled"), ("14.1", "on_barrier"),
     ("18.2", "news")],
)  # fmt: skip
def test_one_that_raises_is_named_and_taken_out_and_the_others_stay(exercise, method):
    report = run_all_parts({**everything(0), exercise: part(exercise, method=method)})
    assert (report.error, report.is_equal) == ("", True)
    assert [each.exercise for each in report.rows if each.taken_out] == [exercise]
    assert row(report, exercise).said.endswith("then taken out")
    assert f"✗ {exercise} Breaking was taken out, and ours went on: ZeroDivisionError: division by zero" in repr(report)


def test_one_that_raises_when_the_graph_is_made_is_taken_out():
    def is_chainable(*_given):
        raise KeyError("edge")

    report = run_all_parts({"6.1": is_chainable}, num_flights=200)
    assert row(report, "6.1").taken_out[0].startswith("KeyError")
    assert (report.error, report.is_equal) == ("", True)


def test_a_wrong_result_is_told():
    report = run_all_parts({"0.1": lambda flight: (flight["origin"], 7)}, num_flights=200)
    assert not report.is_equal
    assert "✗ 200 flights: the hours are NOT what ours count" in repr(report)


def test_what_stops_the_job_is_told():
    report = run_all_parts({"0.1": lambda _flight: 7}, num_flights=200)
    assert report.error
    assert f"✗ the job stopped: {report.error}" in repr(report)


def test_a_part_that_flink_does_not_understand_is_told():
    source = right_answers("18.1")[0].source.replace('">i16s", credit', '">q16s", credit')
    report = run_all_parts({"18.1": part_in("18.1", source)}, num_flights=200)
    assert not report.flink.is_equal
    assert "✗ Flink 1.11.4 at the other end: " in repr(report)


def test_what_is_noted_of_a_part_and_of_spark_is_said():
    report = run_all_parts({}, notes={"2.1": ", as yours has not passed"}, spark="there is no Java", num_flights=200)
    assert row(report, "2.1").whose == "the course's, as yours has not passed"
    assert "○ Spark did not count: there is no Java" in repr(report)


def test_a_part_called_once_is_not_called_times():
    assert row(run_all_parts({}, num_flights=200), "6.2").said == "called once"
    made = dataclasses.replace(row(run_all_parts({}, num_flights=200), "6.2"), num_calls=1_234)
    assert made.said == "called 1,234 times"
