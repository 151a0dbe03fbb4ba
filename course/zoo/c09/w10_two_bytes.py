"""Two bytes are enough for a length."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">HIB", 7 + len(body), 0xBADC0FFE, frame_id) + body
