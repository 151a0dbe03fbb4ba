"""Every lesson as a learner gets it runs as it is stored.

An ordinary run has every other lesson. The others are solved in it (`test_solved_notebooks.py`), and what they ask
Spark is asked by `course/data/test_sections.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from course.curriculum.manifest import LESSONS, START
from tests.lessons.strict import SHIPPED, check_unchanged
from tests.lessons.warm_java import WarmJava, warm_java
from tests.support.sampling import places

OTHERS = {
    "tests/lessons/test_solved_notebooks.py::test_a_solved_lesson_says_what_is_recorded": list(LESSONS.values()),
    "tests/course/data/test_sections.py::test_what_a_lesson_asks_spark_says_what_is_stored": list(LESSONS.values()),
}
"""The tests that have the lessons which an ordinary run has not as they are shipped."""


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJava]:
    with warm_java(tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("notebook", SHIPPED, ids=lambda path: path.name)
def test_strict_nbval_finds_every_output_unchanged(notebook, tmp_path, java):
    check_unchanged(notebook, tmp_path, **java.environment)
    java.clear()


def test_there_is_a_notebook_for_every_lesson():
    names = {lesson.name for lesson in LESSONS.values()}
    assert {path.stem for path in SHIPPED} == {START, *names}


def test_a_lesson_that_is_not_in_the_sample_as_it_is_shipped_is_in_the_others():
    """Where samples begin depends on names: who gives one of these tests another name may have to try two."""
    name = f"tests/lessons/test_notebooks.py::{test_strict_nbval_finds_every_output_unchanged.__name__}"
    as_shipped = {SHIPPED[place].stem for place in places(name, len(SHIPPED), 2)}
    for name, lessons in OTHERS.items():
        also = {lessons[place].name for place in places(name, len(lessons), 2)}
        assert as_shipped | also == {path.stem for path in SHIPPED}, name
