"""17.1 on right answers in unusual styles, and on wrong ones that differ in one point."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.grading.judge import judge

pytestmark = pytest.mark.slow

PLAIN = right_answers("17.1")[0].source
STYLES = [
    ("a_list_of_both", "(count + 1, total + number)", "[count + 1, total + number]"),
    ("deep_copy", "dict(self.open)", "__import__('copy').deepcopy(self.open)"),
    ("by_key_too", "key=lambda window: window[1]", "key=lambda window: (window[1], window[0])"),
    ("numpy_start", "timestamp // self.size * self.size",
     "int(__import__('numpy').int64(timestamp) // self.size * self.size)"),
]  # fmt: skip
WRONG = [
    ("by_key_first", "key=lambda window: window[1]", "key=str", "C"),
    ("late_without_key", "output.late(key, number, timestamp)", "output.late(None, number, timestamp)", "E"),
    ("no_start", "dict(self.open)", "{}", "G"),
    ("shallow_restore", "            self.open.update(state)", "            self.open = state", "I"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new"), STYLES, ids=[name for name, *_ in STYLES])
def test_a_right_answer_in_another_style_passes(name, old, new):
    assert old in PLAIN
    report = judge("17.1", PLAIN.replace(old, new))
    assert report.passed, f"{name}\n{report}"


@pytest.mark.parametrize(("name", "old", "new", "rule"), WRONG, ids=[name for name, *_ in WRONG])
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(name, old, new, rule):
    assert old in PLAIN
    report = judge("17.1", PLAIN.replace(old, new))
    assert not report.passed, name
    assert f"rule {rule}" in str(report), f"{name}\n{report}"


@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    for source in (solution("17.1"), *(each.source for each in right_answers("17.1"))):
        report = judge("17.1", source, seed=seed)
        assert report.passed, str(report)
