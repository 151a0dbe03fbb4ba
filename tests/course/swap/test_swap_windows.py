"""A learner's windows in a job that crashes, and that goes on where they fail."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.rule import part_of

pytestmark = pytest.mark.slow

RIGHT = [pytest.param(part_of(each), id=each.name) for each in right_answers("17.1")]
PLAIN = RIGHT[0].values[0]


def wrong(name):
    (found,) = [part_of(each) for each in zoo("17.1") if each.name == name]
    return found


@pytest.mark.parametrize("part", [pytest.param(None, id="ours"), *RIGHT])
def test_every_window_is_what_its_records_come_to(part):
    report = swap.run("17.1", part)
    assert report.is_equal, repr(report)
    assert (report.num_late, report.taken_out) == (0, ())
    assert report.num_windows > 50
    assert report.crashed_at > 0


@pytest.mark.parametrize(
    "name", ["w03_time_of_the_records", "w04_fires_at_a_record", "w19_restores_nothing", "w21_snapshot_ends_it"]
)
def test_wrong_windows_are_seen(name):
    report = swap.run("17.1", wrong(name))
    assert report.num_wrong > 0
    assert "are not what their records come to" in repr(report)


@pytest.mark.parametrize("method", ["__init__", "restore", "on_record", "on_watermark", "snapshot"])
def test_a_part_that_raises_is_taken_out_and_nothing_is_lost(method):
    calls = []

    def breaking(self, *given):
        calls.append(1)
        if len(calls) == 4:
            raise ZeroDivisionError("division by zero")
        return getattr(super(broken, self), method)(*given)

    broken = type("Breaking", (PLAIN,), {method: breaking})
    report = swap.run("17.1", broken)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert report.is_equal, repr(report)


def test_what_is_no_state_is_not_let_into_a_checkpoint():
    report = swap.run("17.1", wrong("w22_only_the_sum"))
    assert report.taken_out[0].startswith("TypeError")
    assert report.is_equal
