"""Lesson 12's parts at work: who is named while a job runs, and Storm with another queue in the race."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.figures.pressure import PHASES, looks_at_a_job
from course.swap.rule import part_of

SLOW = ("nobody", "parse-0", "window-1", "sink-0")


def wrong(exercise, name):
    return part_of(next(each for each in zoo(exercise) if each.name.startswith(name)), "find_bottleneck")


def test_in_each_phase_it_is_the_slow_one():
    looks, num_in = looks_at_a_job()
    assert {(look.phase, look.culprit) for look in looks} == set(enumerate(SLOW))
    assert len(SLOW) == len(PHASES)
    assert num_in > 4_000


@pytest.mark.parametrize("answer", right_answers("12.1"), ids=lambda each: each.name)
def test_a_right_rule_names_whom_ours_names(answer):
    report = swap.run("12.1", part_of(answer, "find_bottleneck"))
    assert (report.is_equal, report.taken_out, report.num_calls) == (True, (), len(report.looks))


def test_who_blames_the_victim_is_seen_to():
    report = swap.run("12.1", wrong("12.1", "w01"))
    assert not report.is_equal
    named = {name for name, look in zip(report.named, report.looks, strict=True) if look.phase == 3}
    assert "sink-0" not in named
    assert "✗" in repr(report)


def test_a_rule_that_raises_is_taken_out_and_ours_goes_on():
    report = swap.run("12.1", lambda loads, exchanges: 1 / 0)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.is_equal
    assert "taken out again in its call number 1" in repr(report)


def test_what_is_no_answer_is_not_believed():
    report = swap.run("12.1", lambda loads, exchanges: 7)
    assert report.taken_out[0].startswith("TypeError")
    assert report.is_equal


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("answer", right_answers("12.2"), ids=lambda each: each.name)
def test_storm_with_a_right_queue_does_the_same_second_by_second(answer):
    report = swap.run("12.2", part_of(answer))
    assert (report.is_equal, report.taken_out) == (True, ())
    assert report.num_calls > 1_000


@pytest.mark.slow
def test_one_mark_writes_to_the_store_again_and_again():
    report = swap.run("12.2", wrong("12.2", "w01"))
    ours, theirs = report.num_writes
    assert theirs > 20 * ours
    assert "✗ NOT what ours does" in repr(report)


@pytest.mark.slow
def test_a_queue_that_loses_a_record_is_taken_out_and_the_race_goes_on():
    report = swap.run("12.2", wrong("12.2", "w10"))
    assert "where" in report.taken_out[0]
    assert report.num_in > 5_000


def test_both_run_in_virtual_time_only():
    for exercise in ("12.1", "12.2"):
        with pytest.raises(ValueError, match="no driver 'threads' here; there is simulation"):
            swap.run(exercise, driver="threads")


def test_a_rule_about_a_function_stands_at_the_gate():
    report = swap.run("12.3")
    assert (report.num_kept_out, report.num_wrong) == (3, 3)
    assert "✓ in the job, none lost" in repr(report)
