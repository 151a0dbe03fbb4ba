"""One channel of a result partition as it stands: its entries, its marks, and its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import Enum

from refimpl.memory.builder import BufferConsumer
from refimpl.producer.subpartition_snapshot import QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.producer.subpartition_view import BufferAndBacklog, PipelinedSubpartitionView, ViewState

__all__ = ["SUBPARTITION_TRANSITIONS", "ResultSubpartition", "SubpartitionEvent", "SubpartitionState"]


class SubpartitionState(Enum):
    """What the producer may still do; buffers are added while it is open."""

    OPEN = "open"
    FINISHED = "finished"
    ABANDONED = "released before its end"
    RELEASED = "released"


class SubpartitionEvent(Enum):
    """What the producer does with a subpartition besides adding to it."""

    FINISH = "finish"
    RELEASE = "release"


SUBPARTITION_TRANSITIONS = {
    SubpartitionState.OPEN: {
        SubpartitionEvent.FINISH: SubpartitionState.FINISHED,
        SubpartitionEvent.RELEASE: SubpartitionState.ABANDONED,
    },
    SubpartitionState.FINISHED: {SubpartitionEvent.RELEASE: SubpartitionState.RELEASED},
    SubpartitionState.ABANDONED: {
        SubpartitionEvent.FINISH: SubpartitionState.ABANDONED,
        SubpartitionEvent.RELEASE: SubpartitionState.ABANDONED,
    },
    SubpartitionState.RELEASED: {SubpartitionEvent.RELEASE: SubpartitionState.RELEASED},
}


class ResultSubpartition(ABC):
    """The queue of one channel, and its one reader's `view`.

    `queue` has the head first; `num_data_buffers` of its entries hold data, the others are events, and the first
    `num_priority` have overtaken the rest. `is_flush_requested` is the flush mark. `next_sequence_number` is that of
    the next piece to be delivered.

    Flink:   ResultSubpartition, PipelinedSubpartition (runtime.io.network.partition), 1.11.4
    """

    def __init__(self, index: int, owner: str) -> None:
        self.index = index
        self.owner = owner
        self.view = PipelinedSubpartitionView(self)
        self.producer_state = SubpartitionState.OPEN
        self.failure_cause: str | None = None
        self.queue: deque[BufferConsumer] = deque()
        self.num_data_buffers = 0
        self.num_priority = 0
        self.is_flush_requested = False  # a mark and no state: it goes up and down in every state but the released
        self.num_buffers_total = 0
        self.num_bytes_total = 0
        self.next_sequence_number = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.owner}[{self.index}], {len(self.queue)} queued)"

    @abstractmethod
    def count_backlog(self) -> int:
        """Data buffers the consumer should make room for."""

    @abstractmethod
    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, or `None` if there are none now."""

    # -- state -------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Whether the end of the partition was queued."""
        return self.producer_state is SubpartitionState.FINISHED or self.producer_state is SubpartitionState.RELEASED

    @property
    def is_released(self) -> bool:
        """Whether the queued entries have been dropped."""
        return self.producer_state is SubpartitionState.ABANDONED or self.producer_state is SubpartitionState.RELEASED

    @property
    def is_blocked(self) -> bool:
        """Whether an event that blocks was delivered, and its reader has not said resume. What has priority passes.

        Differs: between versions; in 1.11 an unaligned barrier has none and waits here.
        """
        return self.view.state is ViewState.BLOCKED and not self._is_priority_next

    @property
    def num_queued(self) -> int:
        """Entries in the queue, events included."""
        return len(self.queue)

    @property
    def num_finished(self) -> int:
        """Entries known to be complete: all but the last, which is so if it was seen finished."""
        num_queued = len(self.queue)
        if num_queued == 1:
            return int(self.queue[0].is_finished)
        return max(0, num_queued - 1)

    @property
    def is_data_available(self) -> bool:
        """Whether the consumer has been, or should be, told to poll."""
        return not self.is_blocked and (self.is_flush_requested or self.num_finished > 0)

    @property
    def is_event_available(self) -> bool:
        """Whether the head is an event, which needs no credit."""
        return not self.is_blocked and bool(self.queue) and not self.queue[0].is_buffer

    @property
    def has_unannounced_data(self) -> bool:
        """Whether a flush now would make bytes available that are not yet."""
        is_one_open = len(self.queue) == 1 and not self.queue[0].is_finished
        is_held_back = self.is_flush_requested or self.is_blocked
        return is_one_open and not is_held_back and self.queue[0].is_data_available

    @property
    def has_priority_event(self) -> bool:
        """Whether the head has overtaken all else and may be read now."""
        return self.num_priority > 0 and not self.is_blocked

    @property
    def _is_priority_next(self) -> bool:
        return self.num_priority > 0 and self.queue[0].buffer.data_type.has_priority

    def snapshot(self) -> SubpartitionSnapshot:
        queue = tuple(
            QueuedBufferSnapshot.of(consumer, consumer.is_finished or index < len(self.queue) - 1)
            for index, consumer in enumerate(self.queue)
        )
        return SubpartitionSnapshot(
            self.index,
            queue,
            self.count_backlog(),
            self.is_flush_requested,
            self.is_blocked,
            self.is_finished,
            self.num_buffers_total,
            self.num_bytes_total,
        )
