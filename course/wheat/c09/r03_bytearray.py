"""A bytearray, byte by byte."""

def to_frame(frame_id, body):
    size = 4 + 4 + 1 + len(body)
    frame = bytearray()
    for number, width in ((size, 4), (0xBADC0FFE, 4), (frame_id, 1)):
        for place in reversed(range(width)):
            frame.append(number >> (8 * place) & 0xFF)
    frame += body
    return bytes(frame)
