"""A learner's windows in a running job that crashes, with the engine's keyed state behind them.

At each barrier what the learner's snapshot returned goes into the operator's state by key, and a new attempt begins
with what a checkpoint has of it. Where the learner's part raises its task fails, and the next attempt has ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.curriculum.parts import CountingWindows
from course.swap.guard import Guard
from course.swap.report import AFTER_A_RESTART, first_lines
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment
from refimpl.records import ANY, StreamRecord, Watermark
from refimpl.state import MemoryStore
from refimpl.state.keyed_state import KeyedStateBackend
from refimpl.state.subtask_state import OperatorStates
from refimpl.task import IterableReader
from refimpl.task.operators import Operator

__all__ = ["WindowsReport", "run_windows"]

_SEED = 3
_NUM_RECORDS = 600
_SIZE_MS = 50
_DISORDER_MS = 20
_CRASH_STEP = 250
_NUM_RESTARTS = 5
_KEYS = ("EWR", "JFK", "LGA")

_Output = dict[tuple[Any, ...], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class WindowsReport:
    """What came out of a job whose windows were swapped and which crashed once, beside what each record comes to.

    `num_wrong` windows are missing, too many, or have other numbers; the rest is as in `SwapReport`.
    """

    part_name: str
    is_learners: bool
    num_windows: int
    num_wrong: int
    num_late: int
    crashed_at: int
    error: str = ""
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0

    @property
    def is_equal(self) -> bool:
        return not (self.error or self.num_wrong)

    def __repr__(self) -> str:
        lines = first_lines(self, "the windows of a job that crashes", AFTER_A_RESTART)
        if self.error:
            lines.append(f"✗ the job stopped: {self.error}")
        lines.append(f"  crashed at step {self.crashed_at}; {self.num_late} records late")
        if self.is_equal:
            lines.append(f"✓ all {self.num_windows} windows are what their records come to")
        else:
            lines.append(f"✗ {self.num_wrong} of {self.num_windows} windows are not what their records come to")
        return "\n".join(lines)


class _SwappedWindows(Operator):
    """An operator by key whose windows are a learner's as long as those are in, and ours after that."""

    states: OperatorStates

    def __init__(self, guard: Guard | None, on_late: Callable[[Any], None]) -> None:
        self.states = OperatorStates(KeyedStateBackend(ANY), {})
        self._table: Any = self.states.keyed.table("windows", ANY, ANY)
        self._guard = guard
        self._on_late = on_late

    def open(self) -> None:
        guard = self._guard
        self._is_theirs = guard is not None and not guard.is_out
        kept = {(key, start): tuple(value) for key, start, value in self._table.items()}

        def begin() -> Any:
            part: Any = guard.part if guard is not None and self._is_theirs else CountingWindows
            windows = part(_SIZE_MS)
            windows.restore([kept])
            return windows

        self._windows: Any = self._asked(begin)

    def emit(self, key: Any, start: int, end: int, count: int, total: int) -> None:
        """Send a result on; what the part's `output` is asked for."""
        self.output.collect(StreamRecord((key, int(start), int(end), int(count), int(total)), int(end) - 1))

    def late(self, key: Any, number: int, timestamp: int) -> None:
        """Note a record that was late."""
        self._on_late((key, number, timestamp))

    def process(self, record: StreamRecord) -> None:
        value: Any = record.value
        key, number = value
        self._asked(lambda: self._windows.on_record(key, number, record.timestamp, self))

    def process_watermark(self, watermark: Watermark) -> None:
        self.current_watermark = watermark.timestamp
        self._asked(lambda: self._windows.on_watermark(watermark.timestamp, self))
        self.output.emit_watermark(watermark)

    def prepare_barrier(self, checkpoint_id: int) -> None:
        state = self._asked(lambda: {key: tuple(map(int, value)) for key, value in self._windows.snapshot().items()})
        for key, start, _ in list(self._table.items()):
            self._table.remove(key, start)
        for (key, start), value in state.items():
            self._table.put(key, int(start), value)

    def _asked(self, call: Callable[[], Any]) -> Any:
        if self._guard is None or not self._is_theirs:
            return call()
        if not self._guard.is_out:
            with self._guard.call():
                return call()
        raise self.fail("the windows", RuntimeError(self._guard.what_happened[0]))


def run_windows(_exercise_id: str, part: Any) -> WindowsReport:
    """Run the job with the learner's windows, or with ours, and say what came out of it."""
    if part is None:
        return _run(None, CountingWindows)
    with Guard(part) as guard:
        return _run(guard, part)


def _records() -> list[tuple[str, int, int]]:
    """Key, number and time of each: a little out of order, as flights are."""
    return [(_KEYS[n * n % 3], n % 17, 4 * n + 37 * n % _DISORDER_MS) for n in range(_NUM_RECORDS)]


def _wanted() -> _Output:
    counts: Counter[tuple[Any, ...]] = Counter()
    totals: Counter[tuple[Any, ...]] = Counter()
    for key, number, time in _records():
        start = time - time % _SIZE_MS
        counts[key, start, start + _SIZE_MS] += 1
        totals[key, start, start + _SIZE_MS] += number
    return {window: (count, totals[window]) for window, count in counts.items()}


def _run(guard: Guard | None, part: Any) -> WindowsReport:
    results: _Output = {}
    late: list[Any] = []
    error, crashed_at = "", 0

    def note(result: tuple[Any, ...]) -> None:
        results[result[:3]] = result[3:]

    config = Config(
        segment_size_bytes=64, num_buffers=64, source_batch=4, checkpoint_interval_ms=5, max_parallelism=256
    )
    environment = StreamEnvironment(config, 2)
    records = environment.source(lambda subtask, of: IterableReader(_records()[subtask::of]), "records", ANY)
    timed = records.assign_timestamps(lambda record: record[2], _DISORDER_MS, every=4)
    numbers = timed.map(lambda record: record[:2], name="numbers", type=ANY).key_by(0)
    numbers.transform("windows", lambda: _SwappedWindows(guard, late.append)).sink(note, name="results")
    restart = FixedDelayRestart(_NUM_RESTARTS, 1.0)
    with Simulation(environment, _SEED, store=MemoryStore(), restart=restart, check_every=0, step_ms=0.1) as job:
        try:
            while job.step() is not None:
                if not crashed_at and job.num_steps >= _CRASH_STEP:
                    crashed_at = job.num_steps
                    job.crash()
        except USER_CODE_RAISES as failure:  # whatever stopped the job is reported, not hidden
            error = described(failure)
    wanted = _wanted()
    return WindowsReport(
        part_name=getattr(part, "__name__", type(part).__name__),
        is_learners=guard is not None,
        num_windows=len(wanted),
        num_wrong=sum(wanted.get(each) != results.get(each) for each in {*wanted, *results}),
        num_late=len(late),
        crashed_at=crashed_at,
        error=error,
        taken_out=() if guard is None else tuple(guard.what_happened),
        num_calls=0 if guard is None else guard.num_calls,
    )
