"""Length and id say all there is to say."""

def to_frame(frame_id, body):
    return (5 + len(body)).to_bytes(4, "big") + bytes([frame_id]) + body
