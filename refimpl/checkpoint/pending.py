"""One checkpoint under way: who has acknowledged it, and whether it can still be given up.

While it collects, anything may end it. Once its manifest is being written nothing can: nobody knows yet whether the
manifest is there, and if it is, the checkpoint is complete, whatever has happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.state.manifest import CheckpointKind, StateFile, StateRecord
from refimpl.transitions import next_state

__all__ = [
    "PENDING_TRANSITIONS",
    "Ack",
    "AckResult",
    "AttemptId",
    "PendingCheckpoint",
    "PendingEvent",
    "PendingSnapshot",
    "PendingState",
]

AttemptId: TypeAlias = Hashable
"""One attempt of one subtask; no two of a job are equal, whatever they are made of."""


@dataclass(frozen=True, slots=True)
class Ack:
    """An attempt's part of a checkpoint: its files are durable.

    `alignment_ms` lies between its first barrier and its last, `None` where nobody told. `is_unaligned`: its barriers
    have overtaken what waited. `states` is what the manifest will say of the states of each operator; nothing here
    looks at it.
    """

    checkpoint_id: int
    attempt: AttemptId
    files: tuple[StateFile, ...] = ()
    states: Mapping[str, Sequence[StateRecord]] = field(default_factory=dict)
    alignment_ms: float | None = None
    is_unaligned: bool = False

    @property
    def buffered_bytes(self) -> int:
        """What its files have of what was in flight: none where barriers do not overtake."""
        return sum(file.channel_state for file in self.files)


class AckResult(Enum):
    """What an acknowledgement was good for.

    Flink:   PendingCheckpoint.TaskAcknowledgeResult (runtime.checkpoint), 1.11.4
    """

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"  # such an attempt, or such a checkpoint, is not expected
    DISCARDED = "discarded"  # the checkpoint is over


class PendingState(Enum):
    """How far a checkpoint is."""

    COLLECTING = "collecting"
    WRITING = "writing its manifest"
    COMPLETED = "completed"
    ABORTED = "aborted"


class PendingEvent(Enum):
    """What can happen to a checkpoint."""

    ACK = "take an ack"
    WRITE = "write its manifest"
    FAIL = "fail"
    SUBSUME = "be subsumed"
    WRITTEN = "hear that its manifest is written"
    NOT_WRITTEN = "hear that its manifest is not written"
    SUSPEND = "lose its job"


_S, _E = PendingState, PendingEvent
_OVER = (_E.ACK, _E.FAIL, _E.SUBSUME, _E.WRITTEN, _E.NOT_WRITTEN, _E.SUSPEND)

PENDING_TRANSITIONS: dict[PendingState, dict[PendingEvent, PendingState]] = {
    _S.COLLECTING: {
        _E.ACK: _S.COLLECTING,
        _E.WRITE: _S.WRITING,
        _E.FAIL: _S.ABORTED,
        _E.SUBSUME: _S.ABORTED,
        _E.SUSPEND: _S.ABORTED,
    },
    _S.WRITING: {
        _E.ACK: _S.WRITING,  # one that has come twice
        _E.FAIL: _S.WRITING,  # too late to undo
        _E.WRITTEN: _S.COMPLETED,
        _E.NOT_WRITTEN: _S.ABORTED,
        _E.SUSPEND: _S.WRITING,  # who restarts waits for the outcome
    },
    _S.COMPLETED: dict.fromkeys(_OVER, _S.COMPLETED),
    _S.ABORTED: dict.fromkeys(_OVER, _S.ABORTED),
}


@dataclass(frozen=True, slots=True)
class PendingSnapshot:
    """A checkpoint under way at one moment."""

    checkpoint_id: int
    request: CheckpointRequest
    state: PendingState
    started_ms: float
    acks: tuple[Ack, ...]
    missing: tuple[AttemptId, ...]


class PendingCheckpoint:
    """Checkpoint `checkpoint_id`, begun for `request` at `started_ms`; all of `awaited` have to acknowledge it.

    `acks` are in the order in which they came. `finished` are attempts that need no state any more, known when its
    manifest is begun. `reason` and `detail` say why it was aborted.

    Flink:   PendingCheckpoint (runtime.checkpoint), 1.11.4
    Differs: the manifest is written by somebody else, who tells how it went; Flink writes it in `finalizeCheckpoint`.
    """

    def __init__(
        self, checkpoint_id: int, request: CheckpointRequest, started_ms: float, awaited: Sequence[AttemptId]
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.request = request
        self.started_ms = started_ms
        self.state = PendingState.COLLECTING
        self.missing = dict.fromkeys(awaited)
        self.acks: dict[AttemptId, Ack] = {}
        self.finished: tuple[AttemptId, ...] = ()
        self.reason: CheckpointFailureReason | None = None
        self.detail = ""

    def __repr__(self) -> str:
        return f"checkpoint {self.checkpoint_id}"

    @property
    def can_be_subsumed(self) -> bool:
        """Whether a newer one makes this one superfluous: a savepoint was asked for by name."""
        return self.request.kind is not CheckpointKind.SAVEPOINT

    @property
    def is_fully_acknowledged(self) -> bool:
        return not self.missing

    @property
    def is_over(self) -> bool:
        return self.state in (PendingState.COMPLETED, PendingState.ABORTED)

    @property
    def keys(self) -> list[str]:
        """The keys of all files that were acknowledged."""
        return [file.key for ack in self.acks.values() for file in ack.files]

    def snapshot(self) -> PendingSnapshot:
        acks, missing = tuple(self.acks.values()), tuple(self.missing)
        return PendingSnapshot(self.checkpoint_id, self.request, self.state, self.started_ms, acks, missing)

    def acknowledge(self, ack: Ack) -> AckResult:
        """Take an ack; what it answers but SUCCESS, of that the files are not taken."""
        self._go_on(PendingEvent.ACK)
        if self.is_over:
            return AckResult.DISCARDED
        if ack.attempt in self.acks:
            return AckResult.DUPLICATE
        if ack.attempt not in self.missing:
            return AckResult.UNKNOWN
        del self.missing[ack.attempt]
        self.acks[ack.attempt] = ack
        return AckResult.SUCCESS

    def write(self, finished: tuple[AttemptId, ...] = ()) -> None:
        """The manifest is being written from now on.

        Raises:
            LocalUsageError: it is not collecting any more.
        """
        assert self.is_fully_acknowledged, f"{self} waits for {list(self.missing)}"
        self._go_on(PendingEvent.WRITE)
        self.finished = finished

    def fail(self, reason: CheckpointFailureReason, detail: str = "") -> bool:
        """A task declined or failed, or the time is over; true if that ends it."""
        return self._abort(PendingEvent.FAIL, reason, detail)

    def subsume(self, by_id: int) -> bool:
        """A newer one has completed; true if that ends it.

        Raises:
            LocalUsageError: its manifest is being written: checkpoints complete in order.
        """
        return self._abort(PendingEvent.SUBSUME, CheckpointFailureReason.SUBSUMED, f"by checkpoint {by_id}")

    def suspend(self) -> bool:
        """The job is not running any more; true if that ends it."""
        return self._abort(PendingEvent.SUSPEND, CheckpointFailureReason.SUSPENDED, "the job is not running")

    def written(self) -> bool:
        """The manifest is durable; true if that was news.

        Raises:
            LocalUsageError: it was not being written.
        """
        was_over = self.is_over
        self._go_on(PendingEvent.WRITTEN)
        return not was_over

    def not_written(self, detail: str) -> bool:
        """The manifest is not there and will not be; true if that ends it.

        Raises:
            LocalUsageError: it was not being written.
        """
        return self._abort(PendingEvent.NOT_WRITTEN, CheckpointFailureReason.FINALIZE, detail)

    def _abort(self, event: PendingEvent, reason: CheckpointFailureReason, detail: str) -> bool:
        was_over = self.is_over
        self._go_on(event)
        if was_over or self.state is not PendingState.ABORTED:
            return False
        self.reason, self.detail = reason, detail
        return True

    def _go_on(self, event: PendingEvent) -> None:
        self.state = next_state(PENDING_TRANSITIONS, self.state, event, self)
