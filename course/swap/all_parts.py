"""All parts of a learner in one job, which crashes once and goes on from its newest checkpoint.

Each part goes in with a guard of its own, so one that raises is named and taken out, and the others stay. Where a
learner has no part that passed, the course's own goes the same way. What a part cannot do in this job (it writes
batches, or belongs to the time before credit) is said instead of a count of its calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

from course.curriculum.manifest import EXERCISES
from course.curriculum.parts import to_departure
from course.curriculum.seams import Seam, seam
from course.data.flights_job import LARGEST_DISORDER_MS, flights_job
from course.data.sample import sample_flights
from course.swap.guard import Guard
from course.swap.into_job import records_in
from course.swap.kinds import KINDS
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment, WatermarkStrategy
from refimpl.memory import BufferBuilder
from refimpl.records import SerializationResult
from refimpl.state import Fault, FaultKind, MemoryStore
from refimpl.task import IterableReader

__all__ = ["AllParts", "PartInJob", "run_all_parts"]

_NUM_TASK_MANAGERS = 2
_NUM_RECORDS = 600
_RECORDS_BEFORE_A_SWAP = 50
_CRASH_BETWEEN = 1_500, 2_500
_STEP_MS = 0.05
_MAX_DELAY_MS = 0.2
_MAX_STEPS = 200_000
_OPTIONS = Config(
    segment_size_bytes=64,
    num_buffers=64,
    object_reuse=False,
    checkpoint_interval_ms=5,
    buffer_timeout_ms=1,
    auto_watermark_interval_ms=1,
)
_STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(LARGEST_DISORDER_MS)
_MAKES_THE_GRAPH = ("is_chainable", "build_chains", "why_not")
_ELSEWHERE = {
    "blocking": "waits for the end: not in a pipelined job",
    "marks": "from the time before credit",
    "waiting": "from the time before credit",
    "bottleneck": "reads measurements, no records",
    "storm": "a queue of Storm",
}
_A_RULE = "judges parts, carries no records"


@dataclass(frozen=True, slots=True)
class PartInJob:
    """A row of the page: an exercise, its part's name, whose it is, how often it was called, and what became of it.

    `why_not` says why the part was not in the job; empty if it was. `taken_out` is empty for a part that stayed in.
    """

    exercise: str
    name: str
    is_learners: bool
    num_calls: int = 0
    why_not: str = ""
    taken_out: tuple[str, ...] = ()

    @property
    def whose(self) -> str:
        return "yours" if self.is_learners else "the course's"

    @property
    def calls(self) -> str:
        if self.why_not:
            return self.why_not
        said = f"{self.num_calls:,} times"
        return f"{said}, then taken out" if self.taken_out else said


@dataclass(frozen=True, slots=True)
class AllParts:
    """What one job came to with all parts in it. `error` is what stopped it, or empty."""

    rows: tuple[PartInJob, ...]
    is_equal: bool
    num_flights: int
    seed: int
    num_crashes: int
    restored_id: int
    error: str = ""
    _heads: tuple[str, ...] = field(default=("Exercise", "Part", "Whose", "Called"), repr=False)

    @property
    def result(self) -> str:
        """The lines below the table: who was taken out, and whether the answer is right."""
        lines = [
            f"✗ {row.exercise} {row.name} was taken out: {row.taken_out[0]}; ours went on"
            for row in self.rows
            if row.taken_out
        ]
        crash = f"crashed {self.num_crashes} time, went on from checkpoint {self.restored_id}"
        how = f"{self.num_flights} flights, seed {self.seed}, {crash}"
        if self.error:
            lines.append(f"✗ {how}; the job stopped: {self.error}")
        else:
            sign, same = ("✓", "what") if self.is_equal else ("✗", "NOT what")
            lines.append(f"{sign} {how}: the hourly departures are {same} our parts count undisturbed")
        if self.error or not self.is_equal:
            suspects = ", ".join(each.exercise for each in self.rows if each.is_learners and not each.why_not)
            lines.append(f"  L.swap(…) tries one part alone; yours in this job: {suspects or 'none'}")
        return "\n".join(lines)

    def _cells(self) -> list[tuple[str, ...]]:
        return [self._heads, *((each.exercise, each.name, each.whose, each.calls) for each in self.rows)]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return "\n".join([*lines, "", self.result])

    def _repr_markdown_(self) -> str:
        head, *rows = [f"| {' | '.join(row)} |" for row in self._cells()]
        below = "  \n".join(self.result.split("\n"))
        return "\n".join([head, "|---" * len(self._heads) + "|", *rows, "", below])


def run_all_parts(learners: Mapping[str, Any], seed: int = 1, num_flights: int = _NUM_RECORDS) -> AllParts:
    """Run a job with all parts: those in `learners`, by exercise, and the course's for the rest.

    `seed` chooses the order of the job's steps, how long messages take, when it crashes, and which checkpoint's file
    is not written.
    """
    flights = sample_flights(num_flights)
    want = _undisturbed(flights)
    with contextlib.ExitStack() as stack:
        entered: dict[str, Guard] = {}
        for exercise_id in EXERCISES:
            if not _why_not(wanted := seam(exercise_id)):
                part = learners.get(exercise_id, None)
                entered[exercise_id] = stack.enter_context(Guard(_ours(wanted) if part is None else part))
        got, num_crashes, restored_id, error = _through_a_crash(flights, entered, seed)
    rows = tuple(_row(each, learners.get(each), entered.get(each)) for each in EXERCISES)
    return AllParts(rows, got == want, num_flights, seed, num_crashes, restored_id, error)


def _row(exercise_id: str, part: Any, guard: Guard | None) -> PartInJob:
    wanted = seam(exercise_id)
    name = wanted.part if part is None else getattr(part, "__name__", type(part).__name__)
    if guard is None:
        return PartInJob(exercise_id, name, part is not None, why_not=_why_not(wanted))
    return PartInJob(exercise_id, name, part is not None, guard.num_calls, taken_out=tuple(guard.what_happened))


def _why_not(wanted: Seam) -> str:
    """Why a part is not in this job; empty if it is."""
    if wanted.swap in _MAKES_THE_GRAPH:
        return ""
    if wanted.swap in KINDS:
        return _ELSEWHERE.get(wanted.swap, "")
    return _A_RULE if wanted.swap.startswith("rule of ") else _ELSEWHERE.get(wanted.swap, "has no place in it")


def _ours(wanted: Seam) -> Any:
    return getattr(import_module(wanted.module), wanted.part)


def _job(flights: Sequence[dict[str, Any]], on_result: Callable[[Any], object]) -> StreamEnvironment:
    def read(subtask: int, of: int) -> IterableReader:
        return IterableReader([dict(each) for each in flights[subtask::of]])

    return flights_job(read, on_result, _OPTIONS, 2, to_departure, _STRATEGY)


def _noted_in(results: dict[Any, Any]) -> Callable[[Any], None]:
    """Keeps the last result of each hour: what was said before a crash may be said again after it."""

    def note(result: tuple[Any, int, int, Any]) -> None:
        origin, start, _end, totals = result
        results[origin, start] = totals

    return note


def _undisturbed(flights: Sequence[dict[str, Any]]) -> dict[Any, Any]:
    results: dict[Any, Any] = {}
    with Simulation(_job(flights, _noted_in(results)), 1, check_every=0, step_ms=_STEP_MS) as simulation:
        simulation.run()
    return results


def _through_a_crash(
    flights: Sequence[dict[str, Any]], entered: Mapping[str, Guard], seed: int
) -> tuple[dict[Any, Any], int, int, str]:
    """Results, number of crashes, the checkpoint it went on from, and what stopped the job."""
    results: dict[Any, Any] = {}
    chance = Random(seed)
    crash_step = chance.randint(*_CRASH_BETWEEN)
    store = MemoryStore([Fault(FaultKind.FAIL, "put", number=chance.randint(2, 6))])
    job = _job(flights, _noted_in(results))
    num_crashes = restored_id = 0
    error = ""
    try:
        for exercise_id, guard in entered.items():
            if (kind := seam(exercise_id).swap) in _MAKES_THE_GRAPH:
                job.use(**{kind: guard_of_rule(guard, _ours(seam(exercise_id)))})
        with Simulation(
            job,
            seed,
            check_every=0,
            step_ms=_STEP_MS,
            num_task_managers=_NUM_TASK_MANAGERS,
            max_delay_ms=_MAX_DELAY_MS,
            store=store,
            restart=FixedDelayRestart(5, 1.0),
        ) as simulation:
            put = _PutOnce(entered)
            simulation.run(crash_step, on_step=put)
            if not simulation.is_done:
                simulation.crash()
                num_crashes = 1
            simulation.run(_MAX_STEPS, on_step=put)
            if not simulation.is_done:
                error = f"it was not done after {_MAX_STEPS:,} steps"
            recovered = None if simulation.recovery is None else simulation.recovery.checkpoints.recovered
            restored_id = 0 if recovered is None else recovered.checkpoint_id
    except USER_CODE_RAISES as trouble:  # whatever stopped the job is reported, not hidden
        error = described(trouble)
    return results, num_crashes, restored_id, error


def guard_of_rule(guard: Guard, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is asked when the graph is made, with ours behind it."""

    def guarded(*given: Any) -> Any:
        if not guard.is_out:
            with guard.call():
                return guard.part(*given)
        return ours(*given)

    return guarded


