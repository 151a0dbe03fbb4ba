"""Counts and traces the frames of every connection, from the bytes that pass in front of the stream.

What is told here does not come from the engine: a frame that the engine forgot, or counted wrongly, is seen all the
same. The first bytes of a frame are enough to know what it is, so no more of it is kept.
"""

from __future__ import annotations

import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from refimpl.drivers.transport import ByteStream

__all__ = ["FrameScanner", "Tap", "TappedStream"]

KEPT_BYTES = 160
_NAMES = (
    "BufferResponse", "ErrorResponse", "PartitionRequest", "TaskEventRequest", "CancelPartitionRequest", "CloseRequest",
    "AddCredit", "ResumeConsumption",
)  # fmt: skip
_ID_AT = 8  # behind length and magic
_BODY_AT = 9
_RESPONSE = struct.Struct(">16siibbi")
_REQUEST = struct.Struct(">20s16si16si")
_CREDIT = struct.Struct(">i16s")
_RECEIVER = struct.Struct(">16s")


class FrameScanner:
    """Finds the frames in the bytes of one direction, however they are cut.

    `on_frame` gets the first bytes of each frame, at most `KEPT_BYTES`, and its length.
    """

    def __init__(self, on_frame: Callable[[bytes, int], None]) -> None:
        self._on_frame = on_frame
        self._head = bytearray()
        self._num_seen = 0
        self._length: int | None = None

    def feed(self, data: bytes | memoryview) -> None:
        """Look at the next bytes."""
        view = memoryview(data).cast("B")
        position = 0
        while position < len(view):
            if self._length is None:
                num_bytes = min(len(view) - position, 4 - self._num_seen)
            else:
                num_bytes = min(len(view) - position, self._length - self._num_seen)
            kept = min(num_bytes, KEPT_BYTES - len(self._head))
            self._head += view[position : position + kept]
            position += num_bytes
            self._num_seen += num_bytes
            if self._length is None and self._num_seen == 4:
                self._length = int.from_bytes(self._head, "big")
            if self._length is not None and self._num_seen >= self._length:
                self._end_frame(self._length)

    def _end_frame(self, length: int) -> None:
        head = bytes(self._head)
        self._head.clear()
        self._num_seen = 0
        self._length = None
        self._on_frame(head, length)


@dataclass(slots=True)
class _Receiver:
    """What went to and came from one receiver; `lowest_balance` is its credit at the worst moment."""

    credit_granted: int = 0
    data_buffers: int = 0
    lowest_balance: int = 0
    max_backlog: int = 0
    event_buffers: int = 0
    payload_bytes: int = 0

    def on_response(self, backlog: int, is_data: bool, size: int) -> None:
        if is_data:
            self.data_buffers += 1
            self.lowest_balance = min(self.lowest_balance, self.credit_granted - self.data_buffers)
        else:
            self.event_buffers += 1
        self.max_backlog = max(self.max_backlog, backlog)
        self.payload_bytes += size

    def as_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


