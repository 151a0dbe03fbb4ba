"""Which leader is meant: the token that every message carries, and who looks at it.

A leader that was paused does not know that there is another one by now. Its messages come, and messages for it come.
So each leadership has a token of its own, a message names the token of who is meant, and what names another is refused
before anybody acts on it. Whoever speaks is checked in the same way: after a message of epoch 5 none of epoch 4 counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from refimpl.errors import LocalUsageError

__all__ = ["Envelope", "Fence", "FenceRefusal", "FencingToken"]

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class FencingToken:
    """One leadership, or one life of a TaskManager: `epoch` rises with each, `nonce` (16 bytes) is nobody else's.

    Flink:   ResourceManagerId, JobMasterId, DispatcherId (runtime), 1.11.4
    Differs: a random id there, of which nobody can say which is the newer.
    """

    epoch: int
    nonce: bytes = bytes(16)

    def __post_init__(self) -> None:
        if self.epoch < 0 or len(self.nonce) != 16:
            raise LocalUsageError(
                f"a token has an epoch of 0 or more and 16 bytes, got {self.epoch} and {len(self.nonce)}"
            )

    def __str__(self) -> str:
        return f"epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class Envelope(Generic[M]):
    """A message on its way between two addresses: which leadership says it, and to which one."""

    sender: str
    sender_token: FencingToken
    receiver: str
    receiver_token: FencingToken | None
    message: M


@dataclass(frozen=True, slots=True)
class FenceRefusal:
    """Why an envelope was not opened, for whoever sent it."""

    receiver: str
    why: str


class Fence:
    """The door of the component at `address`: closed while it has no `token`, and to whoever means another.

    Flink:   FencedRpcEndpoint, FencedAkkaRpcActor (runtime.rpc), 1.11.4
    Differs: the sender's token is looked at here too; there each handler compares it, or forgets to.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.token: FencingToken | None = None
        self._newest: dict[str, FencingToken] = {}  # what each sender has called itself

    def check(self, envelope: Envelope[M]) -> FenceRefusal | None:
        """Why this envelope may not be opened; `None` if it may, and then its sender's older ones may not any more."""
        if envelope.receiver != self.address:
            return FenceRefusal(self.address, f"this is {self.address}, and the message is for {envelope.receiver}")
        if self.token is None:
            return FenceRefusal(self.address, f"{self.address} leads nothing at present")
        if envelope.receiver_token != self.token:
            meant = envelope.receiver_token or "no epoch at all"
            return FenceRefusal(self.address, f"the message is for {meant} of {self.address}, which has {self.token}")
        newest = self._newest.get(envelope.sender, envelope.sender_token)
        if not _follows(newest, envelope.sender_token):
            return FenceRefusal(
                self.address, f"{envelope.sender} speaks as {envelope.sender_token}, and has spoken as {newest}"
            )
        self._newest[envelope.sender] = envelope.sender_token
        return None

    def forget(self, sender: str) -> None:
        """Keep nothing of a sender that will not come back under this address."""
        self._newest.pop(sender, None)


def _follows(known: FencingToken, token: FencingToken) -> bool:
    """Whether `token` is the known one, or a newer."""
    return token.epoch > known.epoch or token == known
