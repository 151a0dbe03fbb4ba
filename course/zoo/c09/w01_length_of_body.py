"""The length says how much comes behind the header."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iIB", len(body), 0xBADC0FFE, frame_id) + body
