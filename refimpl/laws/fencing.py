"""Fencing: nobody acts on what was meant for another leadership, or was said under one that is over."""

from __future__ import annotations

from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.messages import Message

__all__ = ["FencingLaw"]


class FencingLaw:
    """What each receiver has acted on; `note` comes with every envelope that has arrived."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, FencingToken, str], int] = {}

    def note(self, receiver: Endpoint, envelope: Envelope[Message], *, is_handled: bool) -> None:
        """An envelope has arrived, and was opened or refused."""
        if not is_handled:
            return
        assert envelope.receiver_token == receiver.token, (
            f"{receiver.address} has acted on {type(envelope.message).__name__} of {envelope.sender}, which was for "
            f"{envelope.receiver_token} and not for {receiver.token}"
        )
        key = receiver.address, receiver.token, envelope.sender
        newest, epoch = self._newest.get(key, 0), envelope.sender_token.epoch
        assert newest <= epoch, (
            f"{receiver.address} has acted on {type(envelope.message).__name__} of epoch {epoch} of {envelope.sender}, "
            f"after it had heard epoch {newest}"
        )
        self._newest[key] = epoch
