"""The length counts what comes behind it."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iIB", 5 + len(body), 0xBADC0FFE, frame_id) + body
