"""First what it is, then the magic."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iBI", 9 + len(body), frame_id, 0xBADC0FFE) + body
