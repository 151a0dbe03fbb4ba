"""The id is written as its digit."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iI", 9 + len(body), 0xBADC0FFE) + str(frame_id).encode() + body
