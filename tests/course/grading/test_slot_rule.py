"""Exercise 16.2: rules about slot pools, right in unusual ways and wrong in usual ones."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import harness, right_answers, unseen, zoo
from course.curriculum.stubs import solution
from course.grading.judge import judge
from course.swap.rule import part_of

ALL_BUT = {
    "never_asked": "pool.offer(9, 'a')",
    "never_waits": "pool.request(1); pool.request(2); pool.offer(9, 'a')",
    "never_order": "pool.offer(9, 'a'); pool.request(1); pool.request(2); pool.release(9)",
    "never_release": "pool.request(1); pool.request(2); pool.offer(9, 'a'); pool.request(3); pool.offer(8, 'a')",
    "never_again": "pool.request(1); pool.request(2); pool.offer(9, 'a'); pool.request(3); pool.release(9)",
    "never_late": (
        "pool.offer(9, 'a'); pool.offer(9, 'a'); pool.request(1); pool.request(2); pool.request(3); "
        "pool.offer(8, 'a'); pool.release(8)"
    ),
    "never_before": (
        "pool.offer(9, 'a'); pool.offer(9, 'a'); pool.request(1); pool.request(2); pool.request(3); pool.request(4);"
        "pool.offer(8, 'a'); pool.offer(2, 'a'); pool.release(8)"
    ),
    "never_gone": (
        "pool.offer(9, 'a'); pool.offer(9, 'a'); pool.request(1); pool.request(2, 9); pool.request(3); "
        "pool.request(4); pool.offer(8, 'a'); pool.offer(2, 'a'); pool.release(8)"
    ),
    "kills_none": (
        "pool.offer(9, 'a'); pool.offer(9, 'a'); pool.request(1); pool.request(2, 9); pool.request(3); "
        "pool.request(4); pool.offer(8, 'a'); pool.offer(2, 'a'); pool.release(8); pool.remove(8)"
    ),
}
"""A story that shows nothing, as nobody looks at what is answered; each tries one thing more than those before it."""


@pytest.mark.parametrize("code", ALL_BUT)
def test_a_rule_that_never_tried_something_is_told_what(code):
    source = f"def rule(new_pool):\n    pool = new_pool()\n    {ALL_BUT[code]}\n    return True\n"
    report = judge("16.2", source)
    assert (report.failed_rule.id, report.failed_rule.finding.code) == ("C", code), str(report)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("pool.request(1); pool.request(1)", "request 1 has come before; each has a number of its own"),
        ("pool.request('1')", "requests and slots are whole numbers"),
        ("pool.request(True)", "requests and slots are whole numbers"),
        ("pool.offer(1.0, 'a')", "requests and slots are whole numbers"),
        ("pool.request(1, near='a')", "near is a list of names"),
        ("pool.request(1, near=[3])", "near is a list of names"),
        ("pool.offer(1, 7)", "a TaskManager has a name"),
        ("pool.offer(1, 'a'); pool.offer(1, 'b')", "slot 1 is at a; it does not move"),
    ],
)
def test_a_call_that_no_job_would_make_is_told(call, told):
    report = judge("16.2", f"def rule(new_pool):\n    pool = new_pool()\n    {call}\n    return True\n")
    assert report.failed_rule.id == "A"
    assert told in " ".join(report.failed_rule.message.split())


def test_a_slot_that_was_removed_may_come_from_elsewhere():
    calls = "pool.offer(9, 'a'); pool.remove(9); pool.offer(9, 'b')"
    report = judge("16.2", f"def rule(new_pool):\n    pool = new_pool()\n    {calls}\n    return True\n")
    assert report.failed_rule.id == "C"


@pytest.mark.slow
@pytest.mark.parametrize("specimen", unseen("16.2"), ids=lambda each: each.name)
def test_an_unseen_part_is_wrong_and_in_no_zoo(specimen):
    report = judge("16.1", specimen.source)
    assert report.failed_rule is not None
    assert report.failed_rule.id != "S"
    assert specimen.source not in {known.source for known in zoo("16.1")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_good_rule_passes_whatever_the_seed(seed):
    for source in (solution("16.2"), *(each.source for each in right_answers("16.2"))):
        report = judge("16.2", source, seed=seed)
        assert report.passed, str(report)


WITH_NUMPY = """
import numpy as np


def rule(new_pool):
    numbers, slots = np.arange(1, 5), np.array([70_001, 70_002])
    pool = new_pool()
    waiting = [pool.request(each, near={"far"}) for each in numbers[:3]]
    served = [pool.offer(each, "near") for each in [*slots, slots[0]]]
    pool.withdraw(numbers[2])
    late = pool.offer(numbers[0], "near")
    again = pool.offer(numbers[0], "near")
    last = [pool.request(numbers[3], None, ("near",)), pool.request(9, slots[0]), pool.release(slots[1])]
    pool.remove(slots[0])
    last += [pool.request(10), pool.offer(11, "x")]
    return not any(waiting) and [*served, late, again, *last] == [1, 2, None, None, None, 1, None, 9, None, 10]
"""
RAISES = """
class Broken(AssertionError):
    pass


def tell(pool, story, wanted):
    for (method, *given), want in zip(story, wanted, strict=True):
        if getattr(pool, method)(*given) != want:
            raise Broken(method)


def gives_each_slot_once(new_pool):
    story = [("request", 0), ("request", -1), ("request", 5), ("offer", 8, ""), ("offer", 0, ""), ("request", 6, 8)]
    story += [("release", 8), ("request", 7), ("withdraw", 7), ("remove", 0), ("offer", 9, "")]
    tell(new_pool(), story, [None, None, None, 0, -1, None, 5, None, None, None, 6])
    story = [("offer", 1, "a"), ("offer", 1, "a"), ("offer", 2, "b"), ("request", 3, 2), ("request", 4), ("request", 5)]
    tell(new_pool(), story, [None, None, None, 2, 1, None])
    return True
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("source", [WITH_NUMPY, RAISES], ids=["numpy", "raises"])
def test_an_unusual_rule_that_is_right_passes(source, seed):
    report = judge("16.2", source, seed=seed)
    assert report.passed, str(report)


def answering(answer):
    """What a rule is given of a part that answers every request so."""
    names = {}
    exec(harness("16.2"), names)

    class Other(part_of(right_answers("16.1")[0])):
        def request(self, number, before, near):
            return answer(number)

    return names["under_test"](Other)()


@pytest.mark.parametrize("answer", [True, "7", 7.5, 7], ids=repr)
def test_what_is_no_id_is_given_to_the_rule_as_it_is(answer):
    assert answering(lambda _: answer).request(7) is answer


def test_an_id_is_given_to_the_rule_as_its_number():
    assert answering(lambda number: number).request(7) == 7
