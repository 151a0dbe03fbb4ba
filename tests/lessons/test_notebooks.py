"""Every lesson as a learner gets it runs as it is stored."""

from __future__ import annotations

import pytest

from course.curriculum.manifest import LESSONS, START
from tests.lessons.strict import SHIPPED, check_unchanged


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notebook", SHIPPED, ids=lambda path: path.name)
def test_strict_nbval_finds_every_output_unchanged(notebook, tmp_path):
    check_unchanged(notebook, tmp_path)


def test_there_is_a_notebook_for_every_lesson():
    names = {lesson.name for lesson in LESSONS.values()}
    assert {path.stem for path in SHIPPED} == {START, *names}
