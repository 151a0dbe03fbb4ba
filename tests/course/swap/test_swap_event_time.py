"""Who says how far time has come changes hands in a running job, and back when it fails."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.event_time import _GuardedValve
from course.swap.guard import Guard
from course.swap.rule import part_of
from refimpl.consumer import StatusWatermarkValve
from refimpl.records import StreamStatus, Watermark

pytestmark = pytest.mark.slow

EXERCISES = ["13.1", "13.2"]
IDLE, ACTIVE = StreamStatus.IDLE, StreamStatus.ACTIVE


def right(exercise):
    return [pytest.param(exercise, part_of(each), id=f"{exercise}-{each.name}") for each in right_answers(exercise)]


@pytest.mark.parametrize("driver", ["simulation", "threads"])
@pytest.mark.parametrize(("exercise", "part"), [case for each in EXERCISES for case in right(each)])
def test_a_right_part_changes_no_count(exercise, part, driver):
    report = swap.run(exercise, part, driver=driver, records=200)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert report.num_calls > 5


@pytest.mark.parametrize(("exercise", "method"), [
    ("13.1", "on_event"), ("13.1", "on_periodic_emit"), ("13.2", "input_watermark"),
])  # fmt: skip
def test_a_part_that_raises_is_taken_out_and_time_goes_on(exercise, method):
    part = part_of(right_answers(exercise)[0])
    calls = []

    def breaking(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError("division by zero")
        return getattr(super(broken, self), method)(*given)

    broken = type("Breaking", (part,), {method: breaking})
    report = swap.run(exercise, broken, records=200)
    assert report.taken_out[0] == "ZeroDivisionError: division by zero"
    assert (report.num_lost, report.is_equal, report.error) == (0, True, "")


def test_what_is_no_watermark_is_not_let_into_the_job():
    (found,) = [each for each in zoo("13.2") if each.name == "w16_one_or_none"]
    report = swap.run("13.2", part_of(found), records=200)
    assert report.taken_out[0].startswith("TypeError")
    assert report.is_equal


def test_a_valve_that_leaves_windows_too_early_closed_is_seen_in_the_counts():
    (found,) = [each for each in zoo("13.2") if each.name == "w01_maximum"]
    assert not swap.run("13.2", part_of(found)).is_equal


HEARD = [
    ("watermark", 0, 10), ("watermark", 1, 13), ("watermark", 2, 8), (IDLE, 2), ("watermark", 0, 20), (ACTIVE, 2),
    ("watermark", 2, 12), (IDLE, 1), ("watermark", 0, 30), ("watermark", 2, 25), (IDLE, 0), (IDLE, 2), (ACTIVE, 1),
    ("watermark", 1, 40), (ACTIVE, 0), ("watermark", 0, 35), ("watermark", 1, 50), ("watermark", 0, 45),
]  # fmt: skip


def hear(valve, heard):
    if heard[0] == "watermark":
        return valve.input_watermark(Watermark(heard[2]), heard[1])
    return valve.input_status(*heard)


@pytest.mark.parametrize("num_before", range(len(HEARD)))
@pytest.mark.parametrize("answer", right_answers("13.2"), ids=lambda each: each.name)
def test_a_valve_that_comes_in_late_knows_what_ours_knew(answer, num_before):
    alone, before = StatusWatermarkValve(3), StatusWatermarkValve(3)
    for heard in HEARD[:num_before]:
        assert hear(alone, heard) == hear(before, heard)
    with Guard(part_of(answer)) as guard:
        theirs = _GuardedValve(guard, before)
        assert [hear(theirs, heard) for heard in HEARD[num_before:]] == [hear(alone, h) for h in HEARD[num_before:]]
        assert theirs.channel_watermarks == alone.channel_watermarks
        assert (guard.what_happened, guard.num_calls) == ([], 1 + len(HEARD) - num_before)
