"""A day on which much goes wrong: a job of hourly windows, the troubles that a seed draws for it, and what it comes to.

    flights → timestamps → (by origin) → hourly ─┬─ printed at once
                                                 └─ files, committed in two phases

What is printed has left the job; what is in the files counts when it is committed. All of a day follows from its seed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

from course.data.flights_job import NUM_KEY_GROUPS, DelayTotals, departure
from course.data.oracle import HOUR_MS
from course.data.sample import sample_flights
from refimpl.checkpoint import CheckpointAborted, CheckpointFailureReason, CheckpointStatsSnapshot
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.recovery import JobRecovery
from refimpl.job import StreamEnvironment
from refimpl.job.data_stream import DataStream
from refimpl.records import Field, StreamRecord
from refimpl.state import Fault, FaultKind, MemoryStore
from refimpl.task import ReaderFactory, TumblingWindows

__all__ = [
    "NUM_FLIGHTS",
    "SEED",
    "Day",
    "Incident",
    "OnMoment",
    "Trouble",
    "TroubleKind",
    "committed_in",
    "drawn",
    "hourly",
    "in_words",
    "lived",
]

SEED = 3
NUM_FLIGHTS = 600
NUM_TASK_MANAGERS = 2
DISORDER_MS = 3 * HOUR_MS
"""Of the first 600 flights none comes more than 147 minutes behind a later one: with this bound none is late."""

OnMoment = Callable[[Simulation, str, bool], object]
"""Sees a day; hears what has just happened, and whether it is a trouble."""

_STEP_MS = 0.05
_INTERVAL_MS = 4
_LENGTH_MS = 40.0  # of an undisturbed day, about
_NOTICED_AFTER_MS = 1.0
_REVIVED_AFTER_MS = 2.0
_RESTART_DELAY_MS = 1.0
_NUM_RESTARTS = 20


class TroubleKind(Enum):
    """What can go wrong."""

    TASK_MANAGER = "a TaskManager is gone"
    CONNECTION = "a connection is cut"
    STORE_FULL = "the store has no room for one file"
    NO_ANSWER = "an answer of the store gets lost"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that goes wrong `at_ms` of the day; `subject` says to which of those that there are."""

    kind: TroubleKind
    at_ms: float
    subject: int = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """A moment that on-call would ask about. `num_again` are flights that had been read, and will be read again."""

    time_ms: float
    what: str
    comes_of_it: str
    num_again: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """What a day came to: lines of text, sorted, and how it went."""

    printed: list[str]
    committed: list[str]
    num_read: int
    incidents: list[Incident]
    checkpoints: CheckpointStatsSnapshot

    @property
    def num_again(self) -> int:
        """Flights that were read more than once, each as often as it was read again."""
        return sum(each.num_again for each in self.incidents)


def drawn(seed: int, num_each: int = 1, length_ms: float = _LENGTH_MS) -> tuple[Trouble, ...]:
    """The troubles of a day of `length_ms`: each kind `num_each` times, at times that the seed draws, in order."""
    random = Random(f"a bad day {seed}")
    kinds = [kind for kind in TroubleKind for _ in range(num_each)]
    random.shuffle(kinds)
    span = length_ms / len(kinds)
    return tuple(
        Trouble(kind, round((number + random.uniform(0.2, 0.9)) * span, 1), random.randrange(NUM_TASK_MANAGERS))
        for number, kind in enumerate(kinds)
    )


# -- the job -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Positions:
    """How far each reader is, and how many flights have been read in all, some of them again."""

    of: dict[int, int] = field(default_factory=dict)
    num_read: int = 0


class _FlightReader:
    """Each n-th flight; it tells how far it is, and can begin anywhere."""

    def __init__(self, flights: Sequence[Mapping[str, Any]], subtask: int, of: int, positions: _Positions) -> None:
        self._flights, self._subtask, self._positions = flights[subtask::of], subtask, positions
        self.seek(0)

    def seek(self, position: int) -> None:
        self._positions.of[self._subtask] = position

    def read(self, max_records: int) -> list[StreamRecord] | None:
        start = self._positions.of[self._subtask]
        flights = self._flights[start : start + max_records]
        self._positions.of[self._subtask] += len(flights)
        self._positions.num_read += len(flights)
        return [StreamRecord(dict(flight)) for flight in flights] or None

    def close(self) -> None: ...


def hourly(environment: StreamEnvironment, make_reader: ReaderFactory) -> DataStream:
    """`(origin, start_ms, end_ms, (departures, sum of delays))` for each hour of event time that has a flight."""
    timed = environment.source(make_reader, name="flights").assign_timestamps(
        Field("event_time_ms"), DISORDER_MS, every=8
    )
    departed = timed.map(departure, name="departure").filter(lambda flown: flown[1] is not None, name="flown")
    return departed.key_by(0).window(TumblingWindows(HOUR_MS)).aggregate(DelayTotals(), name="hourly")


def in_words(result: Any) -> str:
    """A result as a line of text: origin, hours since 1970, departures, sum of delays in minutes."""
    origin, start_ms, _end_ms, (count, total) = result
    return f"{origin} {start_ms // HOUR_MS} {count} {total}"


