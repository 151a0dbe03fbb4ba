"""The data section of each lesson: Spark predicts a few numbers, the engine runs and measures the same.

    from course.data.sections import SECTIONS
    SECTIONS[5].run()                           Spark's own prediction against the engine
    SECTIONS[5].run(prediction={"...": 17})     a learner's
    print(SECTIONS[5].query)                    what Spark is asked: in words, and the query itself

A section runs on whatever `spark()` starts: this machine, or the cluster of SLUICE_SPARK_MASTER. The receipt says the
same on both, since it holds nothing but the data, the prediction and what was measured. Where Spark cannot start the
section is skipped, says why, and counts as not done.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from course.data import (
    sections_batch,
    sections_channels,
    sections_cuts,
    sections_days,
    sections_jobs,
    sections_losses,
    sections_memory,
    sections_pressure,
    sections_time,
)
from course.data.datasets import DEFAULT_SEED, NUM_FRAMES, ROWS_OF_A_LOG, table
from course.data.generated import VERSION
from course.data.query_text import query_text
from course.data.session import SparkUnavailable, cancels, spark
from course.data.statistics import Figures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SECTIONS", "Outcome", "Section", "SectionStatus"]

Answer = Mapping[str, Any]
"""A small table: what a number is of, and the number (or text)."""


class SectionStatus(Enum):
    """What became of a section. Only a passed one is done."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prediction beside what was measured."""

    section: Section
    status: SectionStatus
    seed: int
    predicted: Answer = field(default_factory=dict)
    measured: Answer = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the section counts."""
        return self.status is SectionStatus.PASSED

    @property
    def wrong(self) -> list[str]:
        """What was not predicted, or predicted wrongly, in words."""
        lines = [
            f"{case}: predicted {_short(self.predicted[case])}, the engine measured {_short(value)}"
            if case in self.predicted
            else f"{case}: nothing predicted, the engine measured {_short(value)}"
            for case, value in self.measured.items()
            if case not in self.predicted or not self.section.agrees(self.predicted[case], value)
        ]
        return lines + [f"{case}: the engine has no such case" for case in self.predicted if case not in self.measured]

    @property
    def receipt(self) -> str:
        """One line that is the same wherever the section ran."""
        lesson = f"L{self.section.lesson:02d}"
        if self.status is SectionStatus.SKIPPED:
            return f"{lesson} ○ {self.reason}"
        about = {
            "lesson": self.section.lesson, "seed": self.seed, "rows": self.section.rows, "version": VERSION,
            "predicted": dict(self.predicted), "measured": dict(self.measured),
        }  # fmt: skip
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]
        sign, right = ("✓", "✗")[not self.is_done], len(self.measured) - len(self.wrong)
        return (
            f"{lesson} {sign} {max(0, right)} of {len(self.measured)} as predicted; {self.section.rows} rows of "
            f"{self.section.data}, seed {self.seed}; {digest}"
        )

    @property
    def table(self) -> Figures:
        """Prediction and measurement, case by case."""
        rows = tuple(
            (
                case,
                _short(self.predicted.get(case, "-")),
                _short(value),
                "✓" if case in self.predicted and self.section.agrees(self.predicted[case], value) else "✗",
            )
            for case, value in self.measured.items()
        )
        return Figures(self.section.question, ("", "predicted", "measured", ""), rows)

    def __repr__(self) -> str:
        if self.status is SectionStatus.SKIPPED:
            return self.receipt
        return "\n".join([repr(self.table), *self.notes, self.receipt])

    def _repr_html_(self) -> str:
        if self.status is SectionStatus.SKIPPED:
            return f"<p>{html.escape(self.receipt)}</p>"
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in (*self.notes, self.receipt))
        return self.table._repr_html_() + notes


@dataclass(frozen=True, slots=True)
class Section:
    """The data section of one lesson.

    `ask` is Spark's prediction from the data, `measure` what the engine does with the same rows, `note` what is worth
    a line beside the figures. A number may be off by `tolerance` of what was measured; without it, it is right or not.
    """

    lesson: int
    question: str
    data: str
    rows: int
    ask: Callable[[DataFrame], Answer]
    measure: Callable[[DataFrame], Answer]
    tolerance: float = 0.0
    note: Callable[[DataFrame, Answer], tuple[str, ...]] = lambda _frame, _measured: ()

    @property
    def query(self) -> str:
        """What Spark is asked, to be printed above the answer: words first, then the query as it runs."""
        return query_text(self.ask, f"{self.rows} rows of {self.data}")

    def frame(self, session: SparkSession, seed: int = DEFAULT_SEED) -> DataFrame:
        """The data."""
        return table(self.data, session, self.rows, seed)

    def agrees(self, predicted: Any, measured: Any) -> bool:
        """Whether a prediction is near enough."""
        if self.tolerance and isinstance(predicted, int | float) and isinstance(measured, int | float):
            return abs(predicted - measured) <= self.tolerance * abs(measured)
        return bool(predicted == measured)

    def run(
        self, session: SparkSession | None = None, seed: int = DEFAULT_SEED, prediction: Answer | None = None
    ) -> Outcome:
        """Predict with Spark, or take `prediction`; let the engine measure; compare."""
        try:
            session = session or spark(quick=True)
        except SparkUnavailable as error:
            because = str(error).removeprefix("Spark could not start: ")
            reason = f"skipped: Spark could not start, because {because[:1].lower()}{because[1:]}"
            return Outcome(self, SectionStatus.SKIPPED, seed, reason=reason)
        with cancels(session):
            frame = self.frame(session, seed).persist()
            try:
                predicted = dict(self.ask(frame) if prediction is None else prediction)
                measured = dict(self.measure(frame))
                notes = self.note(frame, measured)
            finally:
                frame.unpersist()
            outcome = Outcome(self, SectionStatus.PASSED, seed, predicted, measured, notes)
            return (
                outcome
                if not outcome.wrong
                else Outcome(self, SectionStatus.FAILED, seed, predicted, measured, outcome.notes)
            )


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


_MEMORY, _JOBS, _CHANNELS = sections_memory, sections_jobs, sections_channels

SECTIONS: dict[int, Section] = {
    each.lesson: each
    for each in (
        Section(0, "How many flights left each airport?", "flights", 5_000, _JOBS.ask_airports, _JOBS.run_airports),
        Section(
            1,
            "Each record begins in a segment of its own: how many segments, how many bytes empty?",
            "documents",
            2_000,
            _MEMORY.ask_segments,
            _MEMORY.fill_segments,
        ),
        Section(
            2,
            "How many buffers does each plan need on its fullest TaskManager, and which cannot start?",
            "plans",
            24,
            _MEMORY.ask_buffers,
            _MEMORY.start_plans,
        ),
        Section(
            3,
            "How often is a record cut, for buffers of three sizes?",
            "documents",
            2_000,
            _MEMORY.ask_partial,
            _MEMORY.count_partial,
        ),
        Section(
            4,
            "Rows, bytes and sum of CRC-32 of each partition, on the other side of buffers of 64 bytes",
            "documents",
            400,
            _MEMORY.ask_checksums,
            _MEMORY.round_trip,
        ),
        Section(
            5,
            "How many flights does each of 4 subtasks get, by four keys?",
            "flights",
            5_000,
            _JOBS.ask_loads,
            _JOBS.run_loads,
            note=_JOBS.note_skew,
        ),
        Section(
            6,
            "How many edges of the job are not chained? As many as Spark exchanges.",
            "zipf",
            100,
            _JOBS.ask_exchanges,
            _JOBS.count_edges,
            note=_JOBS.note_kept_partitioning,
        ),
        Section(
            7,
            "How many buffers leave, and how full, for each buffer timeout?",
            "bursts",
            1_500,
            _CHANNELS.ask_flushes,
            _CHANNELS.run_bursts,
        ),
        Section(
            8,
            "The same job both ways: how many flights of each airport, what is kept, and when does a result come?",
            "flights",
            1_000,
            sections_batch.ask_both_ways,
            sections_batch.run_both_ways,
        ),
        Section(
            9,
            "Rows and sums of each partition, read over two TaskManagers",
            "flights",
            5_000,
            _JOBS.ask_sums,
            _JOBS.run_sums,
        ),
        Section(
            10,
            "What is left of the innocent channel's throughput when the other one slows?",
            "zipf",
            4_000,
            _CHANNELS.ask_innocent,
            _CHANNELS.run_innocent,
            tolerance=0.05,
        ),
        Section(
            11,
            "How much can be under way to a consumer that stands still?",
            "zipf",
            2_000,
            _CHANNELS.ask_floating,
            _CHANNELS.run_floating,
        ),
        Section(
            12,
            "Of 300 000 samples of 20 subtasks: for how many minutes did each task hold the job back?",
            "metrics",
            300_000,
            sections_pressure.ask_bottlenecks,
            sections_pressure.find_bottlenecks,
        ),
        Section(
            13,
            "How many flights come too late for their hour, by the bound?",
            "flights",
            1_000,
            sections_time.ask_late,
            sections_time.run_late,
        ),
        Section(
            14,
            "How many flights left each airport, counted through a crash?",
            "flights",
            600,
            sections_cuts.ask_departures,
            sections_cuts.count_and_crash,
            note=sections_cuts.note_surplus,
        ),
        Section(
            15,
            "All flights wait in channels when a barrier overtakes them: how many bytes are copied of each airport?",
            "flights",
            600,
            sections_cuts.ask_in_flight,
            sections_cuts.copy_in_flight,
            note=sections_cuts.note_put_back,
        ),
        Section(
            16,
            "How long after a loss does the last task begin again?",
            "losses",
            ROWS_OF_A_LOG,
            sections_losses.ask_recoveries,
            sections_losses.time_recoveries,
        ),
        Section(
            17,
            "What do the files of the hourly job hold that was ended in the middle, and went on?",
            "flights",
            600,
            sections_days.ask_hours,
            sections_days.end_and_go_on,
        ),
        Section(
            18,
            "What comes over two channels of a Flink: buffers of records, their bytes, and events?",
            "frames",
            NUM_FRAMES,
            _CHANNELS.ask_frames,
            _CHANNELS.read_frames,
        ),
    )
}
