"""Pieces joined."""

def to_frame(frame_id, body):
    rest = b"".join((bytes.fromhex("BADC0FFE"), bytes((frame_id,)), body))
    return (len(rest) + 4).to_bytes(4, "big") + rest
