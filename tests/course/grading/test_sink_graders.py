"""17.2 on right answers in unusual styles, and on wrong ones that differ in one point."""

from __future__ import annotations

import pytest

from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.grading.judge import judge
from course.grading.loading import check_of

PLAIN = right_answers("17.2")[0].source

CUT = """\
        self.transactions.pre_commit(self.open)
        self.pending[number] = self.open
        self.open = self.transactions.begin()
"""
CUT_LATER = """\
        full, self.open = self.open, self.transactions.begin()
        self.transactions.pre_commit(full)
        self.pending[number] = full
"""
EACH = "        for _, name in pending:\n"
READY = "        self.transactions.pre_commit(self.open)\n"
COMMIT = "                self.transactions.commit(self.pending[each])\n"

STYLES = [
    ("begins_first", [(CUT, CUT_LATER)]),
    ("numpy_numbers", [("from refimpl", "import numpy as np\nfrom refimpl"),
                       ("pending[number]", "pending[np.int64(number)]")]),
    ("lists_in_a_list", [("tuple(self.pending.items())", "[list(each) for each in self.pending.items()]")]),
    ("commits_twice", [(COMMIT, COMMIT * 2)]),
]  # fmt: skip

WRONG = [
    ("is_for_equal", [("if each <= number", "if each < number or each is number")], "D"),
    ("empty_names_count", [("if state.open is not None", "if state.open != ''")], "F"),
    ("keeps_restored", [(EACH, "        self.pending = dict(pending)\n" + EACH)], "F"),
    ("aborts_at_a_barrier", [(READY, READY + READY.replace("pre_commit", "abort"))], "B"),
    ("shared_by_all", [("        self.pending = {}\n", ""), ("class Sink:\n", "class Sink:\n    pending = {}\n")], ""),
    ("two_digits", [("for each in sorted(self.pending)", "for each in sorted(self.pending, key=str)")], "D"),
    ("closes_twice", [("            self.open = None\n", "            del self.open\n")], "H"),
]  # fmt: skip


def with_changes(changes):
    source = PLAIN
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), STYLES, ids=[name for name, *_ in STYLES])
def test_a_right_answer_in_another_style_passes(name, changes):
    report = judge("17.2", with_changes(changes))
    assert report.passed, f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "rule"), WRONG, ids=[name for name, *_ in WRONG])
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(name, changes, rule):
    report = judge("17.2", with_changes(changes))
    assert not report.passed, name
    assert f"rule {rule}" in str(report), f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    for source in (solution("17.2"), *(each.source for each in right_answers("17.2"))):
        report = judge("17.2", source, seed=seed)
        assert report.passed, str(report)


def test_a_crash_goes_back_to_a_checkpoint_that_is_complete():
    """And snapshots and completions have numbers that grow."""
    num_crashes = 0
    for ops in check_of("17.2").seeded.make(3):
        complete, newest = 0, 0
        for name, *given in ops:
            if name == "snapshot":
                assert given[0] > newest
                newest = given[0]
            elif name == "complete":
                assert complete < given[0] <= newest
                complete = given[0]
            elif name == "crash":
                assert given == [complete]
                num_crashes += 1
    assert num_crashes > 5
