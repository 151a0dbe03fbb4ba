"""Who writes and reads blocking results changes hands in a running job, and who says which jobs may run."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.rule import part_of

pytestmark = pytest.mark.slow


def function_of(specimen):
    names = {}
    exec(specimen.source, names)
    return names["why_not"]


def wrong(exercise, name):
    (found,) = [each for each in zoo(exercise) if each.name == name]
    return found


# -- a blocking result -------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("answer", right_answers("8.1"), ids=lambda each: each.name)
def test_a_right_part_changes_no_count(answer, driver):
    report = swap.run("8.1", part_of(answer), driver=driver, records=200)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert (report.num_in, report.num_calls > 5) == (200, True)


@pytest.mark.parametrize("driver", ["simulation", "threads"])
def test_our_part_changes_no_count_and_has_no_view_as_flights_without_end_have_no_batch(driver):
    report = swap.run("8.1", driver=driver, records=200)
    assert (report.num_in, report.num_lost, report.is_equal, report.look) == (200, 0, True, None)
    assert report.num_before == 100


@pytest.mark.parametrize("method", ["add", "flush", "finish", "create_view"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "behind"])
def test_a_part_that_raises_is_taken_out_and_ours_makes_the_same_call(method, is_late):
    """Also where it has done all it had to do: what it wrote is not written twice."""
    part = part_of(right_answers("8.1")[0])

    def breaking(self, *given):
        if not is_late:
            raise ZeroDivisionError("division by zero")
        getattr(part, method)(self, *given)
        raise ZeroDivisionError("division by zero")

    broken = type("Breaking", (part,), {method: breaking})
    report = swap.run("8.1", broken, records=200)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_an_answer_that_is_none_is_taken_out():
    report = swap.run("8.1", part_of(wrong("8.1", "w12_add_says_nothing")), records=200)
    assert report.taken_out == ("add answered None",)
    assert (report.num_lost, report.is_equal) == (0, True)


def test_a_lost_end_is_seen():
    assert swap.run("8.1", part_of(wrong("8.1", "w02_tail_lost")), records=200).error


# -- which jobs may run ------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", right_answers("8.2"), ids=lambda each: each.name)
def test_a_right_function_lets_the_same_jobs_run(answer):
    report = swap.run("8.2", function_of(answer))
    assert (report.is_equal, report.taken_out) == (True, ())
    assert report.num_calls >= 6


@pytest.mark.parametrize(
    ("name", "num_as_ours"), [("w04_consumer_waits", 5), ("w13_blocking_is_bad", 5), ("w01_bounded_by_name", 5)]
)
def test_a_wrong_one_lets_in_what_fails_or_keeps_out_what_runs(name, num_as_ours):
    report = swap.run("8.2", function_of(wrong("8.2", name)))
    assert (report.num_as_ours, report.is_equal) == (num_as_ours, False)


def test_what_is_let_in_and_cannot_run_is_said():
    report = swap.run("8.2", function_of(wrong("8.2", "w04_consumer_waits")))
    assert dict(report.lines)["blocking, an end, all at once"].startswith("✗ let in, and it cannot run: the consumer")


def test_an_answer_that_is_no_text_is_taken_out_and_ours_answers():
    report = swap.run("8.2", function_of(wrong("8.2", "w10_true_or_false")))
    assert report.taken_out == ("it answered False",)
    assert report.is_equal


def test_our_rule_keeps_three_wrong_parts_out_of_the_job():
    report = swap.run("8.3", records=200)
    assert (report.num_kept_out, report.num_wrong) == (3, 3)
    assert "    ✓ in the job, none lost" in report.lines
