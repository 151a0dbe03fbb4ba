"""The wrapping of every message between two TaskManagers, and the reason for it.

A connection carries bytes in order and nothing else: it has no marks where a message ends, and it cuts what it carries
wherever that suits it. So each message says how long it is before it begins.
"""

from __future__ import annotations

import struct

__all__ = ["FRAME_HEADER", "HEADER_BYTES", "MAGIC", "to_frame"]

MAGIC = 0xBADC0FFE
FRAME_HEADER = struct.Struct(">iIB")
"""What every frame begins with: the length of the whole frame, the magic, the id of the message."""
HEADER_BYTES = FRAME_HEADER.size


def to_frame(frame_id: int, body: bytes) -> bytes:
    """The frame of a message: 4 bytes of length, 4 bytes of magic, 1 byte of id, and the body.

    The length is that of the whole frame, these 9 bytes included. The magic is the number 0xBADC0FFE.
    Numbers are big-endian: the highest byte comes first.

    Flink:   NettyMessage.allocateBuffer (runtime.io.network.netty), 1.11.4
    """
    return FRAME_HEADER.pack(HEADER_BYTES + len(body), MAGIC, frame_id) + body
