"""The frame is for people to read."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">iIB", 9 + len(body), 0xBADC0FFE, frame_id).hex() + body.hex()
