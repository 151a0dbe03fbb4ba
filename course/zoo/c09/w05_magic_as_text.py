"""The magic is a word."""

def to_frame(frame_id, body):
    return (9 + len(body)).to_bytes(4, "big") + b"BADC0FFE" + bytes([frame_id]) + body
