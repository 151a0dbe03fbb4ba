"""Every rule of every exercise has its five rungs, and class mode asks for changed code."""

from __future__ import annotations

import collections
import math
import re
import struct

import pytest

from course.author.build import source_of
from course.curriculum import stubs
from course.curriculum.manifest import EXERCISES, LESSONS
from course.curriculum.messages import phrase
from course.grading.judge import judge
from course.grading.loading import check_of
from course.grading.report import COLUMNS
from course.learner import hints, progress

pytestmark = pytest.mark.usefixtures("own_state")

ALL = [(e, rule) for e in EXERCISES for rule in ("S", *(r.id for r in check_of(e).rules))]


@pytest.mark.parametrize(("exercise", "rule"), ALL)
def test_a_rule_has_rungs_1_to_5(exercise, rule):
    texts = hints.rungs(exercise, rule)
    assert all(texts[str(rung)].strip() for rung in range(1, 5))
    assert texts["after"].strip()
    for rung in range(1, hints.NUM_RUNGS + 1):
        shown = hints.hint_text(exercise, rule, rung, "x = 1\n")
        assert shown.startswith(f"Hint {rung} of 5")
    assert "the reference part" in shown


def test_rungs_climb_one_by_one_in_self_study():
    for expected in (1, 2, 3, 4, 5, 5):
        rung, why = hints.next_rung("3.1", "E", "hash")
        assert (rung, why) == (expected, None)
        progress.record("hint", exercise="3.1", rule="E", rung=rung, code_hash="hash")


def test_who_has_not_begun_is_told_the_first_step_in_lines_that_fit():
    told = hints.hint_for(judge("15.1", stubs.stub("15.1")), stubs.stub("15.1")).splitlines()
    assert max(map(len, told)) <= COLUMNS
    assert " ".join(line.strip() for line in told[1:]) == phrase("first_step", "15.1")


def test_class_mode_wants_changed_code(monkeypatch):
    monkeypatch.setenv("SLUICE_MODE", "class")
    progress.record("hint", exercise="3.1", rule="E", rung=1, code_hash="old")
    assert hints.next_rung("3.1", "E", "old")[0] == 1
    assert hints.next_rung("3.1", "E", "old")[1] is not None
    assert hints.next_rung("3.1", "E", "new") == (2, None)
    assert hints.next_rung("3.1", "E", "old", now=True) == (2, None)


PYTHON = (str, bytes, list, dict, int, collections.deque, struct, math)
"""What somebody who knows Python may know the members of."""


@pytest.mark.parametrize("exercise", EXERCISES)
def test_what_the_engine_has_is_named_before_the_fourth_hint_names_it(exercise):
    """In the lesson or in the stub; a name that begins with `self.` may be the learner's own."""
    texts = [hints.rungs(exercise, rule)["4"] for e, rule in ALL if e == exercise]
    used = {name for text in texts for name in re.findall(r"(?<!self)\.([a-z]\w+)", text)}
    own = {name for text in texts for name in re.findall(r"self\.(\w+)", text)}
    lesson = source_of(LESSONS[EXERCISES[exercise].lesson].name).read_text(encoding="utf-8")
    known = set(re.findall(r"\w+", lesson + stubs.stub(exercise)))
    # graph.nodes, which hint 4 of 6.2 names, is what not to use there.
    assert {name for name in used - own - known if not any(hasattr(each, name) for each in PYTHON)} <= {"nodes"}
