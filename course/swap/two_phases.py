"""A learner's sink with two phases in a running job that crashes between its two phases, and goes on.

Two sources deal numbers out to two sinks. Everything is crashed twice: when one sink has taken its part of a checkpoint
and the other has not, so that it never comes about; and when a checkpoint is complete, and its sinks have not heard
of it. What was pre-committed is found in the newest state, what was open is written once more. Where the learner's
part raises, its task fails as any task does, and the job goes back to its newest checkpoint, with ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course.swap.guard import Guard
from course.swap.report import AFTER_A_RESTART, first_lines
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, TypeSerializer
from refimpl.state import MemoryStore
from refimpl.task import IterableReader, OperatorContext, Output
from refimpl.task.sink_operators import TwoPhaseSinkOperator
from refimpl.task.two_phase_sink import SinkState, TwoPhaseCommitSink

__all__ = ["SinkReport", "run_two_phases"]

_SEED = 3
_NUM_RECORDS = 600
_NUM_RESTARTS = 5
_NUM_SINKS = 2
_BETWEEN_CRASHES = 150
_INTERVAL_MS = 5
_STEP_MS = 0.1
_FINAL_ID = 2**63 - 1
"""What waits for the end of the input has the largest number there is."""


@dataclass(frozen=True, slots=True)
class SinkReport:
    """What came out of a job whose sinks were swapped and which crashed between the two phases.

    `num_lost` records never came out, `num_twice` is how many came out too often. `crashes` are the steps of the
    crashes, each with the checkpoint that the job went on from; `num_left` transactions were neither committed
    nor aborted. The rest is as in `SwapReport`.
    """

    part_name: str
    is_learners: bool
    num_records: int
    num_out: int
    num_lost: int
    num_twice: int
    crashes: tuple[tuple[int, int], ...]
    num_transactions: int
    num_left: int
    error: str = ""
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether each record came out exactly once."""
        return not (self.error or self.num_lost or self.num_twice)

    def __repr__(self) -> str:
        lines = first_lines(
            self,
            "the sink of a job that crashes between the two phases",
            AFTER_A_RESTART,
        )
        if self.error:
            lines.append(f"✗ the job stopped: {self.error}")
        lines += [
            *(f"  crashed at step  {step:>6}, went on from checkpoint {number}" for step, number in self.crashes),
            f"  transactions     {self.num_transactions:>6} committed, {self.num_left} left behind that nobody ended",
            f"  came out         {self.num_out:>6} of {self.num_records}",
        ]
        lost, twice = self.num_lost, self.num_twice
        lines.append("✓ each exactly once" if self.is_equal else f"✗ {lost} lost, {twice} more than once")
        return "\n".join(lines)


class _Ledger:
    """Where results go, for all attempts of all sinks: what outlives a crash, and what everybody can see."""

    def __init__(self) -> None:
        self.durable: dict[str, list[Any]] = {}
        self.begun: set[str] = set()
        self.ended: set[str] = set()
        self.num_committed = 0
        self.out: list[Any] = []
        self.taken: dict[int, int] = {}
        self.heard = 0

    def is_due(self, num_crashes: int, newest_complete: int) -> bool:
        """Whether this is the moment of the next crash; some checkpoint is complete before it."""
        if len(self.taken) < _NUM_SINKS:
            return False
        newest, oldest = max(self.taken.values()), min(self.taken.values())
        if num_crashes == 0:
            return newest > oldest and newest > newest_complete > 0
        return num_crashes == 1 and newest_complete > self.heard

    def transactions(self, subtask: int, attempt: int) -> _Transactions:
        return _Transactions(self, f"{subtask}-{attempt}")

    def job_finished(self) -> None:
        """Keep what is left: it is counted."""


class _Transactions:
    """Those of one attempt of one subtask: what is open is in its memory."""

    def __init__(self, ledger: _Ledger, prefix: str) -> None:
        self._ledger = ledger
        self._prefix = prefix
        self._open: dict[str, list[Any]] = {}
        self._num_begun = 0

    def begin(self) -> str:
        name = f"{self._prefix}-{self._num_begun}"
        self._num_begun += 1
        self._open[name] = []
        self._ledger.begun.add(name)
        return name

    def write(self, transaction: str, value: object) -> None:
        held = self._open if transaction in self._open else self._ledger.durable
        held[transaction].append(value)

    def pre_commit(self, transaction: str) -> None:
        self._ledger.durable.setdefault(transaction, []).extend(self._open.pop(transaction, ()))

    def commit(self, transaction: str) -> None:
        self.pre_commit(transaction)  # who commits early has not
        self._ledger.out += self._ledger.durable.pop(transaction)
        if transaction not in self._ledger.ended:
            self._ledger.ended.add(transaction)
            self._ledger.num_committed += 1

    def abort(self, transaction: str) -> None:
        self._open.pop(transaction, None)
        self._ledger.durable.pop(transaction, None)
        self._ledger.ended.add(transaction)


