"""Connections between processes, and the two ends of the engine's own, as every driver but the simulation uses them."""

from refimpl.drivers.transport.addresses import Address, resolve_address, show_address
from refimpl.drivers.transport.ends import ConsumerEnd, End, ProducerEnd
from refimpl.drivers.transport.refusals import HandshakeError, Refusal, explain_refusal, may_be_tls
from refimpl.drivers.transport.sockets import (
    ClosedHereError,
    ConnectionFailedError,
    PlainStream,
    SocketUse,
    batches,
    rest_after,
)
from refimpl.drivers.transport.streams import (
    ByteStream,
    Handshake,
    Incoming,
    Listener,
    Security,
    connect,
    listen,
    reach,
)
from refimpl.drivers.transport.tls import ClusterKeys, MutualTls, PemPair
from refimpl.drivers.transport.tls_stream import TlsStream

__all__ = [
    "Address",
    "ByteStream",
    "ClosedHereError",
    "ClusterKeys",
    "ConnectionFailedError",
    "ConsumerEnd",
    "End",
    "Handshake",
    "HandshakeError",
    "Incoming",
    "Listener",
    "MutualTls",
    "PemPair",
    "PlainStream",
    "ProducerEnd",
    "Refusal",
    "Security",
    "SocketUse",
    "TlsStream",
    "batches",
    "connect",
    "explain_refusal",
    "listen",
    "may_be_tls",
    "reach",
    "resolve_address",
    "rest_after",
    "show_address",
]
