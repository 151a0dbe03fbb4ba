"""All parts of a learner in one job, which loses a file of a checkpoint, crashes, and goes on; then a Flink talks.

Each part goes in with a guard of its own, so one that raises is named and taken out, and the others stay. Where a
learner has no part that passed, the course's own goes the same way. Parts that need another kind of job say so.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any

from course.curriculum.manifest import EXERCISES
from course.curriculum.parts import to_departure
from course.curriculum.seams import Seam, seam
from course.curriculum.wrapping import pad, width
from course.data.flights import load
from course.data.flights_job import LARGEST_DISORDER_MS, flights_job
from course.data.oracle import departures_per_window
from course.data.sample import reader_of_flights, sample_flights
from course.peer.consuming import OURS, Parts
from course.peer.with_flink import FlinkReport, talk_to_flink
from course.swap.guard import Guard
from course.swap.in_turn import InTurn, TakesSerializers
from course.swap.into_job import records_in
from course.swap.kinds import KINDS
from course.swap.talks import guarded_talk, guarded_wire
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment, WatermarkStrategy
from refimpl.state import Fault, FaultKind, MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AllParts", "PartInJob", "run_all_parts"]

_NUM_TASK_MANAGERS = 2
_STEP_MS = 0.05
_MAX_DELAY_MS = 0.2
_MOST_STEPS = 100_000
_OPTIONS = Config(
    segment_size_bytes=64,
    num_buffers=64,
    source_batch=4,
    object_reuse=False,
    checkpoint_interval_ms=3,
    tolerable_failed_checkpoints=1,
    buffer_timeout_ms=1,
    auto_watermark_interval_ms=1,
)
_STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(LARGEST_DISORDER_MS)
_ASKED_FOR_THE_GRAPH = ("is_chainable", "build_chains", "why_not")
_ELSEWHERE = ("blocking", "marks", "waiting", "unaligner")
"""Kinds of parts that need another job: one that waits for its results, has no credit, or whose barriers overtake."""

_Hours = dict[tuple[str, int], tuple[int, int]]
"""Departures and the sum of their delays in minutes, by airport and the hour's first millisecond."""


@dataclass(frozen=True, slots=True)
class PartInJob:
    """One line of the page: a part, whose it is, and what became of it.

    `is_here` is false for a part that this kind of job has no place for. `taken_out` says why it had to go.
    """

    exercise: str
    name: str
    whose: str
    is_here: bool
    num_calls: int = 0
    taken_out: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        if not self.is_here:
            return f'has a run of its own: L.swap("{self.exercise}")'
        times = "once" if self.num_calls == 1 else f"{self.num_calls:,} times"
        return f"called {times}, then taken out" if self.taken_out else f"called {times}"


@dataclass(frozen=True, slots=True)
class AllParts:
    """What came of a job with all parts in it. `error` says what stopped the job, and is empty if nothing did.

    `is_equal` says whether its hours are those of an undisturbed job of ours, `spark` what Spark said of them, and
    `flink` what the parts that talk read from a Flink.
    """

    rows: tuple[PartInJob, ...]
    num_flights: int
    seed: int
    restored_id: int
    is_equal: bool
    error: str
    spark: str
    flink: FlinkReport

    def __repr__(self) -> str:
        cells = [(each.exercise, each.name, each.whose, each.said) for each in self.rows]
        widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(pad, row, widths)).rstrip() for row in cells]
        return "\n".join([*lines, "", *self._taken_out(), *self._result(), self.spark, self._flink()])

    def _taken_out(self) -> list[str]:
        lines = []
        for row in self.rows:
            if row.taken_out:
                lines.append(f"✗ {row.exercise} {row.name} was taken out, and ours went on: {row.taken_out[0]}")
                lines += [f"    {line}" for line in row.taken_out[1:]]
        return lines

    def _result(self) -> list[str]:
        if self.error:
            return [f"✗ the job stopped: {self.error}", "  L.swap(…) tries one part alone"]
        if not self.is_equal:
            return [
                f"✗ {self.num_flights} flights: the hours are NOT what ours count",
                "  L.swap(…) tries a part alone",
            ]
        crashed = (
            f"crashed, and went on from checkpoint {self.restored_id}" if self.restored_id else "ended before a crash"
        )
        return [
            f"✓ {self.num_flights} flights, seed {self.seed}: the job lost a file of a checkpoint, {crashed};",
            "  its hours are those that ours count undisturbed",
        ]

    def _flink(self) -> str:
        if self.flink.is_equal:
            num_records = sum(each["records"] for each in self.flink.channels)
            took = f" (a part was taken out: {self.flink.taken_out[0]})" if self.flink.taken_out else ""
            return f"✓ Flink 1.11.4 at the other end: {num_records} records, byte for byte what it sent{took}"
        return f"✗ Flink 1.11.4 at the other end: {self.flink.error or 'NOT what it sent'}"


