"""Envelopes as they cross a connection: JSON by the fields of their messages, and not too long."""

from __future__ import annotations

from typing import Any

from refimpl.cluster.fencing import Envelope
from refimpl.cluster.messages import Message
from refimpl.drivers.cluster.rpc.json_form import JsonForm
from refimpl.errors import LocalUsageError, RemoteProtocolError

__all__ = ["MAX_ENVELOPE_BYTES", "Codec"]

MAX_ENVELOPE_BYTES = 1 << 25  # a job, which crosses in Base64, may have 24 MB


class Codec:
    """Envelopes with messages of these kinds (a dataclass, or a union of some) <-> bytes, at most `max_bytes`.

    Raises:
        LocalUsageError: a field of a message is of a type that has no form in JSON.

    Flink:   RemoteFencedMessage, RemoteRpcInvocation (runtime.rpc), 1.11.4
    Differs: JSON, of which nothing runs when it is read; there it is Java's serialization.
    """

    def __init__(self, messages: object = Message, max_bytes: int = MAX_ENVELOPE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._form = JsonForm(Envelope, messages)

    def encode(self, envelope: Envelope[Any]) -> bytes:
        """The envelope as it is sent.

        Raises:
            LocalUsageError: it is too long, or a value in it is not of the type it is declared as.
        """
        data = self._form.write(envelope)
        if len(data) > self.max_bytes:
            kind = type(envelope.message).__name__
            raise LocalUsageError(f"a {kind} of {len(data)} B cannot be sent, the most is {self.max_bytes} B")
        return data

    def decode(self, data: bytes) -> Envelope[Any]:
        """What `encode` was given.

        Raises:
            RemoteProtocolError: this is no such thing; says why.
        """
        if len(data) > self.max_bytes:
            raise RemoteProtocolError(f"an envelope of {len(data)} B, the most is {self.max_bytes} B")
        envelope: Envelope[Any] = self._form.read(data)
        return envelope
