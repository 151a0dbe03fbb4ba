"""One barrier out of many: the moment at which every channel has delivered it.

A barrier cuts each channel in two. A task with several channels gets it several times, and at
different times; its own cut is where the last one comes. What it does with the fast channels until
then is the whole question:

    exactly once    they wait, so nothing from behind the barrier is processed before the cut
    at least once   they go on, so the cut holds what is processed twice after a failure

Nothing is kept here while a channel waits. Its producer stops behind the barrier by itself and goes
on when it is told to; so what waits, waits in the producer's queue, and costs the producer's buffers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from refimpl.config import CheckpointingMode, FlinkVersion
from refimpl.consumer.barrier_handler import Abort, AbortReason, BarrierHandler, Complete, Decision, ResumeChannel
from refimpl.errors import RemoteProtocolError
from refimpl.records.events import CheckpointBarrier

__all__ = ["BarrierAligner", "BarrierTracker", "barrier_handler"]

_MOST_PENDING = 50


class BarrierAligner(BarrierHandler):
    """Exactly once: a channel that has delivered the barrier waits for the others. One checkpoint at a time.

    A newer barrier ends the alignment for an older one. In 1.11 the end of a channel does so too; in 2.x
    it counts as the barrier.

    Flink:   CheckpointBarrierAligner (streaming.runtime.io), 1.11.4;
             SingleCheckpointBarrierHandler.aligned (streaming.runtime.io.checkpointing), 2.2.1
    """

    mode = CheckpointingMode.EXACTLY_ONCE

    def __init__(self, num_channels: int, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        super().__init__(num_channels, version)
        self.barrier: CheckpointBarrier | None = None  # the one that is being aligned
        self.arrived: set[int] = set()  # the channels that have delivered it, and wait

    def pending(self) -> tuple[int, Iterable[int]]:
        return (-1, ()) if self.barrier is None else (self.latest_checkpoint_id, self.arrived)

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        decisions: list[Decision] = []
        if barrier.checkpoint_id > self.latest_checkpoint_id:
            decisions = self.subsume(barrier.checkpoint_id)
            self.barrier = barrier
        elif barrier.checkpoint_id < self.latest_checkpoint_id or self.barrier is None:
            return [ResumeChannel(channel)]  # of a checkpoint that is over
        elif channel in self.arrived:
            raise RemoteProtocolError(f"channel {channel}: barrier {barrier.checkpoint_id} a second time")
        self.arrived.add(channel)
        return decisions + self._complete_if_all()

    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        is_pending = self.barrier is not None and checkpoint_id == self.latest_checkpoint_id
        if checkpoint_id <= self.latest_checkpoint_id and not is_pending:
            return []
        self.latest_checkpoint_id = checkpoint_id
        return self._abort(checkpoint_id, AbortReason.CANCELLED, True)

    def on_end(self, channel: int) -> list[Decision]:
        if self.barrier is None:
            return []
        if self._counts_ended:
            return self._complete_if_all()
        return self._abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED, False)

    def subsume(self, by_id: int) -> list[Decision]:
        """A barrier of another kind and with this id has come: what is pending will not be a checkpoint."""
        latest_id, self.latest_checkpoint_id = self.latest_checkpoint_id, max(self.latest_checkpoint_id, by_id)
        if self.barrier is None:
            return []
        return self._abort(latest_id, AbortReason.SUBSUMED, self._counts_ended)

    def give_up(self) -> None:
        """Forget what is being aligned: somebody else goes on with it, and lets the channels go on that wait."""
        self._release()

    def _complete_if_all(self) -> list[Decision]:
        if self.barrier is None or len(self.arrived | self.ended) < self.num_channels:
            return []
        complete = Complete(self.barrier)
        resumed = self._release()
        return [complete, *resumed] if self._counts_ended else [*resumed, complete]

    def _abort(self, checkpoint_id: int, reason: AbortReason, is_resumed_first: bool) -> list[Decision]:
        abort = Abort(checkpoint_id, reason)
        resumed = self._release()
        return [*resumed, abort] if is_resumed_first else [abort, *resumed]

    def _release(self) -> list[Decision]:
        resumed: list[Decision] = [ResumeChannel(channel) for channel in sorted(self.arrived)]
        self.barrier = None
        self.arrived.clear()
        return resumed


@dataclass(slots=True)
class _Pending:
    """A checkpoint some channels have delivered the barrier of; `barrier` is unknown if it was cancelled first."""

    checkpoint_id: int
    barrier: CheckpointBarrier | None
    arrived: set[int] = field(default_factory=set)
    is_aborted: bool = False


class BarrierTracker(BarrierHandler):
    """At least once: nobody waits, barriers are counted. Several checkpoints at a time, at most 50.

    In 1.11 the end of a channel aborts what is counted, and no later checkpoint completes; in 2.x it
    counts as the barrier.

    Flink:   CheckpointBarrierTracker (streaming.runtime.io), 1.11.4, 2.2.1
    Differs: a barrier repeated on a channel counts once; 1.11.4 counts it again.
    """

    mode = CheckpointingMode.AT_LEAST_ONCE

    def __init__(self, num_channels: int, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        super().__init__(num_channels, version)
        self._pending: deque[_Pending] = deque()  # the oldest first
        self._newest_id = -1

    def pending(self) -> tuple[int, Iterable[int]]:
        for each in self._pending:
            if not each.is_aborted:
                return each.checkpoint_id, each.arrived
        return -1, ()

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        decisions: list[Decision] = [ResumeChannel(channel)]
        checkpoint_id = barrier.checkpoint_id
        found = next((each for each in self._pending if each.checkpoint_id == checkpoint_id), None)
        if found is None:
            if checkpoint_id <= self._newest_id:
                return decisions
            self._newest_id = checkpoint_id
            found = _Pending(checkpoint_id, barrier)
            self._pending.append(found)
            if len(self._pending) > _MOST_PENDING:
                self._pending.popleft()
        found.arrived.add(channel)
        return self._decided(decisions + self._complete_last())

    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        decisions: list[Decision] = []
        while self._pending and self._pending[0].checkpoint_id < checkpoint_id:
            decisions += self._abort(self._pending.popleft(), AbortReason.CANCELLED)
        if self._pending and self._pending[0].checkpoint_id == checkpoint_id:
            first = self._pending[0]
            decisions += self._abort(first, AbortReason.CANCELLED)
            first.arrived.add(channel)
            if self._is_complete(first):
                self._pending.popleft()
        elif checkpoint_id > self._newest_id:
            self._newest_id = checkpoint_id
            cancelled = _Pending(checkpoint_id, None, {channel})
            self._pending.appendleft(cancelled)
            decisions += self._abort(cancelled, AbortReason.CANCELLED)
        return self._decided(decisions)

    def on_end(self, channel: int) -> list[Decision]:
        if self._counts_ended:
            return self._decided(self._complete_last())
        decisions: list[Decision] = []
        while self._pending:
            decisions += self._abort(self._pending.popleft(), AbortReason.INPUT_ENDED)
        return self._decided(decisions)

    def _is_complete(self, pending: _Pending) -> bool:
        ended = self.ended if self._counts_ended else set()
        return len(pending.arrived | ended) == self.num_channels

    def _complete_last(self) -> list[Decision]:
        """The newest checkpoint that all have delivered completes, and with it those before are over."""
        last = next((each for each in reversed(self._pending) if self._is_complete(each)), None)
        if last is None:
            return []
        while self._pending.popleft() is not last:
            pass
        return [] if last.is_aborted or last.barrier is None else [Complete(last.barrier)]

    @staticmethod
    def _abort(pending: _Pending, reason: AbortReason) -> list[Decision]:
        if pending.is_aborted:
            return []
        pending.is_aborted = True
        return [Abort(pending.checkpoint_id, reason)]

    def _decided(self, decisions: list[Decision]) -> list[Decision]:
        self.latest_checkpoint_id = self._pending[-1].checkpoint_id if self._pending else -1
        return decisions


def barrier_handler(mode: CheckpointingMode, num_channels: int, version: FlinkVersion) -> BarrierHandler:
    """The one for a mode."""
    handler = BarrierAligner if mode is CheckpointingMode.EXACTLY_ONCE else BarrierTracker
    return handler(num_channels, version)
