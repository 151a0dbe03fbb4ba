"""A barrier that does not wait: the first one is the cut, and what the others are behind of is copied.

A barrier that overtakes comes out of each channel before the data that was sent before it. So a task can take its
snapshot with the first one. What it had not processed by then and what still comes of a channel before that channel's
own barrier belongs to the checkpoint as bytes; `channel_capture` has them.

    IDLE         nothing is copied
    CAPTURING    some channels have not delivered the barrier of the current checkpoint: what they bring is copied
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from refimpl.config import CheckpointingMode, FlinkVersion
from refimpl.consumer.alignment import BarrierAligner
from refimpl.consumer.barrier_handler import (
    Abort,
    AbortReason,
    BarrierHandler,
    Captured,
    Decision,
    ResumeChannel,
    StartCapture,
)
from refimpl.records.events import Alignment, CheckpointBarrier
from refimpl.transitions import next_state

__all__ = [
    "CAPTURE_TRANSITIONS",
    "AlternatingBarrierHandler",
    "BarrierUnaligner",
    "CaptureEvent",
    "CaptureState",
]


class CaptureState(Enum):
    """Whether a checkpoint is on its way through the channels of an input."""

    IDLE = "idle"
    CAPTURING = "capturing"


class CaptureEvent(Enum):
    """What can happen to an input; `newer`, `current` and `older` are by the id of the checkpoint that came last."""

    NEWER_BARRIER = "see a newer barrier"
    CURRENT_BARRIER = "see the current barrier"
    OLDER_BARRIER = "see an older barrier"
    CANCEL = "see a cancel marker"
    END = "see the end of a channel"
    LAST_DELIVERED = "have the last channel delivered"
    ABORT = "hear that the checkpoint was aborted"
    TAKE_OVER = "take over an alignment that takes too long"


_S, _E = CaptureState, CaptureEvent

CAPTURE_TRANSITIONS: dict[CaptureState, dict[CaptureEvent, CaptureState]] = {
    CaptureState.IDLE: {
        CaptureEvent.NEWER_BARRIER: CaptureState.CAPTURING,
        CaptureEvent.CURRENT_BARRIER: CaptureState.IDLE,
        CaptureEvent.OLDER_BARRIER: CaptureState.IDLE,
        CaptureEvent.CANCEL: CaptureState.IDLE,  # of a checkpoint not seen yet; it is remembered
        CaptureEvent.END: CaptureState.IDLE,
        CaptureEvent.ABORT: CaptureState.IDLE,
        CaptureEvent.TAKE_OVER: CaptureState.CAPTURING,  # while another is captured nothing is aligned
    },
    CaptureState.CAPTURING: {
        CaptureEvent.NEWER_BARRIER: CaptureState.CAPTURING,  # of the newer one, from the start
        CaptureEvent.CURRENT_BARRIER: CaptureState.CAPTURING,
        CaptureEvent.OLDER_BARRIER: CaptureState.CAPTURING,
        CaptureEvent.CANCEL: CaptureState.IDLE,
        CaptureEvent.END: CaptureState.IDLE,  # from 1.14 on it counts as the barrier instead
        CaptureEvent.LAST_DELIVERED: CaptureState.IDLE,
        CaptureEvent.ABORT: CaptureState.IDLE,
    },
}


class BarrierUnaligner(BarrierHandler):
    """Exactly once without waiting: the first barrier of a checkpoint is the cut. One checkpoint at a time.

    `on_barrier` hears of a barrier when it has overtaken what waits in its channel, `on_aborted` of what somebody else
    has given up. In 1.11 the end of a channel aborts what is captured; in 2.x it counts as the barrier.

    Flink:   CheckpointBarrierUnaligner, its ThreadSafeUnaligner (streaming.runtime.io), 1.11.4
    Differs: a barrier is seen once. Flink sees it when it is received and when it is consumed, and keeps two counts.
    """

    mode = CheckpointingMode.EXACTLY_ONCE

    def __init__(self, num_channels: int, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        super().__init__(num_channels, version)
        self.state = CaptureState.IDLE
        self.delivered: set[int] = set()

    def pending(self) -> tuple[int, Iterable[int]]:
        return (-1, ()) if self.state is CaptureState.IDLE else (self.latest_checkpoint_id, self.delivered)

    def _is_unaligned(self, checkpoint_id: int) -> bool:
        return checkpoint_id >= 0

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        decisions: list[Decision] = []
        if barrier.checkpoint_id > self.latest_checkpoint_id:
            if self.state is CaptureState.CAPTURING:
                decisions.append(Abort(self.latest_checkpoint_id, AbortReason.SUBSUMED))
            self._go_on(CaptureEvent.NEWER_BARRIER)
            self.latest_checkpoint_id = barrier.checkpoint_id
            self.delivered.clear()
            decisions.append(StartCapture(barrier))
        elif barrier.checkpoint_id < self.latest_checkpoint_id:
            self._go_on(CaptureEvent.OLDER_BARRIER)
            return []
        else:
            self._go_on(CaptureEvent.CURRENT_BARRIER)
        if self.state is CaptureState.CAPTURING:
            self.delivered.add(channel)
        return decisions + self._captured_if_all()

    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        is_pending = self.state is CaptureState.CAPTURING and checkpoint_id == self.latest_checkpoint_id
        if checkpoint_id <= self.latest_checkpoint_id and not is_pending:
            return []
        self._go_on(CaptureEvent.CANCEL)
        self.latest_checkpoint_id = checkpoint_id
        return [Abort(checkpoint_id, AbortReason.CANCELLED)]

    def on_end(self, channel: int) -> list[Decision]:
        if self._counts_ended:
            return self._captured_if_all()
        was_capturing = self.state is CaptureState.CAPTURING
        self._go_on(CaptureEvent.END)
        return [Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED)] if was_capturing else []

    def on_aborted(self, checkpoint_id: int) -> list[Decision]:
        """Somebody has given a checkpoint up: nothing more of it is captured."""
        if checkpoint_id == self.latest_checkpoint_id:
            self._go_on(CaptureEvent.ABORT)
        return []

    def subsume(self, by_id: int) -> list[Decision]:
        """A barrier of another kind and with this id has come: what is captured will not be a checkpoint."""
        was_capturing, latest_id = self.state is CaptureState.CAPTURING, self.latest_checkpoint_id
        self._go_on(CaptureEvent.ABORT)
        self.latest_checkpoint_id = max(latest_id, by_id)
        return [Abort(latest_id, AbortReason.SUBSUMED)] if was_capturing else []

    def take_over(self, barrier: CheckpointBarrier, arrived: Iterable[int]) -> list[Decision]:
        """Go on with a checkpoint that was being aligned, of which channels in `arrived` have delivered the barrier."""
        self._go_on(CaptureEvent.TAKE_OVER)
        self.latest_checkpoint_id = barrier.checkpoint_id
        self.delivered = set(arrived)
        return [StartCapture(barrier), *self._captured_if_all()]

    def _captured_if_all(self) -> list[Decision]:
        if self.state is CaptureState.IDLE or len(self.delivered | self.ended) < self.num_channels:
            return []
        self._go_on(CaptureEvent.LAST_DELIVERED)
        return [Captured(self.latest_checkpoint_id)]

    def _go_on(self, event: CaptureEvent) -> None:
        self.state = next_state(CAPTURE_TRANSITIONS, self.state, event, f"checkpoint {self.latest_checkpoint_id}")


class AlternatingBarrierHandler(BarrierHandler):
    """Does with each barrier what it asks for: a checkpoint's overtakes, a savepoint's is aligned.

    A newer barrier of the other kind ends what is pending, as one of the same kind does. One of the same checkpoint has
    stopped waiting on its way, or not yet: what is aligned goes on as unaligned, and never the other way.

    Flink:   AlternatingCheckpointBarrierHandler (streaming.runtime.io), 1.11.4; AlternatingCollectingBarriers,
             AlternatingCollectingBarriersUnaligned (streaming.runtime.io.checkpointing), 2.2.1
    Differs: channels that wait go on at the switch; Flink's wait for the last barrier.
    """

    mode = CheckpointingMode.EXACTLY_ONCE

    def __init__(self, num_channels: int, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        super().__init__(num_channels, version)
        self.unaligner = BarrierUnaligner(num_channels, version)
        self.aligner = BarrierAligner(num_channels, version)
        self._unaligned_id = -1  # the newest checkpoint that is not aligned
        self._announced: CheckpointBarrier | None = None  # waits in a channel, and none of its checkpoint is here

    def pending(self) -> tuple[int, Iterable[int]]:
        unaligned = self.unaligner.pending()
        return unaligned if unaligned[0] >= 0 else self.aligner.pending()

    def _is_unaligned(self, checkpoint_id: int) -> bool:
        return checkpoint_id >= 0 and checkpoint_id == self._unaligned_id

    def tell(self, now_ms: float) -> None:
        super().tell(now_ms)
        if self._announced is not None:
            self._first_ms.setdefault(self._announced.checkpoint_id, now_ms)

    def announce(self, barrier: CheckpointBarrier) -> None:
        """A barrier has come that waits its turn in a channel: others may have to wait for it too long."""
        if barrier.has_timeout and barrier.checkpoint_id > self.latest_checkpoint_id:
            self._announced = barrier

    @property
    def next_deadline(self) -> float | None:
        barrier = self._announced or self.aligner.barrier
        if barrier is None or not barrier.has_timeout:
            return None
        first_ms = self._first_ms.get(barrier.checkpoint_id)
        return None if first_ms is None else barrier.timeout_at_ms(first_ms)

    def on_timeout(self, now_ms: float) -> list[Decision]:
        self.tell(now_ms)
        deadline_ms, announced = self.next_deadline, self._announced
        if deadline_ms is None or now_ms < deadline_ms:
            return []
        if announced is None:
            return self._noted(self._switch())
        return self._noted(self._begin(announced))

    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id < self.latest_checkpoint_id:
            return [ResumeChannel(channel)]
        self._see(checkpoint_id)
        if barrier.alignment is Alignment.UNALIGNED:
            is_same = checkpoint_id == self.aligner.pending()[0]
            decisions = self._switch() if is_same else self.aligner.subsume(checkpoint_id)
            self._unaligned_id = checkpoint_id
            return decisions + self.unaligner.on_barrier(channel, barrier)
        if checkpoint_id == self._unaligned_id:
            return [ResumeChannel(channel), *self.unaligner.on_barrier(channel, barrier)]
        return self.unaligner.subsume(checkpoint_id) + self.aligner.on_barrier(channel, barrier)

    def _see(self, checkpoint_id: int) -> None:
        """One of this checkpoint is here; what was announced of it, or of an older one, matters no more."""
        self.latest_checkpoint_id = checkpoint_id
        if self._announced is not None and self._announced.checkpoint_id <= checkpoint_id:
            self._announced = None

    def _begin(self, announced: CheckpointBarrier) -> list[Decision]:
        """Here is the cut, before any barrier: the one that is known of has waited too long."""
        checkpoint_id = announced.checkpoint_id
        self._see(checkpoint_id)
        self._unaligned_id = checkpoint_id
        subsumed = self.aligner.subsume(checkpoint_id) + self.unaligner.subsume(checkpoint_id)
        return subsumed + self.unaligner.take_over(announced.as_unaligned(), ())

    def _switch(self) -> list[Decision]:
        """Go on as unaligned: here is the cut, and who has delivered the barrier need not deliver it again."""
        barrier, arrived = self.aligner.barrier, sorted(self.aligner.arrived)
        assert barrier is not None, f"{self}: nothing is being aligned"
        self.aligner.give_up()
        self._unaligned_id = barrier.checkpoint_id
        resumed = [ResumeChannel(channel) for channel in arrived]
        return [*self.unaligner.take_over(barrier.as_unaligned(), arrived), *resumed]

    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        if checkpoint_id < self.latest_checkpoint_id:
            return []
        self._see(checkpoint_id)
        first, second = self._by_turn()
        decisions = first.on_cancellation(channel, checkpoint_id)
        second.latest_checkpoint_id = max(second.latest_checkpoint_id, checkpoint_id)
        return decisions

    def on_end(self, channel: int) -> list[Decision]:
        decisions: list[Decision] = []
        for handler in (self.unaligner, self.aligner):
            handler.note_end(channel)
            decisions += handler.on_end(channel)
        return decisions

    def on_aborted(self, checkpoint_id: int) -> list[Decision]:
        return self.unaligner.on_aborted(checkpoint_id)

    def _by_turn(self) -> tuple[BarrierHandler, BarrierHandler]:
        """The handler that had the last barrier, and the other."""
        is_aligned = self.aligner.pending()[0] >= 0
        return (self.aligner, self.unaligner) if is_aligned else (self.unaligner, self.aligner)