class Tap:
    """All frames of one end. `trace` is where to write one line for each, if anywhere; it is closed with the tap."""

    def __init__(self, trace: TextIO | None = None) -> None:
        self.num_connections = 0
        self._open: set[TappedStream] = set()
        self._trace = trace
        self._started_s = time.monotonic()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._receivers: dict[str, _Receiver] = {}

    @property
    def is_deserted(self) -> bool:
        """Whether everybody who was connected has gone."""
        return self.num_connections > 0 and not self._open

    @property
    def num_open(self) -> int:
        """Connections that this end has not closed."""
        return len(self._open)

    def tapped(self, stream: ByteStream) -> ByteStream:
        """The stream of the next connection, with an eye on it."""
        with self._lock:
            self.num_connections += 1
            tapped = TappedStream(stream, self, self.num_connections)
            self._open.add(tapped)
            return tapped

    def on_close(self, stream: TappedStream) -> None:
        """This stream is open no more."""
        with self._lock:
            self._open.discard(stream)

    def scanner(self, connection: int, direction: str) -> FrameScanner:
        """What finds the frames of one direction, `recv` or `send`, of a connection."""
        return FrameScanner(lambda head, length: self._on_frame(connection, direction, head, length))

    def summary(self) -> dict[str, Any]:
        """What has passed until now."""
        with self._lock:
            receivers = {name: receiver.as_json() for name, receiver in self._receivers.items()}
            counts = dict(sorted(self._counts.items()))
            return {"connections": self.num_connections, "counts": counts, "receivers": receivers}

    def close(self) -> None:
        """Write the rest of the trace; what still passes is counted and not traced."""
        with self._lock:
            if self._trace is not None:
                self._trace.close()
                self._trace = None

    def _on_frame(self, connection: int, direction: str, head: bytes, length: int) -> None:
        frame_id = head[_ID_AT] if len(head) > _ID_AT else -1
        name = _NAMES[frame_id] if 0 <= frame_id < len(_NAMES) else f"unknown-{frame_id}"
        with self._lock:
            self._counts[f"{direction}:{name}"] += 1
            fields = self._read(name, head)
            if self._trace is not None:
                t_us = int((time.monotonic() - self._started_s) * 1_000_000)
                line = {"t_us": t_us, "conn": connection, "dir": direction, "msg": name, "len": length, **fields}
                self._trace.write(json.dumps({**line, "head_hex": head.hex()}) + "\n")

    def _read(self, name: str, head: bytes) -> dict[str, object]:
        """The fields of a frame, and what they mean for its receiver; none if it is too short for its kind."""
        layout = _LAYOUTS.get(name)
        if layout is None or len(head) < _BODY_AT + layout.size:
            return {}
        fields = layout.unpack_from(head, _BODY_AT)
        match name:
            case "BufferResponse":
                receiver, sequence, backlog, data_type, compressed, size = fields
                self._receiver(receiver).on_response(backlog, data_type == 0, size)
                return {
                    "receiver": receiver.hex(),
                    "seq": sequence,
                    "backlog": backlog,
                    "data_type": data_type,
                    "compressed": compressed,
                    "size": size,
                }
            case "PartitionRequest":
                partition, producer, subpartition, receiver, credit = fields
                self._receiver(receiver).credit_granted += credit
                ids = {"partition_id": partition.hex(), "producer_id": producer.hex(), "subpartition": subpartition}
                return {**ids, "receiver": receiver.hex(), "credit": credit}
            case "AddCredit":
                credit, receiver = fields
                self._receiver(receiver).credit_granted += credit
                return {"receiver": receiver.hex(), "credit": credit}
            case _:
                return {"receiver": fields[0].hex()}

    def _receiver(self, receiver: bytes) -> _Receiver:
        return self._receivers.setdefault(receiver.hex(), _Receiver())


_LAYOUTS = {
    "BufferResponse": _RESPONSE, "PartitionRequest": _REQUEST, "AddCredit": _CREDIT,
    "CancelPartitionRequest": _RECEIVER, "ResumeConsumption": _RECEIVER,
}  # fmt: skip


class TappedStream:
    """A stream whose bytes are looked at before the engine, or the other end, can act on them."""

    def __init__(self, stream: ByteStream, tap: Tap, connection: int) -> None:
        self.peer = stream.peer
        self.end = stream.end
        self.limit = stream.limit
        self._stream = stream
        self._tap = tap
        self._received = tap.scanner(connection, "recv")
        self._sent = tap.scanner(connection, "send")

    def read(self, max_bytes: int) -> bytes:
        data = self._stream.read(max_bytes)
        self._received.feed(data)
        return data

    def read_into(self, room: memoryview) -> int:
        num_bytes = self._stream.read_into(room)
        self._received.feed(room[:num_bytes])
        return num_bytes

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        for piece in pieces:
            self._sent.feed(piece)
        self._stream.write(pieces)

    def write_at_once(self, pieces: Sequence[bytes | memoryview]) -> int:
        return 0  # nothing: what leaves must have been looked at before

    def close(self) -> None:
        self._stream.close()
        self._tap.on_close(self)
