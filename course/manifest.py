"""What lessons and exercises there are. Everything else refers to them by number and by id."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXERCISES", "LESSONS", "START", "Exercise", "Lesson", "NoSuchExerciseError", "exercise", "lesson_info",
           "nearest"]  # fmt: skip

DEFAULT_SEED = 20110404
VECTORS_VERSION = "1.11.4"
VECTORS = Path(__file__).parent / "vectors" / VECTORS_VERSION
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


def _lesson(number: int, name: str, title: str, minutes: int, *parts: tuple[str, str]) -> Lesson:
    """A lesson whose exercises, in order, are given by title and by the name that Flink has for the part."""
    exercises = tuple(Exercise(f"{number}.{place}", number, *part) for place, part in enumerate(parts, 1))
    return Lesson(number, name, title, minutes, exercises)


_ALL = (
    _lesson(0, "00_ten_records", "Ten records end to end", 30, ("A map function", "MapFunction")),
    _lesson(
        1, "01_segments", "Memory segments", 45,
        ("A window on the memory", "MemorySegment"),
        ("Numbers in bytes", "MemorySegment"),
        ("A copy between segments", "MemorySegment"),
    ),
    _lesson(
        2, "02_pools", "Buffers and pools", 60,
        ("A buffer that counts", "NetworkBuffer"),
        ("Sharing out", "NetworkBufferPool"),
        ("A pool of one's own", "LocalBufferPool"),
    ),
    _lesson(3, "03_spanning", "Spanning serializer", 75, ("A record over buffers", "SpanningRecordSerializer")),
    _lesson(
        4, "04_deserializer", "Spanning deserializer", 75,
        ("Records out of buffers", "SpillingAdaptiveSpanningRecordDeserializer"),
        ("Write the rule: what goes in comes out", "SpanningRecordSerializationTest"),
    ),
    _lesson(
        5, "05_record_writer", "Record writer and selectors", 60,
        ("Which channel a key goes to", "KeyGroupStreamPartitioner"),
        ("A record to its channels", "RecordWriter"),
    ),
    _lesson(
        6, "06_chains", "Chains and outputs", 60,
        ("May two operators share a task?", "StreamingJobGraphGenerator"),
        ("From edges to chains", "StreamingJobGraphGenerator"),
        ("An output that copies", "CopyingChainingOutput"),
    ),
    _lesson(
        7, "07_local_channels", "Subpartitions and local channels", 60,
        ("The queue of a channel", "PipelinedSubpartition"),
    ),
    _lesson(
        9, "09_remote", "Remote channels", 75,
        ("A frame", "NettyMessage"),
        ("Frames out of a stream", "NettyMessageDecoder"),
        ("The numbers of a channel", "RemoteInputChannel"),
    ),
    _lesson(
        10, "10_slow_reader", "One slow reader", 60,
        ("High and low water", "WriteBufferWaterMark"),
        ("Where data waits", "PartitionRequestClientHandler"),
    ),
    _lesson(
        11, "11_credit", "Credit", 75,
        ("The receiver counts", "BufferManager"),
        ("The sender pays", "CreditBasedSequenceNumberingViewReader"),
    ),
)  # fmt: skip
LESSONS: dict[int, Lesson] = {lesson.number: lesson for lesson in _ALL}
EXERCISES: dict[str, Exercise] = {each.id: each for lesson in LESSONS.values() for each in lesson.exercises}


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
