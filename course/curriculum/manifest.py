"""What lessons and exercises there are. Everything else refers to them by number and by id."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from course.curriculum.folders import folders, table

__all__ = ["EXERCISES", "LESSONS", "START", "Exercise", "Lesson", "NoSuchExerciseError", "exercise", "lesson_info",
           "nearest"]  # fmt: skip

DEFAULT_SEED = 20110404
VECTORS_VERSION = "1.11.4"
VECTORS = Path(__file__).parents[1] / "vectors" / VECTORS_VERSION
"""What a real Flink of this version answered: the files that checks are held against."""


START = "00_start_here"
"""The first page, which is no lesson."""


class NoSuchExerciseError(KeyError):
    """An exercise id that no lesson has; the text names the nearest, by number or title, or lists those there are."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        near = nearest(self.wanted)
        if near:
            meant = " or ".join(f"{each.id} ({each.title})" for each in near)
            return f"there is no exercise {self.wanted}; did you mean {meant}?"
        return f"there is no exercise {self.wanted}; there are {', '.join(EXERCISES)}"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One graded part of one lesson; what is said of it stands in the message catalogue."""

    id: str
    lesson: int
    title: str
    flink_name: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson: number, file name without folder and ending, title, minutes, its exercises."""

    number: int
    name: str
    title: str
    minutes: int
    exercises: tuple[Exercise, ...]


def _exercises() -> dict[str, Exercise]:
    return {
        each: Exercise(each, int(each.partition(".")[0]), row["title"], row["flink_name"])
        for each, row in ((each, table(each, "exercise.toml")) for each in folders())
    }


EXERCISES: dict[str, Exercise] = _exercises()


def _lesson(number: int, name: str, title: str, minutes: int) -> Lesson:
    return Lesson(number, name, title, minutes, tuple(e for e in EXERCISES.values() if e.lesson == number))


_ALL = (
    _lesson(0, "00_ten_records", "Ten records end to end", 30),
    _lesson(1, "01_segments", "Memory segments", 45),
    _lesson(2, "02_pools", "Buffers and pools", 60),
    _lesson(3, "03_spanning", "Spanning serializer", 75),
    _lesson(4, "04_deserializer", "Spanning deserializer", 75),
    _lesson(5, "05_record_writer", "Record writer and selectors", 75),
    _lesson(6, "06_chains", "Chains and outputs", 60),
    _lesson(7, "07_local_channels", "Subpartitions and local channels", 60),
    _lesson(8, "08_pull_and_push", "Pull and push", 60),
    _lesson(9, "09_remote", "Remote channels", 75),
    _lesson(10, "10_slow_reader", "One slow reader", 60),
    _lesson(11, "11_credit", "Credit", 75),
    _lesson(12, "12_backpressure", "Backpressure", 75),
    _lesson(13, "13_event_time", "Event time", 60),
    _lesson(14, "14_aligned", "Aligned checkpoints", 75),
    _lesson(15, "15_unaligned", "Unaligned checkpoints", 75),
    _lesson(16, "16_who_starts", "Who starts the tasks", 60),
    _lesson(17, "17_one_bad_day", "One bad day", 90),
    _lesson(18, "18_real_flink", "Talk to a real Flink", 90),
)
LESSONS: dict[int, Lesson] = {lesson.number: lesson for lesson in _ALL}


def exercise(exercise_id: str) -> Exercise:
    """One exercise by id.

    Raises:
        NoSuchExerciseError: there is none.
    """
    if exercise_id not in EXERCISES:
        raise NoSuchExerciseError(exercise_id)
    return EXERCISES[exercise_id]


def nearest(wanted: str) -> list[Exercise]:
    """The exercises that somebody may have meant, at most 3: of the same lesson, or of a title with such words."""
    lesson = wanted.strip().partition(".")[0]
    if lesson.isdecimal():
        return [each for each in EXERCISES.values() if str(each.lesson) == str(int(lesson))][:3]
    words = re.findall(r"\w+", wanted.casefold())
    found: dict[str, Exercise] = {}
    for each in EXERCISES.values():
        its_words = re.findall(r"\w+", f"{each.title} {LESSONS[each.lesson].title}".casefold())
        if any(difflib.get_close_matches(word, its_words, 1, 0.75) for word in words if len(word) > 3):
            found[each.id] = each
    return [*found.values()][:3]


def lesson_info(number: int) -> Lesson:
    """One lesson by number.

    Raises:
        KeyError: it is not part of this version; the text lists those that are.
    """
    if number not in LESSONS:
        raise KeyError(f"there is no lesson {number} in this version; there are {', '.join(map(str, LESSONS))}")
    return LESSONS[number]
