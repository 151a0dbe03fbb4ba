"""One channel as its connection knows it: what it asked for, and when to ask again.

A consumer may be started before its producer. So a partition that is not found is asked for again,
after a wait that doubles up to a longest one; after that one was of no use, the channel fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from refimpl.config import Config
from refimpl.errors import PartitionNotFoundError, RemoteProtocolError, SluiceError
from refimpl.exchange.frame_decoder import BufferReceived
from refimpl.exchange.messages import BufferResponse, Message, PartitionRequest, ResultPartitionId
from refimpl.memory.buffer import Buffer

__all__ = ["PartitionReader", "PartitionRetries", "ReceivingChannel"]


class ReceivingChannel(Protocol):
    """What a connection needs of a channel. `on_message` is called when there are news, or the channel was released."""

    receiver: bytes
    initial_credit: int
    on_message: Callable[[], None]

    @property
    def is_released(self) -> bool: ...

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None: ...

    def on_buffer(self, received: BufferReceived) -> None: ...

    def on_backlog(self, backlog: int) -> None: ...

    def on_error(self, error: SluiceError) -> None: ...

    def take_news(self) -> list[Message]: ...


class PartitionReader:
    """A channel and the request it lives by.

    `is_in_line` says whether the connection will ask the channel for news; `due_ms` is when to ask
    for the partition again, `None` until somebody with a clock wants to know.

    Flink:   InputChannel.increaseBackoff, RemoteInputChannel.retriggerSubpartitionRequest
             (runtime.io.network.partition.consumer), 1.11.4
    Differs: asks again without asking the JobMaster first whether the producer still lives. A
             partition that has answered and is then not found fails its channel at once.
    """

    def __init__(self, channel: ReceivingChannel, request: PartitionRequest, config: Config) -> None:
        self.channel = channel
        self.request = request
        self.is_in_line = False
        self.has_answer = False
        self.due_ms: float | None = None
        self._is_waiting = False
        self._num_requests = 1
        self._backoff_ms = 0
        self._first_backoff_ms = config.request_backoff_initial_ms
        self._longest_backoff_ms = config.request_backoff_max_ms

    @property
    def is_waiting_to_ask(self) -> bool:
        return self._is_waiting and not self.channel.is_released

    def on_not_found(self) -> bool:
        """The producer does not have the partition: true if a wait begins; else it goes on, or is given up."""
        if self._is_waiting:
            return False
        if self.has_answer:
            self.channel.on_error(RemoteProtocolError("a partition that has sent something was not found"))
            return False
        if self._backoff_ms == 0:
            self._backoff_ms = self._first_backoff_ms
            self._is_waiting = self._backoff_ms > 0
        elif self._backoff_ms < self._longest_backoff_ms:
            self._backoff_ms = min(2 * self._backoff_ms, self._longest_backoff_ms)
            self._is_waiting = True
        if not self._is_waiting:
            partition = self.request.partition
            name = f"{partition.data_set_id.hex()}#{partition.number}@{partition.producer.id.hex()}"
            self.channel.on_error(PartitionNotFoundError(name, self._num_requests))
        return self._is_waiting

    def deadline(self, now_ms: float) -> float:
        """When the wait is over that is going on; it began now if nobody has asked before."""
        if self.due_ms is None:
            self.due_ms = now_ms + self._backoff_ms
        return self.due_ms

    def ask_again(self) -> PartitionRequest:
        """The wait is over: the request to send."""
        self._is_waiting = False
        self.due_ms = None
        self._num_requests += 1
        return self.request


class PartitionRetries:
    """The channels of one connection that wait to ask again for their partition.

    `num_not_found` counts, for each partition, how often the producer did not have it.
    """

    def __init__(self) -> None:
        self.num_not_found: Counter[ResultPartitionId] = Counter()
        self._readers: dict[bytes, PartitionReader] = {}  # those that wait, and perhaps some that have

    def on_not_found(self, reader: PartitionReader) -> None:
        """The producer does not have the partition of `reader`."""
        self.num_not_found[reader.request.partition] += 1
        if reader.on_not_found():
            self._readers[reader.channel.receiver] = reader

    def waiting(self) -> list[PartitionReader]:
        """The channels that wait now."""
        self._readers = {receiver: reader for receiver, reader in self._readers.items() if reader.is_waiting_to_ask}
        return list(self._readers.values())

    def clear(self) -> None:
        """Nobody asks again: the connection has ended."""
        self._readers.clear()
