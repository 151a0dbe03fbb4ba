"""One channel of the consumer, seen from the producer: its subpartition, its credit, its numbers.

A data buffer costs one credit, an event none. So a reader may speak if it has data and credit, or if
an event is next: an end or a barrier must get through to a consumer that has no room left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from refimpl.exchange.messages import PartitionRequest, ResultPartitionId
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.trace import Trace, noting

__all__ = [
    "PartitionProvider",
    "ReaderSnapshot",
    "SubpartitionReader",
    "SubpartitionView",
]


class SubpartitionView(Protocol):
    """What a reader needs of a subpartition; `owner` says in words whose it is.

    Flink:   ResultSubpartitionView (runtime.io.network.partition), 1.11.4
    """

    @property
    def owner(self) -> str: ...

    @property
    def is_data_available(self) -> bool: ...

    @property
    def is_event_available(self) -> bool: ...

    @property
    def failure_cause(self) -> str | None: ...

    def open(self, on_data_available: Callable[[], None]) -> None: ...

    def close(self) -> None: ...

    def poll(self) -> BufferAndBacklog | None: ...

    def resume(self) -> None: ...


class PartitionProvider(Protocol):
    """Knows the partitions that can be read here.

    Flink:   ResultPartitionProvider (runtime.io.network.partition), 1.11.4
    """

    def find(self, partition: ResultPartitionId, subpartition: int) -> SubpartitionView | None:
        """The subpartition, or `None` if there is no such partition, or not yet, or no more.

        Raises:
            IndexError: the partition has no such subpartition; answered, and the connection goes on.
            LocalUsageError: it cannot be read; the same.
        """


@dataclass(frozen=True, slots=True)
class ReaderSnapshot:
    """One reader at one moment; `last_sequence_number` is -1 before the first buffer."""

    receiver: bytes
    credit: int
    is_enqueued: bool
    last_sequence_number: int


class SubpartitionReader:
    """Reads one subpartition for one receiver, as far as its credit goes.

    `is_enqueued` belongs to the connection: whether the reader stands in its line. `sequence_number` is that of
    what was sent last.

    Flink:   CreditBasedSequenceNumberingViewReader (runtime.io.network.netty), 1.11.4
    """

    def __init__(self, view: SubpartitionView, request: PartitionRequest, trace: Trace | None = None) -> None:
        self.view = view
        self.receiver = request.receiver
        self.subpartition = request.first
        self.credit = request.credit
        self.is_enqueued = False
        self.sequence_number = -1
        self._note_grant = noting(trace, "grant", view.owner, request.first)
        self._note_wait = noting(trace, "wait", view.owner, request.first)
        self._has_noted_wait = False

    def __repr__(self) -> str:
        return f"SubpartitionReader({self.receiver.hex()}, credit={self.credit}, {self.view!r})"

    def add_credit(self, credit: int) -> None:
        """The consumer has room for `credit` data buffers more."""
        self.credit += credit

    @property
    def is_available(self) -> bool:
        """Whether it may speak now: it has data and the credit for it, or an event is next, which is free."""
        return self.view.is_data_available if self.credit > 0 else self.view.is_event_available

    def poll(self) -> tuple[BufferAndBacklog, bool] | None:
        """What the view gave, and whether it may speak again after that; `None` if the view has nothing.

        Ownership: the buffer is the caller's to recycle.
        """
        taken = self.view.poll()
        if taken is None:
            return None
        if taken.buffer.is_buffer:
            self.credit -= 1
            assert self.credit >= 0, f"{self} took a buffer without credit"
        return taken, taken.is_more_available if self.credit > 0 else taken.is_event_next

    def next_number(self) -> int:
        """The number of what is sent now; Flink counts in 32 bits with a sign, and so does the consumer."""
        self.sequence_number = (self.sequence_number + 1 + 2**31) % 2**32 - 2**31
        return self.sequence_number

    def note_grant(self) -> None:
        """For the trace, after credit came."""
        if self._note_grant is not None:
            self._has_noted_wait = False
            self._note_grant(amount=self.credit)

    def note_wait(self) -> None:
        """For the trace, when it may not speak now: note once if it is credit that it waits for."""
        if self._note_wait is not None and not self._has_noted_wait and self.view.is_data_available:
            self._has_noted_wait = True
            self._note_wait(amount=self.credit)

    def hand_over_to(self, other: SubpartitionReader) -> None:
        """Let `other`, new, go on where this one is: with its credit, its number and its notes."""
        other.credit, other.sequence_number = self.credit, self.sequence_number
        other.is_enqueued = self.is_enqueued
        other._note_grant, other._note_wait = self._note_grant, self._note_wait
        other._has_noted_wait = self._has_noted_wait

    def snapshot(self) -> ReaderSnapshot:
        return ReaderSnapshot(self.receiver, self.credit, self.is_enqueued, self.sequence_number)
