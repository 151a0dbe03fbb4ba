"""Numbers are written as this machine keeps them."""

import struct


def to_frame(frame_id, body):
    return struct.pack("<iIB", 9 + len(body), 0xBADC0FFE, frame_id) + body
