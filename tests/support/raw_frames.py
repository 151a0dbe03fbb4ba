"""Frames as bytes: made of any parts, and taken apart where they are whole."""

from __future__ import annotations

import struct

from refimpl.config import FlinkVersion
from refimpl.exchange import HEADER_BYTES, MAGIC, Message, decode

_HEADER = struct.Struct(">iIB")


def frame(body: bytes, frame_id: int = 6, magic: int = MAGIC, length: int | None = None) -> bytes:
    """A frame that says of itself what it is told to say; by default an AddCredit of the right length."""
    return _HEADER.pack(HEADER_BYTES + len(body) if length is None else length, magic, frame_id) + body


def frames_in(data: bytes, version: FlinkVersion = FlinkVersion.V1_11) -> list[Message]:
    """The messages of whole frames that lie one behind the other."""
    found = []
    while data:
        length, magic, frame_id = _HEADER.unpack_from(data)
        assert magic == MAGIC
        found.append(decode(frame_id, memoryview(data)[HEADER_BYTES:length], version))
        data = data[length:]
    return found
