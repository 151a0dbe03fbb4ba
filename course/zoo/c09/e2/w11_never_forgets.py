"""Memory is cheap; a position is enough."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.gathered += data

    def next_frame(self):
        rest = self.gathered[self.position :]
        if len(rest) < 4:
            return None
        length = int.from_bytes(rest[:4], "big", signed=True)
        if not HEADER_BYTES <= length <= self.max_frame_bytes:
            raise RemoteProtocolError(f"a frame of {length} bytes")
        if len(rest) < length:
            return None
        self.position += length
        return bytes(rest[:length])
