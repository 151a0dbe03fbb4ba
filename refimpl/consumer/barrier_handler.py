"""What becomes of a barrier that has come out of one channel of several: what can be decided, and doing it.

These are events in and decisions out; whoever has the channels acts on them. What a cut is good for
(state that is saved, acknowledged and restored) is another's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from refimpl.config import CheckpointingMode, FlinkVersion
from refimpl.consumer.channel import InputChannel
from refimpl.records.events import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition, Event

__all__ = [
    "Abort",
    "AbortReason",
    "AlignmentSnapshot",
    "BarrierHandler",
    "Captured",
    "Complete",
    "Decision",
    "ResumeChannel",
    "StartCapture",
    "act_on",
]


class AbortReason(Enum):
    """Why a checkpoint will not be; the value is Flink's name for it.

    Flink:   CheckpointFailureReason (runtime.checkpoint), 1.11.4
    """

    SUBSUMED = "CHECKPOINT_DECLINED_SUBSUMED"
    CANCELLED = "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER"
    INPUT_ENDED = "CHECKPOINT_DECLINED_INPUT_END_OF_STREAM"
    IO = "CHECKPOINT_ASYNC_EXCEPTION"  # no handler decides this: the state could not be written


@dataclass(frozen=True, slots=True)
class ResumeChannel:
    """Let the producer of `channel` go on behind its barrier."""

    channel: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Here is the cut: every channel that counts has delivered `barrier`."""

    barrier: CheckpointBarrier


@dataclass(frozen=True, slots=True)
class Abort:
    """The checkpoint will not complete here; whoever reads from this task is to know that, the coordinator also why."""

    checkpoint_id: int
    reason: AbortReason


@dataclass(frozen=True, slots=True)
class StartCapture:
    """Here is the cut, with the first barrier: what other channels bring before theirs is copied."""

    barrier: CheckpointBarrier


@dataclass(frozen=True, slots=True)
class Captured:
    """The last channel has delivered its barrier: what was copied is all there is."""

    checkpoint_id: int


Decision = ResumeChannel | Complete | Abort | StartCapture | Captured


@dataclass(frozen=True, slots=True)
class AlignmentSnapshot:
    """Where one input stands between two cuts.

    `checkpoint_id` is the oldest checkpoint of which some channels in `arrived` have delivered the barrier, or -1.
    In exactly-once mode these wait, if their producers stopped behind it. An unaligned checkpoint is complete here when
    all have delivered, though the cut was with the first. `is_unaligned` says of the one that is pending, else of the
    last that was complete, whether it is such a one.
    """

    mode: CheckpointingMode
    checkpoint_id: int
    arrived: tuple[int, ...]
    last_completed_id: int
    num_completed: int
    num_aborted: int
    is_unaligned: bool = False