def run_all_parts(
    learners: Mapping[str, Any],
    seed: int = 1,
    notes: Mapping[str, str] | None = None,
    spark: SparkSession | str = "",
    num_flights: int = 600,
) -> AllParts:
    """Run a job with all parts: those in `learners`, by exercise, and the course's for the rest.

    `seed` chooses the order of the job's steps, how long messages take, when it crashes, and which file is lost.
    `notes` say more of whose a part is. `spark` counts the same hours; a text is why there is none.
    """
    flights = sample_flights(num_flights)
    want = _undisturbed(flights)
    with contextlib.ExitStack() as stack:
        guards: dict[str, Guard] = {}
        for exercise_id in EXERCISES:
            if _is_here(seam(exercise_id)):
                part = learners.get(exercise_id) or _ours(seam(exercise_id))
                guards[exercise_id] = stack.enter_context(Guard(part))
        run = _Run(flights, guards, seed)
        run.go()
    rows = tuple(_row(each, learners, guards.get(each), notes or {}) for each in EXERCISES)
    said = f"○ Spark did not count: {spark}" if isinstance(spark, str) else _spark_says(spark, want, num_flights)
    return AllParts(rows, num_flights, seed, run.restored_id, run.hours == want, run.error, said, _talk(learners))


def _row(exercise_id: str, learners: Mapping[str, Any], guard: Guard | None, notes: Mapping[str, str]) -> PartInJob:
    wanted, part = seam(exercise_id), learners.get(exercise_id)
    name = wanted.part if part is None else getattr(part, "__name__", type(part).__name__)
    whose = ("the course's" if part is None else "yours") + notes.get(exercise_id, "")
    if guard is None:
        return PartInJob(exercise_id, name, whose, is_here=False)
    return PartInJob(exercise_id, name, whose, True, guard.num_calls, tuple(guard.what_happened))


def _is_here(wanted: Seam) -> bool:
    return wanted.swap in _ASKED_FOR_THE_GRAPH or (wanted.swap in KINDS and wanted.swap not in _ELSEWHERE)


def _ours(wanted: Seam) -> Any:
    return getattr(import_module(wanted.module), wanted.part)


def _job(flights: Sequence[dict[str, Any]], hours: _Hours) -> StreamEnvironment:
    """The job; it keeps the last result of each hour, as what was said before a crash may be said again after it."""

    def keep(result: tuple[str, int, int, tuple[int, int]]) -> None:
        origin, start, _end, totals = result
        hours[origin, start] = totals

    return flights_job(reader_of_flights(flights), keep, _OPTIONS, 2, to_departure, _STRATEGY)


def _undisturbed(flights: Sequence[dict[str, Any]]) -> _Hours:
    hours: _Hours = {}
    with Simulation(_job(flights, hours), check_every=0, step_ms=_STEP_MS) as simulation:
        simulation.run()
    return hours


