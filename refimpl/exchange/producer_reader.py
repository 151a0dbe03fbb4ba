"""One channel of the consumer, seen from the producer: its subpartition, its credit, its numbers.

A data buffer costs one credit, an event none. So a reader may speak if it has data and credit, or if
an event is next: an end or a barrier must get through to a consumer that has no room left. In the way
before credits (see `connection_flow`) data costs nothing either: whoever has something may speak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from refimpl.exchange.messages import PartitionRequest, ResultPartitionId
from refimpl.exchange.response_head import ResponseHead
from refimpl.producer.subpartition_views import BufferAndBacklog

__all__ = [
    "PartitionProvider",
    "ProducerConnectionSnapshot",
    "ReaderSnapshot",
    "SubpartitionReader",
    "SubpartitionView",
]


class SubpartitionView(Protocol):
    """What a reader needs of a subpartition.

    Flink:   ResultSubpartitionView (runtime.io.network.partition), 1.11.4
    """

    @property
    def is_data_available(self) -> bool: ...

    @property
    def is_event_available(self) -> bool: ...

    @property
    def failure_cause(self) -> str | None: ...

    def open_view(self, on_data_available: Callable[[], None]) -> None: ...

    def close_view(self) -> None: ...

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

    `is_enqueued` belongs to the connection: whether the reader stands in its line.

    Flink:   CreditBasedSequenceNumberingViewReader (runtime.io.network.netty), 1.11.4;
             without credits SequenceNumberingViewReader, 1.4 to 1.9
    """

    __slots__ = ("_price", "credit", "is_enqueued", "receiver", "sequence_number", "subpartition", "view")

    def __init__(self, view: SubpartitionView, request: PartitionRequest, credit_based: bool = True) -> None:
        self.view = view
        self.receiver = request.receiver
        self.subpartition = request.first
        self.credit = request.credit
        self._price = 1 if credit_based else 0  # what a data buffer costs
        self.is_enqueued = False
        self.sequence_number = -1

    def __repr__(self) -> str:
        return f"SubpartitionReader({self.receiver.hex()}, credit={self.credit}, {self.view!r})"

    @property
    def is_available(self) -> bool:
        """Whether it may speak now."""
        return self.view.is_data_available if self._can_pay else self.view.is_event_available

    @property
    def _can_pay(self) -> bool:
        return self.credit >= self._price

    def poll(self) -> tuple[BufferAndBacklog, bool] | None:
        """What to send now and whether it may speak again, or `None` if there is nothing.

        Ownership: the buffer is the caller's to recycle.
        """
        taken = self.view.poll()
        if taken is None:
            return None
        # Flink counts in 32 bits with a sign, and so does the consumer.
        self.sequence_number = (self.sequence_number + 1 + 2**31) % 2**32 - 2**31
        self.credit -= self._price * taken.buffer.is_buffer
        assert self.credit >= 0, f"{self} took a buffer without credit"
        return taken, taken.is_more_available if self._can_pay else taken.is_event_next

    def response(self, taken: BufferAndBacklog, head: ResponseHead) -> tuple[bytes, memoryview]:
        """The frame of what was just polled: all before the payload, and a view of the payload."""
        payload = taken.buffer.data
        before = head.pack(
            self.receiver, self.subpartition, self.sequence_number, taken.backlog, taken.buffer.data_type,
            len(payload),
        )  # fmt: skip
        return before, payload

    def snapshot(self) -> ReaderSnapshot:
        return ReaderSnapshot(self.receiver, self.credit, self.is_enqueued, self.sequence_number)


@dataclass(frozen=True, slots=True)
class ProducerConnectionSnapshot:
    """One producer's end at one moment: readers by receiver, and buffers not yet written."""

    readers: dict[bytes, ReaderSnapshot]
    num_answers: int
    num_lent: int
    is_closed: bool
