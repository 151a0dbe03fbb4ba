"""Who says when a reader is told changes hands in a running job, and back when it fails."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.rule import part_of

pytestmark = pytest.mark.slow

PARTS = [pytest.param(part_of(each), id=each.name) for each in right_answers("5.3")]


@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize("part", PARTS)
def test_a_right_policy_changes_no_count(part, driver):
    report = swap.run("5.3", part, driver=driver, records=200)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 0 or driver == "threads"


def test_a_right_policy_takes_the_very_steps_that_ours_takes():
    ours = swap.run("5.3", None, records=200)
    assert {swap.run("5.3", part_of(each), records=200).steps for each in right_answers("5.3")} == {ours.steps}


@pytest.mark.parametrize("method", ["next_deadline", "is_due"])
def test_a_policy_that_raises_is_taken_out_and_ours_goes_on(method):
    def breaking(self, *given):
        raise ZeroDivisionError("division by zero")

    broken = type("Breaking", (part_of(right_answers("5.3")[0]),), {method: breaking})
    report = swap.run("5.3", broken, records=200)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


@pytest.mark.parametrize(("name", "why"), [
    ("w03_for_nothing", "for nothing that waits"), ("w04_after_it", "nothing was due at"),
])  # fmt: skip
def test_a_policy_that_would_keep_the_clock_running_for_ever_is_taken_out(name, why):
    (found,) = [each for each in zoo("5.3") if each.name == name]
    report = swap.run("5.3", part_of(found), records=200)
    assert why in report.taken_out[0]
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")
