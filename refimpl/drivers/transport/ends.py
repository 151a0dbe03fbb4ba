"""The two ends of a connection as a driver sees them: one protocol for the consumer's end and the producer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from refimpl.drivers.transport.few_warnings import logger
from refimpl.errors import RemoteProtocolError
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.job.shuffle_environment import ShuffleEnvironment

__all__ = ["ConsumerEnd", "End", "ProducerEnd"]

_WRITE_BYTES = 512 * 1024  # some sixteen buffers in one call

_log = logger("sluice.drivers.ends")


class _ReadingSide(Protocol):
    """The side of a connection that takes bytes in. It reads no more while it has no room for them."""

    read_bytes: int
    """How much to read at once."""

    @property
    def is_reading(self) -> bool: ...

    @property
    def can_resume_reading(self) -> bool: ...

    def resume_reading(self) -> None: ...

    def call_when_readable(self, on_readable: Callable[[], None]) -> None:
        """While not `is_reading`: call it once, when it is worth while to ask `can_resume_reading`."""

    def receive_data(self, data: bytes | memoryview) -> None: ...


class _WritingSide(Protocol):
    """The side of a connection that gives bytes out, asked for when the last ones are sent."""

    is_small: bool
    """Whether every message is short, and made of no lent memory."""

    @property
    def has_data_to_send(self) -> bool: ...

    def call_when_sendable(self, on_data_to_send: Callable[[], None]) -> None:
        """Call it each time something is to be sent, or a deadline has come up, that was not there before."""

    def data_to_send(self) -> list[bytes | memoryview]: ...

    def data_sent(self) -> None: ...


class End(_ReadingSide, _WritingSide, Protocol):
    """One end of a connection. A driver with threads calls everything under the monitor."""

    name: str

    @property
    def is_closed(self) -> bool: ...

    @property
    def has_deadline(self) -> bool: ...

    def next_deadline(self, now_ms: float) -> float | None: ...

    def on_timeout(self, now_ms: float) -> None: ...

    def lose(self, cause: str) -> None:
        """The transport is gone, and no thread looks at lent memory."""


class ConsumerEnd:
    """The end that reads: its channels fail when the connection does."""

    read_bytes = _WRITE_BYTES  # of the other end
    is_small = True

    def __init__(self, connection: ConsumerConnection) -> None:
        self.name = connection.name
        self._connection = connection
        self.next_deadline = connection.next_deadline
        self.on_timeout = connection.on_timeout
        self.receive_data = connection.receive_data
        self.lose = connection.receive_end

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    @property
    def is_reading(self) -> bool:
        return self._connection.pause is None

    @property
    def can_resume_reading(self) -> bool:
        return (pause := self._connection.pause) is not None and pause.is_over

    @property
    def has_data_to_send(self) -> bool:
        return self._connection.has_data_to_send

    @property
    def has_deadline(self) -> bool:
        return self._connection.has_deadline

    def resume_reading(self) -> None:
        self._connection.receive_data(b"")

    def call_when_readable(self, on_readable: Callable[[], None]) -> None:
        if (pause := self._connection.pause) is not None:
            pause.call_when_over(on_readable)
        else:
            on_readable()

    def call_when_sendable(self, on_data_to_send: Callable[[], None]) -> None:
        self._connection.on_data_to_send = on_data_to_send

    def data_to_send(self) -> list[bytes | memoryview]:
        data = self._connection.data_to_send()
        return [data] if data else []

    def data_sent(self) -> None: ...


class ProducerEnd:
    """The end that is read from: an error here is the other end's trouble, and is logged."""

    is_reading = True
    can_resume_reading = False
    read_bytes = 16 * 1024  # what a consumer says is short
    is_small = False
    has_deadline = False  # only before the first frame

    def __init__(self, connection: ProducerConnection, shuffle: ShuffleEnvironment) -> None:
        self.name = connection.name
        self._connection = connection
        self._shuffle = shuffle

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    @property
    def has_data_to_send(self) -> bool:
        return self._connection.has_data_to_send

    def resume_reading(self) -> None: ...

    def call_when_sendable(self, on_data_to_send: Callable[[], None]) -> None:
        self._connection.on_data_to_send = on_data_to_send

    def call_when_readable(self, on_readable: Callable[[], None]) -> None: ...

    def next_deadline(self, now_ms: float) -> float | None:
        return self._connection.next_deadline(now_ms)

    def on_timeout(self, now_ms: float) -> None:
        self._connection.on_timeout(now_ms)
        if self.is_closed:
            _log.warning("%s: nothing was asked for in time", self.name)

    def data_to_send(self) -> list[bytes | memoryview]:
        return self._connection.data_to_send(_WRITE_BYTES)

    def data_sent(self) -> None:
        self._connection.data_sent()

    def receive_data(self, data: bytes | memoryview) -> None:
        try:
            self._connection.receive_data(data)
        except RemoteProtocolError as error:  # what is to be sent now tells the other end
            _log.warning("%s: %s", self.name, error)

    def lose(self, cause: str) -> None:
        if cause and not self.is_closed:  # the other end has trouble too, and is the one to say so
            _log.info("%s: %s", self.name, cause)
        self._shuffle.forget(self._connection)
