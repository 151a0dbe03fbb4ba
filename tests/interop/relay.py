"""Somebody between the two ends of a connection, who sees each frame and may change it.

with Relay(port, to_producer=Asked()) as relay:
    Peer("sluice", "consume", **{**producer.offer(), "port": relay.port})
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["Relay", "WrongAtFirst"]

TIMEOUT_S = 60.0  # only so that a test that hangs fails
_PARTITION_REQUEST = 2
_NUMBER_AT = 9 + 16  # behind length, magic, id and data set
_RECEIVER_AT = 9 + 40

Change = Callable[[bytearray], bytearray]


def unchanged(frame: bytearray) -> bytearray:
    return frame


class WrongAtFirst:
    """Asks for a partition that is not there, the first `times` that each receiver asks for one.

    So it is the producer itself that does not find it, and later does.
    """

    def __init__(self, times: int = 1) -> None:
        self._times = times
        self._num_asked: dict[bytes, int] = {}

    def __call__(self, frame: bytearray) -> bytearray:
        if frame[8] == _PARTITION_REQUEST:
            receiver = bytes(frame[_RECEIVER_AT : _RECEIVER_AT + 16])
            asked = self._num_asked.setdefault(receiver, 0)
            self._num_asked[receiver] += 1
            if asked < self._times:
                frame[_NUMBER_AT : _NUMBER_AT + 4] = b"\x7f\xff\xff\xff"
        return frame


class Relay:
    """Takes one client at `port` and speaks for it to the one at `target`, until either has ended."""

    def __init__(self, target: int, to_producer: Change = unchanged, to_consumer: Change = unchanged) -> None:
        self._target = target
        self._changes = to_producer, to_consumer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(TIMEOUT_S)
        self._sockets: list[socket.socket] = [self._listening]
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self.port = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT_S)
        for each in self._sockets:
            each.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            client = self._listening.accept()[0]
            self._sockets.append(client)
            server = socket.create_connection(("127.0.0.1", self._target), TIMEOUT_S)
            self._sockets.append(server)
            forth = threading.Thread(target=_pass_on, args=(client, server, self._changes[0]), daemon=True)
            forth.start()
            _pass_on(server, client, self._changes[1])
            forth.join()


def _pass_on(source: socket.socket, target: socket.socket, change: Change) -> None:
    """Read frames to the end of `source`, then end `target`."""
    with contextlib.suppress(OSError), source.makefile("rb") as incoming:
        while len(head := incoming.read(4)) == 4:
            rest = incoming.read(int.from_bytes(head, "big") - 4)
            target.sendall(change(bytearray(head + rest)))
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
