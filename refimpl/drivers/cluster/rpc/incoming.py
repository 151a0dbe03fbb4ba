"""Connections that others make to a process of a cluster: members are heard, strangers are cut unanswered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from refimpl.drivers.cluster.rpc.sealed_stream import Hello, SealedStream
from refimpl.drivers.transport.few_warnings import logger
from refimpl.drivers.transport.sockets import ClosedHereError
from refimpl.drivers.transport.streams import ByteStream, Incoming, Listener
from refimpl.errors import RemoteProtocolError

__all__ = ["MAX_UNPROVED", "PROVE_WITHIN_S", "Acceptor"]

PROVE_WITHIN_S = 5.0
MAX_UNPROVED = 64

_log = logger("sluice.drivers.cluster")


class _Served(Protocol):
    """What an acceptor asks of whom it accepts for."""

    def accept(self, stream: ByteStream, timeout_s: float) -> tuple[Hello, SealedStream]: ...

    def serve(self, hello: Hello, stream: SealedStream) -> None:
        """Deal with a client that has proved itself, as long as its connection lasts. On its own thread."""


class _Client:
    """One connection, and the thread that it has."""

    def __init__(self, incoming: Incoming, run: Callable[[_Client], None]) -> None:
        self.incoming = incoming
        self.has_proved = self.is_dropped = False
        self.thread = threading.Thread(target=run, args=(self,), name=f"from {incoming.peer}", daemon=True)


class Acceptor:
    """Accepts at `listener` for `served`, each client on a thread of its own.

    Whoever has proved nothing yet has 5 s for it, and there are at most 64 of them: one more, and the oldest is
    dropped. So strangers that connect and say nothing keep nobody out who knows the secret, and none of them has more
    memory than a hello takes.
    """

    def __init__(self, listener: Listener, served: _Served, max_unproved: int = MAX_UNPROVED) -> None:
        self._listener = listener
        self._served = served
        self._max_unproved = max_unproved
        self._clients: list[_Client] = []  # the oldest first
        self._is_closing = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, name=f"accepts at {listener.address}", daemon=True)
        self._thread.start()

    @property
    def num_unproved(self) -> int:
        """How many have connected and proved nothing yet."""
        with self._lock:
            return sum(not each.has_proved for each in self._clients)

    def close(self) -> None:
        """Accept nobody any more, cut all connections, and wait until their threads have ended."""
        self._listener.close()
        self._thread.join()
        with self._lock:
            self._is_closing = True
            clients = list(self._clients)
        for client in clients:
            client.incoming.close()
        for client in clients:
            client.thread.join()

    def _accept(self) -> None:
        while (incoming := self._listener.accept()) is not None:
            client = _Client(incoming, self._run)
            with self._lock:
                self._clients.append(client)
                unproved = [each for each in self._clients if not (each.has_proved or each.is_dropped)]
                if len(unproved) > self._max_unproved:
                    unproved[0].is_dropped = True  # its thread may take a while to see it
                    unproved[0].incoming.close()
            client.thread.start()

    def _run(self, client: _Client) -> None:
        try:
            until_s = time.monotonic() + PROVE_WITHIN_S
            stream = client.incoming.open(PROVE_WITHIN_S)
            hello, sealed = self._served.accept(stream, max(0.0, until_s - time.monotonic()))
            with self._lock:
                client.has_proved = True
            self._served.serve(hello, sealed)
        except ClosedHereError:
            pass
        except (OSError, RemoteProtocolError) as error:
            if not client.has_proved:
                _log.warning("refused a connection: %s", error)
        finally:
            client.incoming.close()
            with self._lock:
                self._clients.remove(client)
