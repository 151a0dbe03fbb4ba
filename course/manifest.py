"""What lessons and exercises there are. Everything else refers to them by number and by id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXERCISES", "LESSONS", "Exercise", "Lesson", "NoSuchExerciseError", "exercise", "lesson_info"]

DEFAULT_SEED = 20110404
VECTORS_VERSION = "1.11.4"
VECTORS = Path(__file__).parent / "vectors" / VECTORS_VERSION
"""What a real Flink of this version answered: the files that checks are held against."""


class NoSuchExerciseError(KeyError):
    """An exercise id that no lesson has; the text lists those there are."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"there is no exercise {self.wanted}; there are {', '.join(EXERCISES)}"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One graded part of one lesson. `first_step` is what a learner who has nothing yet should do."""

    id: str
    lesson: int
    title: str
    flink_name: str
    first_step: str
    after_passing: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson: number, file name without folder and ending, title, minutes, its exercises."""

    number: int
    name: str
    title: str
    minutes: int
    exercises: tuple[Exercise, ...]


LESSONS: dict[int, Lesson] = {
    0: Lesson(
        0,
        "00_ten_records",
        "Ten records end to end",
        30,
        (
            Exercise(
                "0.1",
                0,
                "A map function",
                "MapFunction",
                'return a pair for one flight: flight["origin"], and the delay, not below 0.',
                "Your function now answers for every flight of the demo job.",
            ),
        ),
    ),
    3: Lesson(
        3,
        "03_spanning",
        "Spanning serializer",
        75,
        (
            Exercise(
                "3.1",
                3,
                "A record over buffers",
                "SpanningRecordSerializer",
                "in serialize_record, keep 4 bytes of length and the payload as one piece.",
                "Your serializer now cuts every record of the demo job.",
            ),
        ),
    ),
}
EXERCISES: dict[str, Exercise] = {each.id: each for lesson in LESSONS.values() for each in lesson.exercises}


def exercise(exercise_id: str) -> Exercise:
    """One exercise by id.

    Raises:
        NoSuchExerciseError: there is none.
    """
    if exercise_id not in EXERCISES:
        raise NoSuchExerciseError(exercise_id)
    return EXERCISES[exercise_id]


def lesson_info(number: int) -> Lesson:
    """One lesson by number.

    Raises:
        KeyError: it is not part of this version; the text lists those that are.
    """
    if number not in LESSONS:
        raise KeyError(f"there is no lesson {number} in this version; there are {', '.join(map(str, LESSONS))}")
    return LESSONS[number]
