"""A task's part of a checkpoint: events in, decisions out, and the task carries them out one by one.

The synchronous part of a snapshot is a row of decisions in this order, and the order is the cut:

    PrepareBarrier     each operator, head first, says what must still go out before the barrier
    BroadcastBarrier   to all outputs
    CaptureInputs      unaligned only: what is in flight, behind whatever has been decoded
    TakeState          each operator, head first: its state as bytes, now. A reference that becomes bytes later is
                       the state of later
    WriteState         the bytes are finished, whoever writes them takes their time

What touches an output waits while a writer is blocked: the record it has in hand is in the state already, and must
not come behind the barrier. Decisions that touch none do not wait.

How a task is wired to this: events from the input (`trigger` for the barrier of a `Complete`, `abort` for an `Abort`)
and from outside (`trigger` at a source, `notify_complete`, `notify_aborted`, `written`, `write_failed`) are told when
they come; then, and at the start of each step, the task asks `next_decision` until there is none. It takes no input
while `is_waiting`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum

from refimpl.consumer.barrier_handler import AbortReason
from refimpl.errors import LocalUsageError
from refimpl.records.events import Alignment, CheckpointBarrier
from refimpl.task.snapshot_decisions import (
    BroadcastBarrier,
    BroadcastCancelMarker,
    CancelWrite,
    CaptureInputs,
    DropCapture,
    DropWritten,
    FailTask,
    FinishTask,
    OperatorAborted,
    OperatorComplete,
    PrepareBarrier,
    SendAck,
    SendDecline,
    SendEnded,
    SnapshotDecision,
    TakeState,
    WriteState,
)
from refimpl.transitions import next_state

__all__ = [
    "FINAL_SNAPSHOT",
    "SNAPSHOT_TRANSITIONS",
    "SnapshotEvent",
    "SnapshotState",
    "SubtaskSnapshotting",
]

FINAL_SNAPSHOT = 0
"""Stands for the id of the snapshot at the end of a bounded input, which gets one from the coordinator."""

_MAX_ABORTED = 128


class SnapshotState(Enum):
    """How far one snapshot of a task is."""

    TRIGGERED = "triggered"
    WRITING = "being written"
    ABORTED = "aborted"
    OVER = "over"


class SnapshotEvent(Enum):
    """What can happen to a snapshot."""

    TAKE = "be taken"
    WRITTEN = "be written"
    FAIL = "fail to be written"
    ABORT = "be aborted"


SNAPSHOT_TRANSITIONS: dict[SnapshotState, dict[SnapshotEvent, SnapshotState]] = {
    SnapshotState.TRIGGERED: {
        SnapshotEvent.TAKE: SnapshotState.WRITING,
        SnapshotEvent.ABORT: SnapshotState.OVER,
    },
    SnapshotState.WRITING: {
        SnapshotEvent.WRITTEN: SnapshotState.OVER,
        SnapshotEvent.FAIL: SnapshotState.OVER,
        SnapshotEvent.ABORT: SnapshotState.ABORTED,
    },
    SnapshotState.ABORTED: {  # the write was told to stop, and says how it ended all the same
        SnapshotEvent.WRITTEN: SnapshotState.OVER,
        SnapshotEvent.FAIL: SnapshotState.OVER,
        SnapshotEvent.ABORT: SnapshotState.ABORTED,
    },
    SnapshotState.OVER: {},
}


class SubtaskSnapshotting:
    """The snapshots of one task whose chain is `operators`, head first; `last_id` is the newest seen.

    Flink:   SubtaskCheckpointCoordinatorImpl (streaming.runtime.tasks), 1.11.4
    Differs: decides only. 1.11 has no snapshot at the end of the input.
    """

    def __init__(self, operators: Sequence[str]) -> None:
        self.last_id = FINAL_SNAPSHOT
        self._operators = tuple(operators)
        self._in_order: deque[SnapshotDecision] = deque()  # wait while a writer is blocked
        self._at_once: deque[SnapshotDecision] = deque()
        self._states: dict[int, SnapshotState] = {}  # of snapshots that are not over
        self._aborted: set[int] = set()  # before their barriers have come
        self._has_ended = False

    @property
    def is_waiting(self) -> bool:
        """Whether something must be done before any more input is taken."""
        return bool(self._in_order)

    @property
    def num_writing(self) -> int:
        """Writes whose answers are to come; a task does not finish before."""
        return sum(state is not SnapshotState.TRIGGERED for state in self._states.values())

    def next_decision(self, is_blocked: bool) -> SnapshotDecision | None:
        """What to do next; `is_blocked` says whether a writer has a record in hand. `None`: nothing now."""
        if self._at_once:
            return self._at_once.popleft()
        if is_blocked or not self._in_order:
            return None
        decision = self._in_order.popleft()
        if isinstance(decision, WriteState):
            self._go_on(decision.checkpoint_id, SnapshotEvent.TAKE)
        return decision

    # -- barriers --------------------------------------------------------------------------------

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """The cut is here: at a source somebody asks for it, elsewhere all channels have delivered the barrier."""
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id <= self.last_id or self._has_ended:
            if barrier.alignment is Alignment.UNALIGNED:
                self._at_once.append(DropCapture(checkpoint_id))
            return
        self.last_id = checkpoint_id
        is_aborted = checkpoint_id in self._aborted
        self._aborted = {each for each in self._aborted if each > checkpoint_id}
        if is_aborted:
            self._in_order.append(BroadcastCancelMarker(checkpoint_id))
            return
        self._states[checkpoint_id] = SnapshotState.TRIGGERED
        self._in_order += [PrepareBarrier(checkpoint_id, operator) for operator in self._operators]
        self._in_order.append(BroadcastBarrier(barrier))
        if barrier.alignment is Alignment.UNALIGNED:
            self._in_order.append(CaptureInputs(checkpoint_id))
        self._take(checkpoint_id)

    def abort(self, checkpoint_id: int, reason: AbortReason) -> None:
        """The input says that this checkpoint will not be: a cancel marker came, or a channel ended."""
        self.last_id = max(self.last_id, checkpoint_id)
        self._aborted = {each for each in self._aborted if each > self.last_id}
        self._at_once += [SendDecline(checkpoint_id, reason), DropCapture(checkpoint_id)]
        if not self._give_up(checkpoint_id):
            self._in_order.append(BroadcastCancelMarker(checkpoint_id))

    def end_of_input(self) -> None:
        """All input has been processed, and an operator wants to be told once more: its last state is taken.

        Raises:
            LocalUsageError: that has been said.
        """
        if self._has_ended:
            raise LocalUsageError("the input has ended already")
        self._has_ended = True
        self._states[FINAL_SNAPSHOT] = SnapshotState.TRIGGERED
        self._take(FINAL_SNAPSHOT)

    # -- the coordinator ---------------------------------------------------------------------------

    def notify_complete(self, checkpoint_id: int) -> None:
        """The checkpoint counts. For a task that has ended, one it has not seen is the final one."""
        self._in_order += [OperatorComplete(checkpoint_id, operator) for operator in self._operators]
        if self._has_ended and checkpoint_id > self.last_id:
            self.last_id = checkpoint_id
            self._in_order.append(FinishTask())

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never count; at most 128 are remembered whose barriers have not come yet."""
        if checkpoint_id > self.last_id:
            self._aborted.add(checkpoint_id)
            if len(self._aborted) > _MAX_ABORTED:
                self._aborted.remove(min(self._aborted))
            return
        self._give_up(checkpoint_id)
        self._at_once.append(DropCapture(checkpoint_id))
        self._in_order += [OperatorAborted(checkpoint_id, operator) for operator in self._operators]

    # -- the writer --------------------------------------------------------------------------------

    def written(self, checkpoint_id: int) -> None:
        """What was to be written is durable.

        Raises:
            LocalUsageError: nothing of that checkpoint is being written.
        """
        was_wanted = self._state_of(checkpoint_id) is SnapshotState.WRITING
        self._go_on(checkpoint_id, SnapshotEvent.WRITTEN)
        if not was_wanted:
            self._at_once.append(DropWritten(checkpoint_id))
        elif checkpoint_id == FINAL_SNAPSHOT:
            self._at_once.append(SendEnded())
        else:
            self._at_once.append(SendAck(checkpoint_id))

    def write_failed(self, checkpoint_id: int, detail: str) -> None:
        """It could not be written: the checkpoint is declined, and the task goes on.

        Raises:
            LocalUsageError: nothing of that checkpoint is being written.
        """
        was_wanted = self._state_of(checkpoint_id) is SnapshotState.WRITING
        self._go_on(checkpoint_id, SnapshotEvent.FAIL)
        if was_wanted and checkpoint_id != FINAL_SNAPSHOT:
            self._at_once.append(SendDecline(checkpoint_id, AbortReason.IO, detail))
        self._at_once.append(DropWritten(checkpoint_id))
        if was_wanted and checkpoint_id == FINAL_SNAPSHOT:
            self._at_once.append(FailTask(f"the final snapshot could not be written: {detail}"))

    # -- helpers -----------------------------------------------------------------------------------

    def _take(self, checkpoint_id: int) -> None:
        self._in_order += [TakeState(checkpoint_id, operator) for operator in self._operators]
        self._in_order.append(WriteState(checkpoint_id))

    def _give_up(self, checkpoint_id: int) -> bool:
        """Stop a snapshot; true if a marker goes out where its barrier would have."""
        state = self._states.get(checkpoint_id)
        if state is None:
            return False
        if state is SnapshotState.WRITING:
            self._at_once.append(CancelWrite(checkpoint_id))
        kept, is_in_time = deque[SnapshotDecision](), False
        for each in self._in_order:
            if not _is_of(each, checkpoint_id):
                kept.append(each)
            elif isinstance(each, BroadcastBarrier):
                kept.append(BroadcastCancelMarker(checkpoint_id))
                is_in_time = True
        self._in_order = kept
        self._go_on(checkpoint_id, SnapshotEvent.ABORT)
        return is_in_time

    def _state_of(self, checkpoint_id: int) -> SnapshotState:
        return self._states.get(checkpoint_id, SnapshotState.OVER)

    def _go_on(self, checkpoint_id: int, event: SnapshotEvent) -> None:
        subject = f"the snapshot for checkpoint {checkpoint_id}"
        state = next_state(SNAPSHOT_TRANSITIONS, self._state_of(checkpoint_id), event, subject)
        if state is SnapshotState.OVER:
            del self._states[checkpoint_id]
        else:
            self._states[checkpoint_id] = state


def _is_of(decision: SnapshotDecision, checkpoint_id: int) -> bool:
    """Whether a decision is one of the synchronous part of that checkpoint's snapshot."""
    if isinstance(decision, BroadcastBarrier):
        return decision.barrier.checkpoint_id == checkpoint_id
    parts = (PrepareBarrier, CaptureInputs, TakeState, WriteState)
    return isinstance(decision, parts) and decision.checkpoint_id == checkpoint_id