class _Run:
    """A job with these parts, and what became of it."""

    def __init__(self, flights: Sequence[dict[str, Any]], guards: Mapping[str, Guard], seed: int) -> None:
        self.hours: _Hours = {}
        self.restored_id = 0
        self.error = ""
        self._guards = guards
        self._has_parts: Any = None  # the deployment that they are in
        self._chance = Random(seed)
        self._crash_at = self._chance.randint(len(flights) // 2, len(flights) * 3 // 4)
        self._seed = seed
        self._environment = _job(flights, self.hours)

    def go(self) -> None:
        """Run the job to its end, with a crash."""
        store = MemoryStore([Fault(FaultKind.FAIL, within="chk-", number=self._chance.randint(2, 6))])
        try:
            for exercise_id, guard in self._guards.items():
                if (kind := seam(exercise_id).swap) in _ASKED_FOR_THE_GRAPH:
                    self._environment.use(**{kind: guard.function(_ours(seam(exercise_id)))})
            with Simulation(
                self._environment, self._seed, check_every=0, step_ms=_STEP_MS, store=store,
                num_task_managers=_NUM_TASK_MANAGERS, max_delay_ms=_MAX_DELAY_MS, restart=FixedDelayRestart(5, 1.0),
            ) as simulation:  # fmt: skip
                self._steps(simulation)
        except USER_CODE_RAISES as trouble:  # whatever stopped the job is reported, not hidden
            self.error = described(trouble)

    def _steps(self, simulation: Simulation) -> None:
        assert simulation.recovery is not None, "it has a store"
        stats = simulation.recovery.checkpoints.stats
        is_to_crash = True
        while simulation.step() is not None:
            self._put_parts(simulation)
            if is_to_crash and stats.snapshot().counts.num_completed and records_in(simulation, 0) >= self._crash_at:
                is_to_crash = False
                simulation.crash()
            if simulation.num_steps == _MOST_STEPS:
                self.error = f"it had not ended after {_MOST_STEPS:,} steps"
                return
        restored = stats.snapshot().latest_restored
        self.restored_id = 0 if restored is None else restored.checkpoint_id

    def _put_parts(self, simulation: Simulation) -> None:
        """Put all parts in when every channel is open: once, and again into what is deployed after a crash."""
        now = simulation.deployments
        if not now or now[0] is self._has_parts or not _are_connected(simulation):
            return
        self._has_parts = now[0]
        job = TakesSerializers(simulation)
        for exercise_id, guard in self._guards.items():
            if (kind := seam(exercise_id).swap) not in _ASKED_FOR_THE_GRAPH and not guard.is_out:
                KINDS[kind].theirs(job, guard)
        if job.serializers:
            simulation.swap(SpanningRecordSerializer=partial(InTurn, tuple(job.serializers)))


def _are_connected(simulation: Simulation) -> bool:
    shuffles = [deployment.shuffle for deployment in simulation.deployments]
    wanted = sum(len(each.remote_channels) for each in shuffles)
    return wanted <= sum(len(end.readers) for each in shuffles for end in each.producer_connections)


def _spark_says(session: SparkSession, want: _Hours, num_flights: int) -> str:
    """Whether Spark counts the same hours from the same flights, in a line."""
    found = departures_per_window(load(session, num_flights), counts_early_as_0=True)
    is_same = {(row.origin, row.window_start_ms): (row.departures, row.delay_sum_minutes) for row in found} == want
    said = "✓ Spark counts the same" if is_same else "✗ Spark does NOT count the same"
    return f"{said}: {len(found)} hours of an airport, with departures and delays"


def _talk(learners: Mapping[str, Any]) -> FlinkReport:
    """Let the parts that talk speak with a Flink."""
    with contextlib.ExitStack() as stack:
        guards = {
            wanted.swap: stack.enter_context(Guard(learners[each]))
            for each in EXERCISES
            if (wanted := seam(each)).swap in ("wire", "talk") and each in learners
        }
        parts = Parts(
            wire=guarded_wire(guards["wire"])() if "wire" in guards else OURS.wire,
            reader=guarded_talk(guards["talk"]) if "talk" in guards else OURS.reader,
        )
        report = talk_to_flink("all parts", parts, is_learners=bool(guards))
    happened = [line for guard in guards.values() for line in guard.what_happened]
    return dataclasses.replace(report, taken_out=tuple(happened))