class _PutOnce:
    """Puts all parts into a job, and again into what is deployed after a crash."""

    def __init__(self, entered: Mapping[str, Guard]) -> None:
        self._entered = entered
        self._done: Any = None

    def __call__(self, simulation: Simulation) -> None:
        now = simulation.deployments[0]
        if now is self._done or records_in(simulation, 0) < _RECORDS_BEFORE_A_SWAP:
            return
        self._done = now
        gathering = _Gathering(simulation)
        for exercise_id, guard in self._entered.items():
            if (kind := seam(exercise_id).swap) not in _MAKES_THE_GRAPH and not guard.is_out:
                KINDS[kind].theirs(gathering, guard)
        if gathering.serializers:
            simulation.swap(SpanningRecordSerializer=partial(_InTurn, tuple(gathering.serializers)))


class _Gathering:
    """A job that keeps the serializers that are put into it, as an output has only one."""

    def __init__(self, job: Simulation) -> None:
        self._job = job
        self.serializers: list[Callable[[], Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    def swap(self, **parts: Any) -> None:
        if (make := parts.pop("SpanningRecordSerializer", None)) is not None:
            self.serializers.append(make)
        if parts:
            self._job.swap(**parts)


class _InTurn:
    """Several serializers at one output: each record goes through the next of them."""

    def __init__(self, make: Sequence[Callable[[], Any]]) -> None:
        self._all = [each() for each in make]
        self._at = 0

    def serialize_record(self, record: bytes) -> None:
        self._at = (self._at + 1) % len(self._all)
        self._all[self._at].serialize_record(record)

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        result: SerializationResult = self._all[self._at].copy_to_buffer_builder(builder)
        return result

    def reset(self) -> None:
        self._all[self._at].reset()

    def prune(self) -> None:
        self._all[self._at].prune()
