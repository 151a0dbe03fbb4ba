"""What a learner wrote in other lessons, as parts: which of the kept sources counts, and what is said of it."""

from __future__ import annotations

import sys

import pytest

import course
from course.curriculum.specimens import right_answers
from course.grading.judge import code_hash
from course.learner import progress
from course.learner.own_parts import own_parts, part_in

pytestmark = pytest.mark.usefixtures("own_state")


def checked(exercise, source, status="passed"):
    progress.keep_attempt(exercise, source)
    progress.record("check", exercise=exercise, status=status, code_hash=code_hash(source), seed=1)


def test_who_has_done_nothing_has_no_part_and_nothing_is_said():
    assert own_parts({}) == ({}, {})


def test_the_newest_source_that_passed_counts():
    old, new = (f"def to_departure(flight):\n    return flight['origin'], {number}\n" for number in (1, 2))
    checked("0.1", old)
    checked("0.1", new)
    parts, notes = own_parts({})
    assert parts["0.1"]({"origin": "EWR"}) == ("EWR", 2)
    assert notes == {}


def test_what_never_passed_is_no_part_and_it_is_said():
    checked("0.1", "def to_departure(flight):\n    return None\n", "failed")
    assert own_parts({}) == ({}, {"0.1": ", as yours has not passed"})


def test_a_stub_that_was_checked_is_not_an_attempt():
    checked("0.1", "def to_departure(flight):\n    raise NotImplementedError('0.1')\n", "not_started")
    assert own_parts({}) == ({}, {})


def test_a_source_that_passed_counts_when_a_later_one_fails_and_it_is_said():
    checked("0.1", "def to_departure(flight):\n    return flight['origin'], 5\n")
    checked("0.1", "def to_departure(flight):\n    return None\n", "failed")
    parts, notes = own_parts({})
    assert parts["0.1"]({"origin": "EWR"}) == ("EWR", 5)
    assert notes == {"0.1": ", as it last passed"}


def test_a_part_of_the_running_kernel_comes_first():
    checked("0.1", "def to_departure(flight):\n    return flight['origin'], 5\n")
    assert own_parts({"0.1": max})[0] == {"0.1": max}


def test_a_source_that_does_not_run_here_is_said():
    checked("0.1", "import not_on_this_machine\n\ndef to_departure(flight):\n    return None\n")
    parts, notes = own_parts({})
    assert parts == {}
    assert notes["0.1"].startswith(", as yours does not run here (ModuleNotFoundError")


@pytest.mark.parametrize("exercise", ["0.1", "4.1", "4.2", "11.1", "14.1", "17.1"])
def test_a_part_is_found_as_a_check_finds_it(exercise, capsys):
    source = right_answers(exercise)[0].source
    name = part_in(exercise, source).__name__
    kind = "class " if f"class {name}" in source else "def "
    marked = source.replace(f"{kind}{name}", f"@L.exercise('{exercise}')\n{kind}{name}")
    prefix = "from course import lesson, check\nL = lesson(3)\nprint('noise')\n"
    found = part_in(exercise, f"{prefix}{marked}\ncheck('{exercise}')\n")
    assert found.__name__ == name
    assert capsys.readouterr().out == ""
    assert sys.modules["course"] is course


def test_a_source_without_a_part_is_refused():
    with pytest.raises(LookupError, match=r"^there is no part of 4\.1 in it$"):
        part_in("4.1", "x = 1\n")
    assert sys.modules["course"] is course
