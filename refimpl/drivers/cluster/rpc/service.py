"""How the components of one process speak with those of the others of their cluster.

Rules of this file:
- A connection carries envelopes one way, from who made it. The answer takes another, made by who answers.
- Whoever connects says where it listens, and sends envelopes from there, to here. Others are refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from refimpl.cluster.fencing import Envelope
from refimpl.drivers.cluster.rpc.address import parse_place, place_of, rpc_address
from refimpl.drivers.cluster.rpc.codec import Codec
from refimpl.drivers.cluster.rpc.inbox import ConnectionLost, Inbox
from refimpl.drivers.cluster.rpc.incoming import Acceptor
from refimpl.drivers.cluster.rpc.outgoing import Outgoing
from refimpl.drivers.cluster.rpc.sealed_stream import Hello, SealedStream, accept_seal, request_seal
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.transport.addresses import show_address
from refimpl.drivers.transport.few_warnings import logger
from refimpl.drivers.transport.refusals import HandshakeError
from refimpl.drivers.transport.streams import ByteStream, Security, connect, listen
from refimpl.errors import RemoteProtocolError, described

__all__ = ["CONNECT_WITHIN_S", "RpcService"]

CONNECT_WITHIN_S = 5.0
_ENVELOPES = "envelopes"

_log = logger("sluice.drivers.cluster")


class RpcService:
    """The process at `place`, which listens there from the beginning: envelopes to others, envelopes from others.

    It listens on `host`; others reach it as `public_host`, if that is something else. Beyond this machine that needs
    `security`. `send`, `wake` and `close` may be called by any thread, `poll` by one.

    Raises:
        ConfigError: it cannot listen there.

    Flink:   AkkaRpcService (runtime.rpc.akka), 1.11.4
    Differs: no answers and no proxies of objects; a connection that ends is an event beside the messages.
    """

    def __init__(
        self,
        secret: ClusterSecret,
        host: str = "127.0.0.1",
        port: int = 0,
        security: Security | None = None,
        codec: Codec | None = None,
        public_host: str | None = None,
    ) -> None:
        self._secret = secret
        self._security = security
        self._codec = codec or Codec()
        self._inbox = Inbox()
        self._lock = threading.Lock()
        self._outgoing: dict[str, Outgoing] = {}
        self._incoming: dict[str, SealedStream] = {}  # the newest of each place
        self._is_closed = False
        self._refused: set[str] = set()  # the places that have turned us away last time
        listener = listen(host, port, security)
        self.place = show_address(public_host or listener.address[0], listener.address[1])
        self._acceptor = Acceptor(listener, self)

    def address(self, name: str) -> str:
        """The address of a component that lives here, such as `resource-manager@127.0.0.1:40123`."""
        return rpc_address(name, self.place)

    def send(self, envelope: Envelope[Any]) -> None:
        """Let an envelope go to where its receiver's address says. Never waits; it may be lost, see `ConnectionLost`.

        Raises:
            LocalUsageError: it has no such address, or cannot be written as JSON; then nothing is sent.
        """
        there, body = place_of(envelope.receiver), self._codec.encode(envelope)
        if there == self.place:
            if not self._inbox.put_at_once(there, self._codec.decode(body)):
                _log.warning("a %s for %s is lost: too much waits here", type(envelope.message).__name__, there)
            return
        with self._lock:
            if self._is_closed:
                return
            if there not in self._outgoing:
                self._outgoing[there] = Outgoing(there, self._connecting(there), self._losing(there))
            outgoing = self._outgoing[there]
        outgoing.send(body)

    def poll(self, timeout_s: float | None) -> list[Envelope[Any] | ConnectionLost]:
        """What has come, in order; if that is nothing, what comes first, or nothing after `timeout_s` or a `wake`."""
        return self._inbox.take(timeout_s)

    def wake(self) -> None:
        """Let `poll` return at once, this time or the next."""
        self._inbox.wake()

    def forget(self, place: str) -> None:
        """Keep nothing for a place that is not connected and to which nothing is to be sent; what is sent later finds
        its way anew. Behind a `ConnectionLost`, or else each place there ever was costs a thread."""
        with self._lock:
            outgoing = self._outgoing.get(place)
            if outgoing is None or not outgoing.is_idle:
                return
            del self._outgoing[place]
        outgoing.finish()

    def close(self, send_within_s: float = 1.0) -> None:
        """End: what was to be sent has so long to be sent, then all connections are cut. Safe to repeat."""
        with self._lock:
            self._is_closed = True
            outgoing = list(self._outgoing.values())
        until_s = time.monotonic() + send_within_s
        for each in outgoing:
            each.finish()
        for each in outgoing:
            each.close(max(0.0, until_s - time.monotonic()))
        self._inbox.close()
        self._acceptor.close()

    # -- those who connect, on their threads ---------------------------------------------------------------

    def accept(self, stream: ByteStream, timeout_s: float) -> tuple[Hello, SealedStream]:
        """Let a client prove itself. For the acceptor."""
        return accept_seal(stream, self._secret, self.place, self._codec.max_bytes, timeout_s)

    def serve(self, hello: Hello, stream: SealedStream) -> None:
        """Take in what a client sends until it ends. For the acceptor."""
        if hello.purpose != _ENVELOPES:
            raise RemoteProtocolError(f"{hello.here} wants {hello.purpose!r:.80}, which there is not")
        parse_place(hello.here)
        with self._lock:
            older = self._incoming.get(hello.here)
            self._incoming[hello.here] = stream
            if older is not None:
                self._inbox.tell(ConnectionLost(hello.here, "it has connected anew"))
        if older is not None:
            older.close()
        why = "it has ended the connection"
        try:
            while (bodies := stream.read()) is not None:
                for body in bodies:
                    self._take_in(hello, stream, body)
        except (OSError, RemoteProtocolError) as error:
            why = described(error)
            if isinstance(error, RemoteProtocolError):
                _log.warning("from %s: %s", hello.here, error)
        with self._lock:
            if self._incoming.get(hello.here) is stream:
                del self._incoming[hello.here]
                self._inbox.tell(ConnectionLost(hello.here, why))

    def _take_in(self, hello: Hello, stream: SealedStream, body: bytes) -> None:
        envelope = self._codec.decode(body)
        if not envelope.receiver.endswith(f"@{self.place}") or not envelope.sender.endswith(f"@{hello.here}"):
            raise RemoteProtocolError(f"{envelope.sender:.300} writes to {envelope.receiver:.300} over this connection")
        self._inbox.put(hello.here, envelope, lambda: self._incoming.get(hello.here) is stream)

    # -- those who are connected to ------------------------------------------------------------------------

    def _connecting(self, there: str) -> Callable[[Callable[[ByteStream], None]], SealedStream]:
        def make(show: Callable[[ByteStream], None]) -> SealedStream:
            self._refused.discard(there)
            try:
                stream = connect(*parse_place(there), self._security, CONNECT_WITHIN_S)
            except HandshakeError:
                self._refused.add(there)
                raise
            show(stream)
            hello = Hello(_ENVELOPES, self.place, there)
            try:
                return request_seal(stream, self._secret, hello, self._codec.max_bytes, CONNECT_WITHIN_S)
            except BaseException as error:
                if isinstance(error, ConnectionResetError | HandshakeError | RemoteProtocolError):
                    self._refused.add(there)
                stream.close()
                raise

        return make

    def _losing(self, there: str) -> Callable[[str], None]:
        return lambda why: self._inbox.tell(ConnectionLost(there, why, there in self._refused))
