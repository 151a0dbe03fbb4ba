"""A component at an address: envelopes in, envelopes out, and a time at which it wants to be woken.

It is pulled: whoever drives it carries what is in `messages_to_send` to where it goes, or loses it. One instance is one
leadership, or one life: the token stays what it is, and who leads again is another instance.
"""

from __future__ import annotations

from refimpl.cluster.fencing import Envelope, Fence, FenceRefusal, FencingToken
from refimpl.cluster.messages import Message
from refimpl.cluster.peer_links import PeerLink

__all__ = ["Endpoint"]


class Endpoint:
    """The component at `address` under `token`.

    `peers` are those that have registered here, with the tokens that messages for them carry. `num_refused`
    counts the envelopes that were not opened.

    Flink:   FencedRpcEndpoint (runtime.rpc), 1.11.4
    Differs: there a call is answered by a future; here an answer is a message of its own.
    """

    def __init__(self, address: str, token: FencingToken) -> None:
        self.address = address
        self.token = token
        self.peers: dict[str, FencingToken] = {}
        self.last_refusal: FenceRefusal | None = None
        self.num_refused = 0
        self._fence = Fence(address)
        self._fence.token = token
        self._outbox: list[Envelope[Message]] = []

    def receive(self, envelope: Envelope[Message], now_ms: float) -> FenceRefusal | None:
        """Open an envelope, unless it is not for this leadership; then nothing has happened."""
        if refusal := self._fence.check(envelope):
            self.num_refused += 1
            self.last_refusal = refusal
            return refusal
        self._handle(envelope.message, envelope.sender, envelope.sender_token, now_ms)
        return None

    def messages_to_send(self) -> list[Envelope[Message]]:
        """What is to be carried, in this order; asked again there is only what has come since."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def links(self, now_ms: float) -> tuple[PeerLink, ...]:
        """Those it deals with, as it knows them at this time."""
        raise NotImplementedError

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        raise NotImplementedError

    def on_timeout(self, now_ms: float) -> None:
        """Do what is due."""
        raise NotImplementedError

    def _handle(self, message: Message, sender: str, token: FencingToken, now_ms: float) -> None:
        """Act on a message that was let in."""
        raise NotImplementedError

    def _send(self, address: str, token: FencingToken, message: Message) -> None:
        self._outbox.append(Envelope(self.address, self.token, address, token, message))

    def _send_to_peer(self, address: str, message: Message) -> None:
        """A message for who has registered here; for anybody else it is lost."""
        if address in self.peers:
            self._send(address, self.peers[address], message)

    def _is_new_life(self, address: str, token: FencingToken) -> bool:
        """Whether a peer of this address was known under another token."""
        return self.peers.get(address, token) != token
