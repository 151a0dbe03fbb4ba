"""Whoever takes a track, or all lessons in order, has had what a lesson requires and asks about."""

from __future__ import annotations

import itertools
import re

import pytest

from course.author.build import parse, source_of
from course.curriculum.manifest import LESSONS
from course.curriculum.questions import questions
from course.curriculum.tracks import TRACKS, Track

ALL = Track("all, in order", tuple(LESSONS))


def named(words: str) -> set[int]:
    """The lessons that a text names: "lesson 2", "lessons 2 and 7"."""
    lists = re.findall(r"lessons? (\d+(?:(?:, | and )\d+)*)", words)
    return {int(number) for each in lists for number in re.findall(r"\d+", each)}


def required(lesson: int) -> set[int]:
    """What the first cell says that one needs."""
    title = parse(source_of(LESSONS[lesson].name).read_text(encoding="utf-8"), LESSONS[lesson].name)[0]
    needs = re.search(r"You need (.*?)\.(?: |$)", title.source.replace("\n", " "))
    assert needs is not None, lesson
    return named(needs[1])


def asked_about(lesson: int) -> dict[str, set[int]]:
    return {each.id: named(each.ask) for each in questions(lesson).values()}


@pytest.mark.parametrize("track", [*TRACKS, ALL], ids=lambda track: track.name)
def test_a_track_has_what_its_lessons_require_and_ask_about(track):
    for place, lesson in enumerate(track.lessons):
        before = set(track.lessons[:place])
        assert required(lesson) <= before, f"lesson {lesson} requires what comes later or never"
        for question, lessons in asked_about(lesson).items():
            assert lessons <= before, f"question {question} asks about what comes later or never"


def test_each_lesson_but_the_first_requires_one_and_asks_about_one():
    for lesson in list(LESSONS)[1:]:
        assert required(lesson)
        assert set().union(*asked_about(lesson).values())


def test_a_longer_track_has_all_of_a_shorter_one():
    for shorter, longer in itertools.pairwise(TRACKS):
        assert set(shorter.lessons) < set(longer.lessons)
