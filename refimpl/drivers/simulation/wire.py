"""A connection made of two lists: the simulation's wire.

Rules of this file:
- A message is sent when the driver says so, and arrives when the driver says so, never
  before its delay has passed. Each direction keeps its order.
- A wire holds little: an end waits with sending while `CAPACITY` pieces of it are on their way.
- A lost wire loses what was on it. Both ends are told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from refimpl.errors import RemoteProtocolError
from refimpl.exchange.frames import decode
from refimpl.exchange.framing import FRAME_HEADER, HEADER_BYTES
from refimpl.exchange.messages import BacklogAnnouncement, BufferResponse, Message
from refimpl.exchange.wire_snapshot import FrameSnapshot, WireSnapshot
from refimpl.job.deployment import Deployment
from refimpl.job.shuffle_environment import ConnectionId
from refimpl.laws.backlog import check_backlog
from refimpl.laws.credit import check_credit
from refimpl.laws.fairness import FairnessLaw
from refimpl.laws.hunger import HungerLaw

__all__ = ["CAPACITY", "Link", "Way"]

CAPACITY = 8


class Way(Enum):
    """The two directions of a connection: to the producer, and to the consumer."""

    REQUESTS = "requests"
    RESPONSES = "responses"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole frames on their way, and when they arrive."""

    data: bytes
    arrival_ms: float


class Link:
    """A connection through which tasks of `consumer_side` read from tasks of `producer_side`.

    The two ends are those of every other driver; only what lies between them is made of lists.
    """

    def __init__(
        self, consumer_side: Deployment, producer_side: Deployment, connection_id: ConnectionId, label: str = ""
    ) -> None:
        self.name = f"{label}tm-{consumer_side.task_manager} reads {connection_id}"
        self.consumer = consumer_side.shuffle.connect(connection_id, self.name)
        self.producer = producer_side.shuffle.accept(self.name)
        self.ends = consumer_side.task_manager, producer_side.task_manager
        self._reads = consumer_side.shuffle.remote_reads[connection_id]
        self._channels = [read.channel for read in self._reads]
        self._backlogs: dict[bytes, int] = {}  # the last that came, by receiver
        self._step_laws = FairnessLaw(), HungerLaw()
        self._version = consumer_side.config.flink_version
        self._has_credit = consumer_side.config.credit_based
        self._on_the_way: dict[Way, deque[_Piece]] = {way: deque() for way in Way}

    def __repr__(self) -> str:
        numbers = ", ".join(f"{len(pieces)} {way.value}" for way, pieces in self._on_the_way.items())
        return f"Link({self.name}, {numbers} on the way)"

    @property
    def is_closed(self) -> bool:
        """Whether nothing will come or go any more."""
        return self.consumer.is_closed and self.producer.is_closed

    def can_send(self, way: Way) -> bool:
        """Whether an end has something to say and the wire has room for it."""
        if len(self._on_the_way[way]) >= CAPACITY:
            return False
        end = self.consumer if way is Way.REQUESTS else self.producer
        return end.has_data_to_send

    def send(self, way: Way, arrival_ms: float, bytes_per_ms: float | None = None) -> None:
        """Put the messages of an end on the wire: requests all at once, responses one by one.

        They arrive at `arrival_ms`, or later by the time their bytes take: of each direction one after the other.
        """
        if way is Way.REQUESTS:
            data = self.consumer.data_to_send()
        else:
            data = b"".join(self.producer.data_to_send(1))
            self.producer.data_sent()
        pieces = self._on_the_way[way]
        if data:
            earliest = pieces[-1].arrival_ms if pieces else arrival_ms
            takes_ms = len(data) / bytes_per_ms if bytes_per_ms else 0.0
            pieces.append(_Piece(data, max(earliest, arrival_ms) + takes_ms))

    def next_arrival_ms(self, way: Way) -> float | None:
        """When the oldest piece of one direction arrives; `None` if there is none, or nobody reads."""
        if way is Way.RESPONSES and self.consumer.pause is not None and not self.consumer.is_closed:
            return None
        pieces = self._on_the_way[way]
        return pieces[0].arrival_ms if pieces else None

    def deliver(self, way: Way) -> None:
        """Hand the oldest piece of one direction to the end it was sent to."""
        data = self._on_the_way[way].popleft().data
        if way is Way.RESPONSES:
            for message in self._read(data):
                if isinstance(message, BufferResponse | BacklogAnnouncement):
                    self._backlogs[message.receiver] = message.backlog
            self.consumer.receive_data(data)
            return
        with suppress(RemoteProtocolError):  # the answer that is ready now tells the consumer
            self.producer.receive_data(data)

    def delay(self, way: Way, by_ms: float) -> None:
        """Let what is on its way in one direction arrive later, and so all that is sent behind it."""
        pieces = self._on_the_way[way]
        self._on_the_way[way] = deque(_Piece(each.data, each.arrival_ms + by_ms) for each in pieces)

    def lose(self) -> None:
        """Break the connection; the messages on their way are gone."""
        for pieces in self._on_the_way.values():
            pieces.clear()
        self.producer.connection_lost()
        self.consumer.receive_end("the simulated wire was cut")

    def messages(self, way: Way) -> list[Message]:
        """The messages on their way in one direction, the oldest first."""
        return [message for piece in self._on_the_way[way] for message in self._read(piece.data)]

    def snapshot(self) -> WireSnapshot:
        """The messages on their way at this moment."""
        requests, responses = (tuple(map(FrameSnapshot.of, self.messages(way))) for way in Way)
        return WireSnapshot(self.name, self.ends[0], self.ends[1], requests, responses)

    def check(self) -> None:
        """The laws of credit and backlog."""
        check_credit(
            self._channels,
            self.consumer,
            self.producer,
            self.messages(Way.REQUESTS),
            self.messages(Way.RESPONSES),
        )
        check_backlog(self._channels, self._backlogs)

    def check_step(self) -> None:
        """The laws of fairness and hunger; call it after every step or never."""
        readers = self.producer.snapshot().readers
        may_speak = []
        for read in self._reads:
            receiver = read.channel.receiver
            if receiver in readers:
                view = self.producer.readers[receiver].view
                can_pay = readers[receiver].credit > 0 or not self._has_credit
                if view.is_data_available if can_pay else view.is_event_available:
                    may_speak.append(receiver)
        fairness, hunger = self._step_laws
        fairness.check(readers, may_speak)
        hunger.check(self._channels)

    def check_end(self) -> None:
        """When nothing can move any more, both ends know that it is over, and nothing is on its way."""
        assert self.is_closed, f"{self} was left open: {self.consumer}, {self.producer}"
        assert not any(self._on_the_way.values()), f"{self} has ended"

    def _read(self, data: bytes) -> Iterator[Message]:
        start = 0
        while start < len(data):
            length, _, frame_id = FRAME_HEADER.unpack_from(data, start)
            yield decode(frame_id, memoryview(data)[start + HEADER_BYTES : start + length], self._version)
            start += length


def links_between(deployments: list[Deployment], label: str = "") -> dict[str, Link]:
    """The connections that they need, by name, which begins with `label`."""
    links = {}
    for consumer in deployments:
        for connection_id in consumer.shuffle.remote_reads:
            link = Link(consumer, deployments[connection_id.task_manager], connection_id, label)
            links[link.name] = link
    return links
