"""A learner's unaligner in a running job whose barriers overtake, with ours behind it.

It is told what ours has noted, in the words it knows: ends, barriers, or that a checkpoint is over. From then on both
hear the same, and what the learner's decides is done. Where it fails ours goes on; a checkpoint that the learner's had
not begun, or not ended, is aborted then, as its copies are not those of its cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from course.data.crashes import count_through_a_crash
from course.data.sample import sample_flights
from course.swap.checkpoints import count_line, tasks_of
from course.swap.guard import Guard
from refimpl.consumer import (
    Abort,
    AbortReason,
    AlternatingBarrierHandler,
    BarrierUnaligner,
    Captured,
    CaptureState,
    Decision,
    NetworkInput,
    StartCapture,
)
from refimpl.records import Alignment, CheckpointBarrier

__all__ = ["crashed_with_copies", "our_unaligners", "their_unaligners"]

_SEED, _CRASH_STEP = 4, 200
"""Where each channel of several tasks has data in flight at the checkpoint from which the job goes on."""


def our_unaligners(job: Any) -> None:
    """Put in an unaligner of ours for each that there is: the swap that changes nothing."""
    _swap(job, None)


def their_unaligners(job: Any, guard: Guard) -> None:
    """Let the learner's unaligners say where each task is cut, and until when its channels are copied."""
    _swap(job, guard)


def crashed_with_copies(guard: Guard | None, num_flights: int) -> str:
    """What a job has counted that went on from such cuts and copies, in a line; without a guard from those of ours."""
    keys = [flight["origin"] for flight in sample_flights(num_flights)]
    made = partial(_guarded, guard)
    run = partial(count_through_a_crash, keys, seed=_SEED, crash_step=_CRASH_STEP, unaligner=made)
    return count_line(keys, run, tells_from=True)


def _guarded(guard: Guard | None, ours: BarrierUnaligner) -> Any:
    return ours if guard is None else _GuardedUnaligner(guard, ours)


def _swap(job: Any, guard: Guard | None) -> None:
    for task in tasks_of(job):
        if isinstance(task.input, NetworkInput):
            task.submit(partial(_put, task.input, guard))


def _put(read: NetworkInput, guard: Guard | None) -> None:
    handler = read.alignment
    if isinstance(handler, AlternatingBarrierHandler):
        now: Any = handler.unaligner
        handler.unaligner = _guarded(guard, now.ours if isinstance(now, _GuardedUnaligner) else now)


