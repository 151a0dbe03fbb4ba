"""One channel as its connection knows it: what it asked for, and when to ask again.

A consumer may be started before its producer. So a partition that is not found is asked for again,
after a wait that doubles up to a longest one; after that one was of no use, the channel fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from refimpl.config import Config
from refimpl.errors import PartitionNotFoundError, RemoteProtocolError, RemoteTransportError, SluiceError
from refimpl.exchange.frame_decoder import BufferReceived
from refimpl.exchange.java_errors import JavaError
from refimpl.exchange.messages import (
    AddCredit,
    BufferResponse,
    Message,
    PartitionRequest,
    ResultPartitionId,
    ResumeConsumption,
)
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

    def take_news(self) -> tuple[int, bool]: ...


class PartitionReader:
    """A channel, and its talk with the producer that it reads from.

    `first_wait_ms` and `longest_wait_ms` bound the waits before a partition is asked for again, `wait_ms` is the one
    that goes on or went on last. `due_ms` is when it ends, `None` until somebody with a clock wants to know.
    `is_in_line` says whether the connection will ask for news.

    Flink:   InputChannel.increaseBackoff, RemoteInputChannel.retriggerSubpartitionRequest
             (runtime.io.network.partition.consumer), 1.11.4
    Differs: asks again without asking the JobMaster first whether the producer still lives. A
             partition that has answered and is then not found fails its channel at once.
    """

    def __init__(self, channel: ReceivingChannel, request: PartitionRequest, config: Config, name: str) -> None:
        self.channel = channel
        self.request = request
        self.first_wait_ms = config.request_backoff_initial_ms
        self.longest_wait_ms = config.request_backoff_max_ms
        self.is_in_line = False
        self.has_answer = False
        self.is_waiting = False
        self.wait_ms = 0
        self.due_ms: float | None = None
        self._name = name
        self._num_requests = 1

    def on_error(self, error: JavaError) -> bool:
        """The producer's end tells of an error: whether a wait begins, after which this channel asks again.

        A partition that is not found (`error.is_not_found`) may be there later, when its producer has started. The
        first wait is `first_wait_ms`, each other one twice as long as the one before, none longer than
        `longest_wait_ms`. While a wait goes on, "not found" once more changes nothing.

        Nobody waits after a wait of `longest_wait_ms`, nor if `first_wait_ms` is 0, nor once the producer
        `has_answer`ed, nor for any other error, at any time: then it is `fail(error)`, since a channel that is told
        nothing waits for ever.
        """
        if error.is_not_found and self.is_waiting:
            return False
        longest = self.longest_wait_ms
        if not error.is_not_found or self.has_answer or self.wait_ms >= longest or not self.first_wait_ms:
            self.fail(error)
            return False
        self.wait_ms = min(2 * self.wait_ms or self.first_wait_ms, longest)
        self.is_waiting = True
        return True

    def ask_again(self) -> PartitionRequest:
        """The wait is over: the request to send, which is the one that was sent before."""
        self.is_waiting = False
        return self.request

    def news(self) -> list[Message]:
        """What the producer must be told, told once: an `AddCredit` if there is any, then a `ResumeConsumption`.

        `channel.take_news()` gives two things, and gives them once: how many buffers have become free since it was
        asked last, and whether the producer, which stopped at a barrier, may go on.
        """
        credit, may_go_on = self.channel.take_news()
        news: list[Message] = [AddCredit(credit, self.channel.receiver)] if credit else []
        return [*news, ResumeConsumption(self.channel.receiver)] if may_go_on else news

    # -- what the rest needs ---------------------------------------------------------------------

    @property
    def is_waiting_to_ask(self) -> bool:
        return self.is_waiting and not self.channel.is_released

    def deadline(self, now_ms: float) -> float:
        """When the wait is over that is going on; it began now if nobody has asked before."""
        if self.due_ms is None:
            self.due_ms = now_ms + self.wait_ms
        return self.due_ms

    def next_request(self) -> PartitionRequest:
        """The wait is over: the request to send, which is counted."""
        self.due_ms = None
        self._num_requests += 1
        return self.ask_again()

    def fail(self, error: JavaError) -> None:
        """Tell the channel that nothing more comes, and why; nobody waits any longer."""
        self.is_waiting = False
        if not error.is_not_found:
            self.channel.on_error(RemoteTransportError(f"{self._name}: Error at remote task manager: {error}"))
        elif self.has_answer:
            self.channel.on_error(RemoteProtocolError("a partition that has sent something was not found"))
        else:
            self.channel.on_error(PartitionNotFoundError(str(self.request.partition), self._num_requests))


class PartitionRetries:
    """The channels of one connection that wait to ask again for their partition.

    `num_not_found` counts, for each partition, how often the producer did not have it.
    """

    def __init__(self) -> None:
        self.num_not_found: Counter[ResultPartitionId] = Counter()
        self._readers: dict[bytes, PartitionReader] = {}  # those that wait, and perhaps some that have

    def on_error(self, reader: PartitionReader, error: JavaError) -> None:
        """The producer's end has an error for the channel of `reader`."""
        self.num_not_found[reader.request.partition] += error.is_not_found
        reader.on_error(error)
        self.note(reader)

    def note(self, reader: PartitionReader) -> None:
        """Remember `reader` if it waits to ask again."""
        if reader.is_waiting:
            self._readers[reader.channel.receiver] = reader

    def waiting(self) -> list[PartitionReader]:
        """The channels that wait now."""
        if not self._readers:
            return []
        self._readers = {receiver: reader for receiver, reader in self._readers.items() if reader.is_waiting_to_ask}
        return list(self._readers.values())

    def clear(self) -> None:
        """Nobody asks again: the connection has ended."""
        self._readers.clear()
