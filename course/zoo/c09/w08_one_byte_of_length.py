"""A message is never longer than 255 bytes."""

def to_frame(frame_id, body):
    return bytes([0, 0, 0, (9 + len(body)) & 255]) + bytes.fromhex("badc0ffe") + bytes([frame_id]) + body
