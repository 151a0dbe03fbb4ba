"""How good the graders are: measured once, held against the goals, and against the page that says so."""

from __future__ import annotations

import pytest

from course.graders import KILLED, PRECISION, TABLE, Measured, document, measure
from course.grading.mutants import mutants
from course.manifest import EXERCISES
from course.specimens import zoo

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured() -> dict[str, Measured]:
    return {exercise: measure(exercise) for exercise in EXERCISES}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_mutants_of_the_reference_part_are_killed(measured, exercise):
    each = measured[exercise]
    unexcused = [name for name, reason in each.survivors.items() if not reason]
    assert each.killed >= KILLED, unexcused
    assert not each.gone, f"no longer survivors: {each.gone}"
    assert each.num_mutants >= 5


@pytest.mark.parametrize("exercise", EXERCISES)
def test_at_least_four_of_five_wrong_parts_have_a_message_of_their_own(measured, exercise):
    each = measured[exercise]
    assert each.num_caught == len(each.told) == len(zoo(exercise)) >= 6
    assert each.num_alone >= PRECISION * len(each.told)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_stub_is_not_started_and_right_parts_pass(measured, exercise):
    assert measured[exercise].wrongly == []
    assert measured[exercise].num_wheat >= 3


def test_the_page_says_what_is_so(measured):
    assert TABLE.read_text(encoding="utf-8") == document(list(measured.values())), "run: sluice graders --write"


def test_a_goal_that_is_missed_is_said(measured):
    good = measured["0.1"]
    assert good.is_good
    told = good.told[:-1] + good.told[:1]
    hole = Measured("0.1", good.num_mutants, dict.fromkeys("abcd", ""), [], told, ["x is y"], 4)
    assert not hole.is_good
    text = document([hole])
    assert "**none known: a hole**" in text
    assert "- **Wrong here:** x is y" in text


def test_a_mutant_is_one_change_and_never_one_of_a_type_hint():
    source = "def f(a: int = 1) -> bool:\n    '''Words.'''\n    return a < 2 and not a == 3\n"
    found = dict(mutants(source))
    assert "f: a < 2  →  a <= 2 #0" in found
    assert "f: a < 2 and (not a == 3)  →  a < 2 or not a == 3 #0" in found
    assert "f: not a == 3  →  a == 3 #0" in found
    assert len(found) == len(list(mutants(source))) == 12
    assert all("-> bool" in changed and "a: int" in changed and "Words" in changed for changed in found.values())
