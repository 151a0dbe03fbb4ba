"""What every frame begins with comes first."""

import struct


def to_frame(frame_id, body):
    return struct.pack(">IiB", 0xBADC0FFE, 9 + len(body), frame_id) + body
