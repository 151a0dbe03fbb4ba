"""Lesson 16's part at work: who gives a job's slots away changes hands while members of its cluster die."""

from __future__ import annotations

import pytest

from course import swap
from course.curriculum.specimens import right_answers, zoo
from course.swap.guard import Guard
from course.swap.rule import part_of
from course.swap.slots import _Watched
from refimpl.cluster import SlotId, SlotPool

RIGHT = [pytest.param(part_of(each), id=each.name) for each in right_answers("16.1")]


def wrong(name):
    (found,) = [part_of(each) for each in zoo("16.1") if each.name == name]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", RIGHT)
def test_a_right_part_starts_the_job_again_and_again(part):
    report = swap.run("16.1", part)
    assert (report.num_lost, report.is_equal, report.taken_out, report.error) == (0, True, (), "")
    assert [number for _, number in report.given] == [3, 3, 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "why"),
    [("w01_handed_out_twice", "handed out twice"), ("w08_never_free_again", "was let wait"),
     ("w18_hands_out_the_lost", "no slot of the job"), ("w20_true_or_false", "no slot of the job")],
)  # fmt: skip
def test_what_would_harm_the_job_is_taken_out_and_ours_goes_on(name, why):
    report = swap.run("16.1", wrong(name))
    assert why in report.taken_out[0]
    assert (report.is_equal, report.error) == (True, "")
    assert "taken out again in its call number" in repr(report)


def slots_of(pool):
    """What the pool says of itself."""
    return {each.allocation.number: each.wish for each in pool.slots}, list(pool.waiting)


def do(pool, step):
    """A little life of a pool, step by step."""
    ids = [each.allocation for each in pool.slots]
    match step:
        case ["request", wish]:
            pool.request(wish, 0.0)
        case ["offer", *_]:
            waiting = next(iter(pool.waiting.values()))
            pool.offer("tm-0", [(waiting, SlotId("tm-0", waiting.number))], 0.0)
        case ["again"]:
            pool.offer("tm-0", [(each.allocation, each.slot) for each in pool.slots], 0.0)
        case ["release", index]:
            pool.release(ids[index], 0.0)
        case ["cancel", wish]:
            pool.cancel(wish)
        case ["lost"]:
            pool.task_manager_lost("tm-0", "gone")
            pool.task_manager_found("tm-0")


LIFE = [
    ["request", "a"], ["request", "b"], ["offer"], ["again"], ["request", "c"], ["release", 0], ["cancel", "c"],
    ["request", "h"], ["offer"], ["again"], ["release", 0], ["request", "d"], ["request", "e"], ["release", 1],
    ["lost"], ["request", "f"], ["offer"], ["release", 0], ["request", "g"],
]  # fmt: skip


def new_pool():
    pool = SlotPool("counts", 1)
    pool.task_manager_found("tm-0")
    pool.resource_manager_found()
    return pool


@pytest.mark.parametrize("num_before", range(len(LIFE)))
@pytest.mark.parametrize("part", RIGHT)
def test_a_part_that_comes_in_late_knows_what_ours_knew(part, num_before):
    alone, pool = new_pool(), new_pool()
    for step in LIFE[:num_before]:
        do(alone, step)
        do(pool, step)
    with Guard(part) as guard:
        _Watched(guard, pool)
        for step in LIFE[num_before:]:
            do(alone, step)
            do(pool, step)
            assert slots_of(pool) == slots_of(alone), step
        assert guard.what_happened == []


def test_a_part_that_raises_leaves_its_place_to_ours():
    class Breaking(RIGHT[0].values[0]):
        def release(self, slot):
            raise ZeroDivisionError("division by zero")

    alone, pool = new_pool(), new_pool()
    with Guard(Breaking) as guard:
        _Watched(guard, pool)
        for step in LIFE:
            do(alone, step)
            do(pool, step)
            assert slots_of(pool) == slots_of(alone), step
        assert guard.what_happened[0] == "ZeroDivisionError: division by zero"


def test_a_rule_about_matchings_stands_at_the_gate():
    report = swap.run("16.2")
    assert (report.num_kept_out, report.num_wrong) == (3, 3)
    assert "✓ in the job, none lost" in repr(report)
    opened = swap.run("16.2", lambda _new_pool: True)
    assert opened.num_kept_out == 0
    assert "✗ taken out again: slot" in repr(opened)
