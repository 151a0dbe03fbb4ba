"""A proxy of ours between two TaskManagers: it passes bytes on until it is told to cut what goes through it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

__all__ = ["CuttingProxy"]


class CuttingProxy:
    """Passes on what comes to `address`, to `target`, which may change between two connections.

    `cut` ends all connections that there are; later ones go through again.
    """

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._lock = threading.Lock()
        self._open = set[socket.socket]()
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        self.cut()

    def cut(self, ways: int = 0) -> None:
        """End the connections: both ways, or for an odd number of `ways` only what goes there, as a half-open one."""
        how = socket.SHUT_WR if ways % 2 else socket.SHUT_RDWR
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(how)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._connect, args=(client,), name="proxy there", daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        assert self.target is not None, "nobody connects before there is somebody to connect to"
        with suppress(OSError), client, socket.create_connection(self.target) as server:
            with self._lock:
                self._open |= {client, server}
            back = threading.Thread(target=self._pass_on, args=(server, client), name="proxy back", daemon=True)
            back.start()
            self._pass_on(client, server)
            back.join()
            with self._lock:
                self._open -= {client, server}

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
