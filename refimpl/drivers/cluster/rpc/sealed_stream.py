"""A connection whose two ends have proved to each other that they know the secret, and whose every frame says so.

The client speaks first, and a stranger hears nothing at all:

    hello      magic 8 B, length of the words 2 B, client's nonce 32 B, hash 32 B; purpose, own place, place meant
    welcome    server's nonce 32 B, hash 32 B
    frame      length of the body 4 B, hash 32 B, body

Hashes are HMAC-SHA256. Those of hello and welcome are made with the secret, over all that was said before them. Those
of frames are made with a key that comes of the secret and both nonces, one for each direction, over the number of the
frame and its body. So no frame can be left out, sent twice, moved to another place or sent back to who made it; and a
hello that somebody has overheard opens nothing.
"""

from __future__ import annotations

import hmac
import secrets
import struct
import time
from dataclasses import dataclass

from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.transport.streams import ByteStream
from refimpl.errors import RemoteProtocolError

__all__ = ["MAX_HELLO_BYTES", "FrameReader", "FrameWriter", "Hello", "SealedStream", "accept_seal", "request_seal"]

MAX_HELLO_BYTES = 1024
_MAGIC = b"SLUICE\x00\x01"
_HEAD = struct.Struct("!8sH32s32s")
_FRAME = struct.Struct("!I32s")
_HASH_BYTES = 32
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Hello:
    """The first words of a client: what it connects for, the place where it listens itself, and the place it means."""

    purpose: str
    here: str
    there: str