def committed_in(folder: Path) -> list[str]:
    """The lines of a `FileSink` that count by now, sorted. What begins with a dot does not."""
    files = [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []
    return sorted(line for each in files for line in each.read_text(encoding="utf-8").splitlines())


# -- a day ---------------------------------------------------------------------------------------------------


def lived(
    troubles: Sequence[Trouble] = (),
    seed: int = SEED,
    on_moment: OnMoment = lambda _run, _what, _is_trouble: None,
    flights: Sequence[Mapping[str, Any]] | None = None,
    check_every: int = 0,
) -> Day:
    """Live through a day of these flights, or of the first of the year; `seed` chooses its steps.

    `on_moment` hears of each step and of each trouble what it was, and which of the two.

    Raises:
        SluiceError: the job has failed for ever.
        AssertionError: a law is broken.
    """
    given = sample_flights(NUM_FLIGHTS) if flights is None else flights
    with tempfile.TemporaryDirectory() as folder:
        return _Living(troubles, seed, given, Path(folder) / "out", check_every).to_the_end(on_moment)


class _Living:
    """A day on its way."""

    def __init__(
        self, troubles: Sequence[Trouble], seed: int, flights: Sequence[Mapping[str, Any]], out: Path, check_every: int
    ) -> None:
        self._left = [*troubles]
        self._out = out
        self._positions, self._printed = _Positions(), list[str]()
        self._incidents: list[Incident] = []
        self._last_outcome: object = None
        self._position_before = 0
        self._is_at_work = True
        self._store = MemoryStore()
        config = Config(
            segment_size_bytes=64,
            num_buffers=64,
            source_batch=4,
            max_parallelism=NUM_KEY_GROUPS,
            checkpoint_interval_ms=_INTERVAL_MS,
            tolerable_failed_checkpoints=3,
        )
        environment = StreamEnvironment(config, NUM_TASK_MANAGERS)
        results = hourly(environment, lambda subtask, of: _FlightReader(flights, subtask, of, self._positions))
        lines = results.map(in_words, name="line")
        lines.sink(self._printed.append, "printed")
        lines.sink_to(FileSink(out), name="files")
        self._run = Simulation(
            environment,
            seed,
            check_every=check_every,
            step_ms=_STEP_MS,
            num_task_managers=NUM_TASK_MANAGERS,
            store=self._store,
            restart=FixedDelayRestart(_NUM_RESTARTS, _RESTART_DELAY_MS),
        )

    def to_the_end(self, on_moment: OnMoment) -> Day:
        with self._run as run:
            on_moment(run, "start", False)
            while (action := run.step()) is not None:
                self._look(run)
                on_moment(run, str(action), False)
                for trouble in [each for each in self._left if each.at_ms <= run.time_ms]:
                    if (what := self._strike(trouble, run)) is not None:
                        self._left.remove(trouble)
                        self._look(run)
                        on_moment(run, what, True)
            stats = run.snapshot().checkpoints
            assert stats is not None, "a run with a store has checkpoints"
        return Day(sorted(self._printed), committed_in(self._out), self._positions.num_read, self._incidents, stats)

    def _strike(self, trouble: Trouble, run: Simulation) -> str | None:
        """Let it happen, and say to whom; `None` while there is nothing for it to happen to."""
        if run.is_done:
            return trouble.kind.value
        if not self._is_at_work:
            return None
        what = trouble.kind.value
        match trouble.kind:
            case TroubleKind.TASK_MANAGER:
                number = trouble.subject % NUM_TASK_MANAGERS
                what = f"tm-{number} is gone"
                self._note(run, what, "its tasks went with it")
                run.kill(number, _REVIVED_AFTER_MS, _NOTICED_AFTER_MS)
            case TroubleKind.CONNECTION:
                links = sorted(run.links)
                if not links:
                    return None
                self._note(run, what, "who reads there fails")
                run.lose(links[trouble.subject % len(links)])
            case TroubleKind.STORE_FULL:
                self._note(run, what, "the next task that saves its state cannot")
                self._plan(FaultKind.NO_SPACE)
            case TroubleKind.NO_ANSWER:
                self._note(run, what, "the next task that saves its state never hears of it")
                self._plan(FaultKind.LOSE_ANSWER)
        return what

    def _plan(self, kind: FaultKind) -> None:
        """Let the next write of a task's state go wrong; equal faults would count as one, so the amounts differ."""
        self._store.faults.append(Fault(kind, "put", ".state", amount=1 + len(self._store.faults)))

    # -- what happens ------------------------------------------------------------------------------------

    def _look(self, run: Simulation) -> None:
        """Note what on-call would ask about, if it has just happened."""
        assert run.recovery is not None, "it has a store"
        given_up = self._given_up(run.recovery)
        is_at_work = run.recovery.is_at_work or run.is_done
        if self._is_at_work and not is_at_work:
            self._position_before = sum(self._positions.of.values())
            lost = "".join(f"; checkpoint {each.checkpoint_id} is given up" for each in given_up)
            self._note(run, "the job has failed", f"all tasks end, their state is lost{lost}")
        elif is_at_work and not self._is_at_work:
            recovered = run.recovery.checkpoints.recovered
            manifest = None if recovered is None else recovered.manifest
            again = self._position_before - sum(self._positions.of.values())
            origin = "from its beginning" if manifest is None else f"from checkpoint {manifest.checkpoint_id}"
            self._note(run, f"the job goes on {origin}", f"{again} flights come again", again)
        else:
            for each in given_up:
                if each.reason is CheckpointFailureReason.IO:
                    self._note(run, f"checkpoint {each.checkpoint_id} is given up", "the job runs on without it")
        self._is_at_work = is_at_work

    def _given_up(self, recovery: JobRecovery) -> list[CheckpointAborted]:
        """The checkpoints that have been given up since this was asked last, the oldest first."""
        history = recovery.checkpoints.history
        new = [*takewhile(lambda each: each is not self._last_outcome, reversed(history))]
        self._last_outcome = history[-1] if history else None
        return [each for each in reversed(new) if isinstance(each, CheckpointAborted)]

    def _note(self, run: Simulation, what: str, comes_of_it: str, num_again: int = 0) -> None:
        self._incidents.append(Incident(run.time_ms, what, comes_of_it, num_again))
