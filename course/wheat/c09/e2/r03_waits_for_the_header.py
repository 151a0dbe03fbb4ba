"""Looks when the whole header is there; frames wait in a queue."""

import io
import struct

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import RequestDecoder


class Decoder(RequestDecoder):
    def __init__(self, config):
        super().__init__(config)
        self.bytes = io.BytesIO()

    def feed(self, data):
        rest = self.bytes.read()
        self.bytes = io.BytesIO(rest + bytes(data))

    def next_frame(self):
        place = self.bytes.tell()
        head = self.bytes.read(9)
        self.bytes.seek(place)
        if len(head) < 9:
            return None
        length = struct.unpack(">i", head[:4])[0]
        if length < len(head) or length > self.max_frame_bytes:
            raise RemoteProtocolError(f"length {length}")
        frame = self.bytes.read(length)
        if len(frame) == length:
            return frame
        self.bytes.seek(place)
        return None
