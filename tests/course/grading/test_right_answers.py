"""Right answers written differently pass: a grader that is too strict is as bad as one that is too lax."""

from __future__ import annotations

import pytest

from course.curriculum.manifest import EXERCISES
from course.curriculum.specimens import right_answers
from course.grading.judge import judge

ALL = [pytest.param(e, s, id=f"{e}-{s.name}") for e in EXERCISES for s in right_answers(e)]


@pytest.mark.slow
@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize(("exercise", "specimen"), ALL)
def test_a_right_part_passes_with_other_seeds(exercise, specimen, is_whole):
    """With the usual seed `test_graders.py` asks it."""
    for seed in (1, 99) if is_whole else (99,):
        report = judge(exercise, specimen.source, seed)
        assert report.passed, str(report)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_there_are_at_least_three(exercise):
    assert len(right_answers(exercise)) >= 3


SLOW_BUT_RIGHT = '''
from refimpl.records import SerializationResult as R

class Slow:
    """Cuts one byte off the front of what is left, again and again: quadratic, and right."""

    def __init__(self):
        self.whole = self.left = b""

    def serialize_record(self, record):
        self.whole = self.left = len(record).to_bytes(4, "big") + record

    def copy_to_buffer_builder(self, builder):
        while self.left and builder.room:
            builder.append(self.left[:1])
            self.left = self.left[1:]
        builder.commit()
        if self.left:
            return R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        return R.FULL_RECORD_MEMORY_SEGMENT_FULL if builder.is_full else R.FULL_RECORD

    def reset(self):
        self.left = self.whole

    def prune(self):
        self.whole = self.left = b""
'''


@pytest.mark.slow
def test_quadratic_is_not_wrong():
    report = judge("3.1", SLOW_BUT_RIGHT)
    assert report.passed, str(report)
