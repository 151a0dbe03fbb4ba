"""A piece holds one frame; what is behind it is noise."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.gathered += data

    def next_frame(self):
        if len(self.gathered) < 4:
            return None
        length = int.from_bytes(self.gathered[:4], "big", signed=True)
        if not HEADER_BYTES <= length <= self.max_frame_bytes:
            raise RemoteProtocolError(f"a frame of {length} bytes")
        if len(self.gathered) < length:
            return None
        frame = bytes(self.gathered[:length])
        self.gathered.clear()
        return frame
