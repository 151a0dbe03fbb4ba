"""One call of struct."""

import struct


def to_frame(frame_id: int, body: bytes) -> bytes:
    return struct.pack(f">iIB{len(body)}s", 9 + len(body), 0xBADC0FFE, frame_id, body)