class _SwappedSink(TwoPhaseSinkOperator):
    """The engine's operator, with a learner's sink in it as long as that is in."""

    def __init__(self, guard: Guard | None, ledger: _Ledger, value_type: TypeSerializer) -> None:
        super().__init__(ledger, value_type)
        self._guard = guard
        self._ledger = ledger

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        if self._guard is not None and not self._guard.is_out:
            assert context.attempt is not None, "the job has a store"
            theirs: Any = _TheirSink(self._guard, self._transactions(context.subtask, context.attempt))
            self.sink = theirs

    def prepare_barrier(self, checkpoint_id: int) -> None:
        super().prepare_barrier(checkpoint_id)
        self._ledger.taken[self.context.subtask] = checkpoint_id

    def notify_complete(self, checkpoint_id: int) -> None:
        super().notify_complete(checkpoint_id)
        self._ledger.heard = max(self._ledger.heard, checkpoint_id)


class _TheirSink:
    """A learner's sink as the engine's operator calls one: the end of the input is a last snapshot.

    Raises (all methods):
        RuntimeError: the part is out; the task fails, and its next attempt has ours.
    """

    def __init__(self, guard: Guard, transactions: Any) -> None:
        self.state = SinkState(None, ())
        self._guard = guard
        self._last_snapshot_id = 0
        self._is_ended = False
        self._is_open = False
        self._transactions = transactions
        self._theirs: Any = None

    def restore(self, states: Sequence[SinkState] = ()) -> None:
        self._theirs = self._asked(lambda: self._guard.part(self._transactions))  # here it is the task that fails
        self._asked(lambda: self._theirs.restore(list(states)))
        self._is_open = True

    def invoke(self, value: object) -> None:
        self._asked(lambda: self._theirs.invoke(value))

    def snapshot(self, checkpoint_id: int) -> SinkState:
        if not self._is_ended:
            self._last_snapshot_id = checkpoint_id
            self.state = self._asked(lambda: _own(self._theirs.snapshot(checkpoint_id)))
        return self.state

    def complete(self, checkpoint_id: int) -> None:
        is_final = self._is_ended and checkpoint_id > self._last_snapshot_id
        number = _FINAL_ID if is_final else checkpoint_id
        self._asked(lambda: self._theirs.complete(number))

    def aborted(self, checkpoint_id: int) -> None:
        """Nothing: what waits for it is committed with the next."""

    def end_of_input(self) -> None:
        self.state = self._asked(lambda: _own(self._theirs.snapshot(_FINAL_ID)))
        self._is_ended = True

    def close(self) -> None:
        if self._is_open and not self._guard.is_out:
            self._is_open = False
            self._asked(lambda: self._theirs.close())

    def _asked(self, call: Any) -> Any:
        if not self._guard.is_out:
            with self._guard.call():
                return call()
        raise RuntimeError(f"the sink failed: {self._guard.what_happened[0]}")


def _own(state: Any) -> SinkState:
    """What snapshot returned, as it is; a checkpoint is written from it.

    Raises:
        TypeError: it is no state.
    """
    if not isinstance(state, SinkState):
        raise TypeError(f"a {type(state).__name__} came out, which is no SinkState")
    pairs = tuple((int(number), str(name)) for number, name in state.pending)
    return SinkState(None if state.open is None else str(state.open), pairs)


def run_two_phases(_exercise_id: str, part: Any) -> SinkReport:
    """Run the job with the learner's sinks, or with ours, and say what came out of it."""
    if part is None:
        return _run(None, TwoPhaseCommitSink)
    with Guard(part) as guard:
        return _run(guard, part)


def _run(guard: Guard | None, part: Any) -> SinkReport:
    ledger, error = _Ledger(), ""
    crashes: list[tuple[int, int]] = []
    next_step = _BETWEEN_CRASHES
    config = Config(
        segment_size_bytes=64, num_buffers=64, source_batch=4, checkpoint_interval_ms=_INTERVAL_MS, max_parallelism=256
    )
    environment = StreamEnvironment(config, _NUM_SINKS)
    numbers = environment.source(lambda subtask, of: IterableReader(range(subtask, _NUM_RECORDS, of)), "numbers", LONG)
    numbers.rebalance().transform("results", lambda: _SwappedSink(guard, ledger, LONG))
    restart = FixedDelayRestart(_NUM_RESTARTS, 1.0)
    with Simulation(environment, _SEED, store=MemoryStore(), restart=restart, check_every=0, step_ms=_STEP_MS) as job:
        try:
            while job.step() is not None:
                newest = _newest_complete(job)
                if job.num_steps >= next_step and ledger.is_due(len(crashes), newest):
                    next_step = job.num_steps + _BETWEEN_CRASHES
                    crashes.append((job.num_steps, newest))
                    job.crash()
                    ledger.taken.clear()
        except USER_CODE_RAISES as failure:  # whatever stopped the job is reported, not hidden
            error = described(failure)
    counts = Counter(ledger.out)
    return SinkReport(
        part_name=getattr(part, "__name__", type(part).__name__),
        is_learners=guard is not None,
        num_records=_NUM_RECORDS,
        num_out=len(ledger.out),
        num_lost=sum(number not in counts for number in range(_NUM_RECORDS)),
        num_twice=sum(count - 1 for count in counts.values()),
        crashes=tuple(crashes),
        num_transactions=ledger.num_committed,
        num_left=len(ledger.begun - ledger.ended),
        error=error,
        taken_out=() if guard is None else tuple(guard.what_happened),
        num_calls=0 if guard is None else guard.num_calls,
    )


def _newest_complete(job: Simulation) -> int:
    """The newest checkpoint that the store has whole, 0 if there is none."""
    assert job.recovery is not None, "the job has a store"
    found = job.recovery.checkpoints.stats.snapshot().latest_completed
    return 0 if found is None else found.checkpoint_id