class _GuardedUnaligner:
    """Both unaligners hear of all; what the learner's decides is done, and where it is out what ours does."""

    def __init__(self, guard: Guard, ours: BarrierUnaligner) -> None:
        self.ours = ours
        self._guard = guard
        self._theirs: Any = None
        self._started_id, self._over_id = self._ids()
        self._begin()

    def _ids(self) -> tuple[int, int]:
        """The last checkpoint that was begun, and the last one that is over, as ours has it."""
        latest = self.ours.latest_checkpoint_id
        return latest, latest - (self.ours.state is CaptureState.CAPTURING)

    def _begin(self) -> None:
        """A part of theirs that knows what ours does."""
        if not self._guard.is_out:
            with self._guard.call():
                self._theirs = self._guard.part(self.ours.num_channels)
                self._tell_all()

    def _tell_all(self) -> None:
        ours, latest = self.ours, self.ours.latest_checkpoint_id
        for channel in sorted(ours.ended):
            self._theirs.note_end(channel)
            list(self._theirs.on_end(channel))
        if ours.state is CaptureState.CAPTURING:
            for channel in sorted(ours.delivered):
                list(self._theirs.on_barrier(channel, CheckpointBarrier(latest, 0, alignment=Alignment.UNALIGNED)))
        elif latest >= 0:
            list(self._theirs.on_cancellation(0, latest))

    # -- what ours alone is asked -----------------------------------------------------------------------

    @property
    def latest_checkpoint_id(self) -> int:
        return self.ours.latest_checkpoint_id

    @latest_checkpoint_id.setter
    def latest_checkpoint_id(self, checkpoint_id: int) -> None:
        if checkpoint_id != self.ours.latest_checkpoint_id:
            self.ours.latest_checkpoint_id = checkpoint_id
            self._anew([])

    def pending(self) -> tuple[int, Iterable[int]]:
        return self.ours.pending()

    def subsume(self, by_id: int) -> list[Decision]:
        return self._anew(self.ours.subsume(by_id))

    def take_over(self, barrier: CheckpointBarrier, arrived: Iterable[int]) -> list[Decision]:
        return self._anew(self.ours.take_over(barrier, arrived))

    def _anew(self, decided: list[Decision]) -> list[Decision]:
        """What ours has decided about something that theirs does not know; a new one of theirs goes on from there."""
        self._started_id, self._over_id = self._ids()
        self._begin()
        return decided

    # -- what both are asked ----------------------------------------------------------------------------

    def note_end(self, channel: int) -> None:
        self.ours.note_end(channel)
        if not self._guard.is_out:
            with self._guard.call():
                self._theirs.note_end(channel)

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        return self._asked(self.ours.on_barrier(channel, barrier), "on_barrier", channel, barrier)

    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        return self._asked(self.ours.on_cancellation(channel, checkpoint_id), "on_cancellation", channel, checkpoint_id)

    def on_end(self, channel: int) -> list[Decision]:
        return self._asked(self.ours.on_end(channel), "on_end", channel)

    def on_aborted(self, checkpoint_id: int) -> list[Decision]:
        decided = self._asked(self.ours.on_aborted(checkpoint_id), "on_aborted", checkpoint_id)
        if checkpoint_id == self._started_id:
            self._over_id = max(self._over_id, checkpoint_id)
        return decided

    def _asked(self, decided: Iterable[Decision], method: str, *given: Any) -> list[Decision]:
        if not self._guard.is_out:
            with self._guard.call():
                theirs = [_own(each) for each in getattr(self._theirs, method)(*given)]
                return self._kept(sorted(theirs, key=_turn))
        return self._kept(self._mended(decided))

    def _mended(self, decided: Iterable[Decision]) -> Iterable[Decision]:
        """What ours decides now that it is alone: what theirs had not begun cannot be captured."""
        for each in decided:
            if isinstance(each, Captured) and each.checkpoint_id != self._started_id:
                yield Abort(each.checkpoint_id, AbortReason.IO)
            else:
                yield each

    def _kept(self, decisions: Iterable[Decision]) -> list[Decision]:
        """What is news: each checkpoint begins once and is over once."""
        kept: list[Decision] = []
        for each in decisions:
            if isinstance(each, StartCapture):
                number = each.barrier.checkpoint_id
                if number <= max(self._started_id, self._over_id):
                    continue
                self._started_id = number
            elif isinstance(each, Captured | Abort):
                if each.checkpoint_id <= self._over_id:
                    continue
                self._over_id = each.checkpoint_id
            kept.append(each)
        return kept


def _turn(decision: Decision) -> int:
    """What is over comes before what begins, and what is captured last: a learner's list has no order."""
    return 0 if isinstance(decision, Abort) else 1 if isinstance(decision, StartCapture) else 2


def _own(decision: Any) -> Decision:
    """What was decided, as the engine's own.

    Raises:
        TypeError: it is nothing that can be done.
    """
    match decision:
        case StartCapture(CheckpointBarrier()):
            return decision
        case Captured(number) if not isinstance(number, CheckpointBarrier):
            return Captured(int(number))
        case Abort(number, AbortReason() as reason):
            return Abort(int(number), reason)
    said = f"{decision!r}"[:60]
    raise TypeError(f"{said} came out, which is no StartCapture of a barrier, no Captured of a number and no Abort")
