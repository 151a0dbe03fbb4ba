"""A header is as wide as struct makes it."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iII", 12 + len(body), 0xBADC0FFE, frame_id) + body
