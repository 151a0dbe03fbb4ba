"""Why a TLS connection was refused, in plain words: OpenSSL's presume its source.

An end that refuses the other knows why. The other one learns as much as an *alert* says, one byte.
"""

from __future__ import annotations

import ssl
from enum import Enum

from refimpl.drivers.transport.sockets import ConnectionFailedError

__all__ = ["HandshakeError", "Refusal", "explain_refusal", "may_be_tls"]


class Refusal(Enum):
    """The fault of the other end, or the fault that it finds with us."""

    NO_CERTIFICATE = "it presented no certificate"
    OTHER_CERTIFICATE = "it presented another certificate than this cluster's"
    EXPIRED = "the cluster's certificate is not valid at this time"
    PLAIN_TCP = "it speaks plain TCP, not TLS"
    TOO_OLD = "it speaks no TLS as new as 1.2"
    TIMEOUT = "it did not finish the TLS handshake in time"
    CLOSED = "it closed the connection during the TLS handshake"
    REFUSED_NO_CERTIFICATE = "it refused us: it says we presented no certificate"
    REFUSED_CERTIFICATE = "it refused us: it has another certificate than this process"
    BROKEN = "what it sent is no proper TLS"


class HandshakeError(ConnectionFailedError):
    """The two ends of a connection do not trust each other.

    Attributes:
        peer: the other end's address.
        reason: the fault.
    """

    peer: str
    reason: Refusal

    @classmethod
    def of(cls, peer: str, reason: Refusal, detail: str = "") -> HandshakeError:
        """The error with its sentence."""
        error = cls(f"{peer}: {reason.value}{detail and f' ({detail})'}; {_ADVICE.get(reason, _SAME_KEYS)}")
        error.peer, error.reason = peer, reason
        return error


_SAME_KEYS = "every process of a cluster needs the same keys, made once by `sluice cluster keys`"
_ADVICE = {
    Refusal.BROKEN: "it is no process of ours, or somebody changes the bytes on their way",
    Refusal.EXPIRED: "see whether the clocks are right, or make new keys by `sluice cluster keys`",
}

# What OpenSSL says -> what it means. In this order; versions differ in the words around these.
_MEANING = (
    ("did not return a certificate", Refusal.NO_CERTIFICATE),
    ("certificate has expired", Refusal.EXPIRED),
    ("certificate is not yet valid", Refusal.EXPIRED),
    ("alert certificate expired", Refusal.EXPIRED),
    ("certificate verify failed", Refusal.OTHER_CERTIFICATE),
    ("unsupported protocol", Refusal.TOO_OLD),
    ("version too low", Refusal.TOO_OLD),
    ("alert protocol version", Refusal.TOO_OLD),
    ("alert certificate required", Refusal.REFUSED_NO_CERTIFICATE),
    ("alert unknown ca", Refusal.REFUSED_CERTIFICATE),
    ("alert bad certificate", Refusal.REFUSED_CERTIFICATE),
    ("alert certificate unknown", Refusal.REFUSED_CERTIFICATE),
    ("alert decrypt error", Refusal.REFUSED_CERTIFICATE),
)


def explain_refusal(peer: str, error: ssl.SSLError) -> HandshakeError:
    """The error that OpenSSL means, in plain words."""
    said = str(error).lower().replace("_", " ")
    for words, reason in _MEANING:
        if words in said:
            return HandshakeError.of(peer, reason)
    return HandshakeError.of(peer, Refusal.BROKEN, error.reason or str(error))


def may_be_tls(first: bytes) -> bool:
    """Whether a connection that begins so can be TLS: a handshake or an alert, of version 3.x."""
    return first[0] in (0x15, 0x16) and (len(first) == 1 or first[1] == 3)