class BarrierHandler(ABC):
    """Decides for one input of `num_channels` channels, some of which have `ended`.

    `now_ms` is what the task was told last, `None` before that. Who did not stop behind a barrier is not told to go on.

    Flink:   CheckpointBarrierHandler (streaming.runtime.io), 1.11.4
    Differs: tells the caller what to do; Flink's calls the channels and the task.
    """

    mode: CheckpointingMode

    def __init__(self, num_channels: int, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        self.latest_checkpoint_id = -1
        self.now_ms: float | None = None
        self._first_ms: dict[int, float | None] = {}  # when the first barrier of each checkpoint came
        self._last_alignment_ms: float | None = None
        self.num_channels = num_channels
        self._counts_ended = version is not FlinkVersion.V1_11  # from 1.14 on an ended channel holds nothing back
        self.ended: set[int] = set()
        self._last_completed_id = -1
        self._num_completed = 0
        self._num_aborted = 0
        self._stopped: set[int] = set()  # channels whose producers stopped behind a barrier, and wait

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_channels} channels, {self.snapshot()})"

    def on_event(self, channel: int, event: Event) -> list[Decision]:
        """What is to be done, in order, when `event` has come out of a channel.

        Raises:
            RemoteProtocolError: a channel delivered a barrier for which it is waiting already.
        """
        match event:
            case CheckpointBarrier():
                self._first_ms.setdefault(event.checkpoint_id, self.now_ms)
                if event.needs_alignment:
                    self._stopped.add(channel)
                decisions = self.on_barrier(channel, event)
            case CancelCheckpointMarker():
                decisions = self.on_cancellation(channel, event.checkpoint_id)
            case EndOfPartition():
                self.note_end(channel)
                decisions = self.on_end(channel)
            case _:
                return []
        return self._noted(decisions)

    def _noted(self, decisions: list[Decision]) -> list[Decision]:
        """What was decided, without those who did not stop and need not go on; it counts from now on."""
        kept = [each for each in decisions if not isinstance(each, ResumeChannel) or each.channel in self._stopped]
        for decision in kept:
            if isinstance(decision, ResumeChannel):
                self._stopped.discard(decision.channel)
            elif isinstance(decision, Complete):
                self._num_completed += 1
                self._last_completed_id = decision.barrier.checkpoint_id
                self._last_alignment_ms = self._since_first(self._last_completed_id)
            elif isinstance(decision, Captured):
                self._num_completed += 1
                self._last_completed_id = decision.checkpoint_id
                self._last_alignment_ms = self._since_first(self._last_completed_id)
            elif isinstance(decision, Abort):
                self._num_aborted += 1
        return kept

    def alignment_ms(self, checkpoint_id: int) -> float | None:
        """How long after its first barrier the last one came, if that was the last cut and the time is known.

        Flink:   CheckpointBarrierHandler.getAlignmentDurationNanos (streaming.runtime.io), 1.11.4
        """
        return self._last_alignment_ms if checkpoint_id == self._last_completed_id else None

    def _since_first(self, checkpoint_id: int) -> float | None:
        """The time since the first barrier of a checkpoint; those of older ones do not matter any more."""
        first_ms = self._first_ms.get(checkpoint_id)
        self._first_ms = {each: ms for each, ms in self._first_ms.items() if each > checkpoint_id}
        return None if first_ms is None or self.now_ms is None else self.now_ms - first_ms

    def note_end(self, channel: int) -> None:
        """One channel has ended; `on_end` is asked what follows."""
        self.ended.add(channel)

    def tell(self, now_ms: float) -> None:
        """It is `now_ms`; what is due is done by `on_timeout`."""
        self.now_ms = now_ms

    def _is_unaligned(self, checkpoint_id: int) -> bool:
        """Whether the cut for a checkpoint, the newest there was, is with its first barrier."""
        return False

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms of processing time; `None` if nothing waits for time to pass."""
        return None

    def on_timeout(self, now_ms: float) -> list[Decision]:
        """What is to be done as it is `now_ms`: an alignment that takes too long is one no more."""
        self.tell(now_ms)
        return []

    def on_aborted(self, checkpoint_id: int) -> list[Decision]:
        """Somebody has given a checkpoint up. Who is waited for in vain sends a marker, or a newer barrier."""
        return []

    @abstractmethod
    def on_barrier(self, channel: int, barrier: CheckpointBarrier) -> list[Decision]:
        """One channel has delivered a barrier."""

    @abstractmethod
    def on_cancellation(self, channel: int, checkpoint_id: int) -> list[Decision]:
        """One channel says that a checkpoint will not be."""

    @abstractmethod
    def on_end(self, channel: int) -> list[Decision]:
        """One channel has ended, and is one of `ended`."""

    @abstractmethod
    def pending(self) -> tuple[int, Iterable[int]]:
        """The oldest checkpoint that waits for channels, or -1, and the channels it need not wait for."""

    def snapshot(self) -> AlignmentSnapshot:
        checkpoint_id, arrived = self.pending()
        return AlignmentSnapshot(
            self.mode,
            checkpoint_id,
            tuple(sorted(arrived)),
            self._last_completed_id,
            self._num_completed,
            self._num_aborted,
            self._is_unaligned(self._last_completed_id if checkpoint_id < 0 else checkpoint_id),
        )


def act_on(decisions: Iterable[Decision], channels: Sequence[InputChannel]) -> Iterator[CheckpointBarrier | Abort]:
    """Let channels go on as was decided; gives what the task has to do with its own state and for who reads from it."""
    for decision in decisions:
        match decision:
            case ResumeChannel(channel):
                channels[channel].resume()
            case Complete(barrier) | StartCapture(barrier):
                yield barrier
            case Abort():
                yield decision