class FrameWriter:
    """Bodies as frames under `key`, numbered from 0."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def seal(self, body: bytes) -> bytes:
        """The next frame."""
        seal = _frame_hash(self._key, self._number, body)
        self._number += 1
        return _FRAME.pack(len(body), seal) + body


class FrameReader:
    """Frames of at most `max_bytes` under `key`, from bytes in any pieces."""

    def __init__(self, key: bytes, max_bytes: int) -> None:
        self._key = key
        self._max_bytes = max_bytes
        self._number = 0
        self._received = bytearray()

    def receive(self, data: bytes | memoryview) -> list[bytes]:
        """The bodies of the frames that are complete now.

        Raises:
            RemoteProtocolError: this frame is not the next one of who knows the key, or it is too long.
        """
        self._received += data
        bodies: list[bytes] = []
        while len(self._received) >= _FRAME.size:
            length, seal = _FRAME.unpack_from(self._received)
            if length > self._max_bytes:
                raise RemoteProtocolError(f"a frame of {length} B, the most is {self._max_bytes} B")
            if len(self._received) < _FRAME.size + length:
                break
            body = bytes(self._received[_FRAME.size : _FRAME.size + length])
            if not hmac.compare_digest(seal, _frame_hash(self._key, self._number, body)):
                raise RemoteProtocolError(f"frame {self._number} is not what its hash says")
            del self._received[: _FRAME.size + length]
            self._number += 1
            bodies.append(body)
        return bodies


class SealedStream:
    """A stream after hello and welcome: bodies out, bodies in. One thread reads, one writes, any closes."""

    def __init__(self, stream: ByteStream, writer: FrameWriter, reader: FrameReader) -> None:
        self.peer = stream.peer
        self.close = stream.close
        self.end = stream.end
        self.limit = stream.limit
        self._stream = stream
        self._writer = writer
        self._reader = reader

    def write(self, body: bytes) -> None:
        """Hand a body to the system, waiting as long as that takes."""
        self._stream.write([self._writer.seal(body)])

    def read(self) -> list[bytes] | None:
        """Wait for some bytes; the bodies that are complete with them, `None` when the other end has ended.

        Raises:
            RemoteProtocolError: what came is of nobody who knows the secret.
        """
        data = self._stream.read(_READ_BYTES)
        return self._reader.receive(data) if data else None


# -- hello and welcome ---------------------------------------------------------------------------------


def request_seal(
    stream: ByteStream, secret: ClusterSecret, hello: Hello, max_bytes: int, timeout_s: float
) -> SealedStream:
    """Prove to the server that we know the secret, and let it do the same.

    Raises:
        RemoteProtocolError: it does not.
        OSError: it says nothing in time, or has closed the connection, as it does to strangers.
    """
    until_s = time.monotonic() + timeout_s
    words = "\n".join((hello.purpose, hello.here, hello.there)).encode()
    ours = secrets.token_bytes(_HASH_BYTES)
    stream.limit(timeout_s)
    stream.write([_HEAD.pack(_MAGIC, len(words), ours, _hash(secret.secret, b"hello", ours, words)), words])
    answer = _read_exactly(stream, 2 * _HASH_BYTES, until_s)
    theirs, shown = answer[:_HASH_BYTES], answer[_HASH_BYTES:]
    if not hmac.compare_digest(shown, _hash(secret.secret, b"welcome", ours, theirs, words)):
        raise RemoteProtocolError(f"{stream.peer} does not know the secret of this cluster")
    stream.limit(None)
    return _sealed(stream, secret, ours + theirs, True, max_bytes)


def accept_seal(
    stream: ByteStream, secret: ClusterSecret, here: str, max_bytes: int, timeout_s: float
) -> tuple[Hello, SealedStream]:
    """Let a client prove that it knows the secret and means the place `here`; only then is it answered.

    Raises:
        RemoteProtocolError: it does not.
        OSError: it has said too little in time, or has gone.
    """
    until_s = time.monotonic() + timeout_s
    magic, length, theirs, shown = _HEAD.unpack(_read_exactly(stream, _HEAD.size, until_s))
    if magic != _MAGIC or length > MAX_HELLO_BYTES:
        raise RemoteProtocolError(f"{stream.peer} does not speak as a process of a cluster does")
    words = _read_exactly(stream, length, until_s)
    if not hmac.compare_digest(shown, _hash(secret.secret, b"hello", theirs, words)):
        raise RemoteProtocolError(f"{stream.peer} does not know the secret of this cluster")
    said = words.decode("utf-8", "replace").split("\n")
    if len(said) != 3 or said[2] != here:
        raise RemoteProtocolError(f"{stream.peer} means {said[2:]}, and this is {here}")
    ours = secrets.token_bytes(_HASH_BYTES)
    stream.write([ours, _hash(secret.secret, b"welcome", theirs, ours, words)])
    stream.limit(None)
    return Hello(*said), _sealed(stream, secret, theirs + ours, False, max_bytes)


# -- helpers -------------------------------------------------------------------------------------------


def _sealed(stream: ByteStream, secret: ClusterSecret, nonces: bytes, is_client: bool, max_bytes: int) -> SealedStream:
    keys = [_hash(secret.secret, direction, nonces) for direction in (b"to server", b"to client")]
    to_write, to_read = keys if is_client else reversed(keys)
    return SealedStream(stream, FrameWriter(to_write), FrameReader(to_read, max_bytes))


def _hash(key: bytes, *parts: bytes) -> bytes:
    """The hash over these parts, each with its length, so that none can take bytes of the next."""
    return hmac.digest(key, b"".join(struct.pack("!I", len(part)) + part for part in parts), "sha256")


def _frame_hash(key: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + body, "sha256")


def _read_exactly(stream: ByteStream, num_bytes: int, until_s: float) -> bytes:
    """So many bytes, and not one more, until that time."""
    data = b""
    while len(data) < num_bytes:
        if (left_s := until_s - time.monotonic()) <= 0:
            raise TimeoutError(f"{stream.peer} has said too little in time")
        stream.limit(left_s)
        piece = stream.read(num_bytes - len(data))
        if not piece:
            raise ConnectionResetError(f"{stream.peer} has closed the connection without a word")
        data += piece
    return data
