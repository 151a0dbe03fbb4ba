"""Every lesson as a learner gets it runs as it is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from course.curriculum.manifest import LESSONS, START
from tests.lessons.strict import SHIPPED, check_unchanged
from tests.lessons.warm_java import WarmJava, warm_java


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJava]:
    with warm_java(tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notebook", SHIPPED, ids=lambda path: path.name)
def test_strict_nbval_finds_every_output_unchanged(notebook, tmp_path, java):
    check_unchanged(notebook, tmp_path, **java.environment)
    java.clear()


def test_there_is_a_notebook_for_every_lesson():
    names = {lesson.name for lesson in LESSONS.values()}
    assert {path.stem for path in SHIPPED} == {START, *names}
