"""A view of the bytes is as good as a copy."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.gathered += data

    def next_frame(self):
        view = memoryview(self.gathered)[self.position :]
        if len(view) < 4:
            return None
        length = int.from_bytes(view[:4], "big", signed=True)
        if not HEADER_BYTES <= length <= self.max_frame_bytes:
            raise RemoteProtocolError(f"a frame of {length} bytes")
        if len(view) < length:
            self.last = view
            return None
        self.position += length
        return bytes(view[:length])
