"""A learner's aligner of barriers in a running job, with ours behind it.

It is told what ours has noted, in the words it knows: ends, barriers, a cancellation. From then on both hear every
event, and what the learner's decides is done. Where it fails ours goes on, and whoever waits for that part alone goes
on as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from course.data.crashes import Crashed, count_through_a_crash
from course.data.sample import sample_flights
from course.swap.guard import Guard
from refimpl.consumer import (
    Abort,
    AbortReason,
    AlignmentSnapshot,
    BarrierAligner,
    Complete,
    Decision,
    NetworkInput,
    ResumeChannel,
)
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import Deployment
from refimpl.records import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Event
from refimpl.task import Task

__all__ = ["count_line", "crashed", "num_cuts", "our_aligners", "tasks_of", "their_aligners"]


def our_aligners(job: Any) -> None:
    """Put in an aligner of ours for each that there is: the swap that changes nothing."""
    _swap(job, lambda ours: ours)


def their_aligners(job: Any, guard: Guard) -> None:
    """Let the learner's aligners say where each task is cut."""
    _swap(job, partial(_GuardedAligner, guard))


def crashed(guard: Guard | None, num_flights: int) -> str:
    """What a job has counted whose tasks were cut so, and which crashed once, in a line; without a guard by ours."""
    keys = [flight["origin"] for flight in sample_flights(num_flights)]
    aligner = None if guard is None else lambda num: _GuardedAligner(guard, BarrierAligner(num))
    return count_line(keys, partial(count_through_a_crash, keys, aligner=aligner))


def count_line(keys: Sequence[str], run: Callable[[], Crashed], tells_from: bool = False) -> str:
    """A line on a job that counts `keys` through a crash; it may tell from which checkpoint the job went on."""
    try:
        found = run()
    except USER_CODE_RAISES as error:  # whatever stopped the job is reported, not hidden
        return f"✗ a second job, which was to crash and go on, came to no end: {described(error)[:60]}"
    sign = "✓" if found.counts == dict(Counter(keys)) else "✗"
    place = f"checkpoint {found.restored_id}" if found.restored_id else "its beginning"
    on = f"on from {place}" if tells_from else "on"
    return f"{sign} a second job, which crashed and went {on}, counted {found.total} of {len(keys)} flights"


def num_cuts(job: Any) -> int:
    """The number of the last checkpoint that has cut every task; 0 if none has."""
    cuts = [task.checkpoints.last_cut for task in tasks_of(job)]
    return min((0 if cut is None else cut.checkpoint_id for cut in cuts), default=0)


def tasks_of(job: Any) -> Iterator[Task]:
    """The tasks of a running job."""
    deployments: list[Deployment] = getattr(job, "deployments", None) or [job.deployment]
    for deployment in deployments:
        yield from deployment.tasks


def _swap(job: Any, make: Callable[[BarrierAligner], Any]) -> None:
    for task in tasks_of(job):
        if isinstance(task.input, NetworkInput):
            task.submit(partial(_put, task.input, make))


def _put(read: NetworkInput, make: Callable[[BarrierAligner], Any]) -> None:
    now: Any = read.alignment
    ours = now.ours if isinstance(now, _GuardedAligner) else now
    if isinstance(ours, BarrierAligner):
        read.alignment = make(ours)


class _GuardedAligner:
    """Both aligners hear of each event; what the learner's decides is done, and where it is out what ours does."""

    def __init__(self, guard: Guard, ours: BarrierAligner) -> None:
        self.ours = ours
        self._guard = guard
        self._theirs: Any = None
        self._stopped = set(ours.arrived)
        self._last_told = ours.latest_checkpoint_id - (ours.barrier is not None)
        if not guard.is_out:
            with guard.call():
                self._theirs = guard.part(ours.num_channels)
                self._tell_all()

    def _tell_all(self) -> None:
        """What ours has noted: who has ended, and the barriers that have come; or that the latest one is over."""
        ours = self.ours
        for channel in sorted(ours.ended):
            self._theirs.note_end(channel)
            list(self._theirs.on_end(channel))
        for channel in sorted(ours.arrived):
            list(self._theirs.on_barrier(channel, ours.barrier))
        if ours.barrier is None and ours.latest_checkpoint_id >= 0:
            list(self._theirs.on_cancellation(0, ours.latest_checkpoint_id))

    @property
    def now_ms(self) -> float | None:
        return self.ours.now_ms

    @property
    def next_deadline(self) -> float | None:
        return self.ours.next_deadline

    def tell(self, now_ms: float) -> None:
        self.ours.tell(now_ms)

    def alignment_ms(self, checkpoint_id: int) -> float | None:
        return self.ours.alignment_ms(checkpoint_id)

    def on_aborted(self, checkpoint_id: int) -> list[Decision]:
        return self.ours.on_aborted(checkpoint_id)

    def snapshot(self) -> AlignmentSnapshot:
        return self.ours.snapshot()

    def on_event(self, channel: int, event: Event) -> list[Decision]:
        if isinstance(event, CheckpointBarrier) and event.needs_alignment:
            self._stopped.add(channel)
        decided: Iterable[Decision] = self.ours.on_event(channel, event)
        if not self._guard.is_out:
            with self._guard.call():
                return self._kept([_own(each) for each in self._ask(channel, event)])
        left = self._stopped - self.ours.arrived  # they wait for a part that is gone
        return self._kept([*decided, *map(ResumeChannel, sorted(left))])

    def _ask(self, channel: int, event: Event) -> Iterable[Any]:
        """What the learner's decides."""
        match event:
            case CheckpointBarrier():
                asked: Iterable[Any] = self._theirs.on_barrier(channel, event)
            case CancelCheckpointMarker():
                asked = self._theirs.on_cancellation(channel, event.checkpoint_id)
            case EndOfPartition():
                self._theirs.note_end(channel)
                asked = self._theirs.on_end(channel)
            case _:
                asked = ()
        return asked

    def _kept(self, decisions: Iterable[Decision]) -> list[Decision]:
        """What is news: who does not wait need not go on, and no checkpoint is told twice."""
        kept: list[Decision] = []
        for each in decisions:
            if isinstance(each, ResumeChannel):
                if each.channel not in self._stopped:
                    continue
                self._stopped.remove(each.channel)
            elif isinstance(each, Complete | Abort):
                number = each.barrier.checkpoint_id if isinstance(each, Complete) else each.checkpoint_id
                if number <= self._last_told:
                    continue
                self._last_told = number
            kept.append(each)
        return kept


def _own(decision: Any) -> Decision:
    """What was decided, as the engine's own.

    Raises:
        TypeError: it is nothing that can be done.
    """
    match decision:
        case ResumeChannel(channel):
            return ResumeChannel(int(channel))
        case Complete(CheckpointBarrier()):
            return decision
        case Abort(number, AbortReason() as reason):
            return Abort(int(number), reason)
    raise TypeError(f"{decision!r}"[:60] + " came out, which is no ResumeChannel, no Complete and no Abort")
