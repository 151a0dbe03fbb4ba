"""A learner's sink with two phases in a job that crashes between them; and a job that goes on where it fails."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.rule import part_of

pytestmark = pytest.mark.slow

RIGHT = [pytest.param(part_of(each), id=each.name) for each in right_answers("17.2")]
PLAIN = RIGHT[0].values[0]


def wrong(name):
    (found,) = [part_of(each) for each in zoo("17.2") if each.name == name]
    return found


@pytest.mark.parametrize("part", [pytest.param(None, id="ours"), *RIGHT])
def test_each_record_comes_out_once_through_two_crashes(part):
    report = swap.run("17.2", part)
    assert report.is_equal, repr(report)
    assert (report.num_out, report.taken_out, report.num_left) == (report.num_records, (), 0)
    assert [number > 0 for _, number in report.crashes] == [True, True]
    assert "✓ each exactly once" in repr(report)


@pytest.mark.parametrize("name", ["w01_commits_at_the_barrier", "w12_commits_open_at_restore"])
def test_who_commits_too_early_gives_records_twice(name):
    report = swap.run("17.2", wrong(name))
    assert report.num_twice > 0 == report.num_lost
    assert "more than once" in repr(report)


@pytest.mark.parametrize("name", ["w07_aborts_all_at_restore", "w14_no_pre_commit", "w16_state_before_the_cut"])
def test_who_forgets_what_is_pending_loses_records(name):
    report = swap.run("17.2", wrong(name))
    assert report.num_lost > 0 == report.num_twice


def test_what_nobody_aborts_is_left_behind():
    assert swap.run("17.2", wrong("w09_leaves_open")).num_left > 0


@pytest.mark.parametrize("method", ["__init__", "restore", "invoke", "snapshot", "complete"])
def test_a_part_that_raises_is_taken_out_and_nothing_is_lost(method):
    calls = []

    def breaking(self, *given):
        calls.append(1)
        if len(calls) == 4:
            raise ZeroDivisionError("division by zero")
        return getattr(super(broken, self), method)(*given)

    broken = type("Breaking", (PLAIN,), {method: breaking})
    report = swap.run("17.2", broken)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.is_equal, repr(report)


def test_what_is_no_state_is_not_let_into_a_checkpoint():
    report = swap.run("17.2", wrong("w24_a_dict"))
    assert report.taken_out[0].startswith("TypeError")
    assert report.is_equal
