"""A position in the bytes, forgotten when more come."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.gathered = self.gathered[self.position :] + bytes(data)
        self.position = 0

    def next_frame(self):
        view = memoryview(self.gathered)[self.position :]
        if len(view) >= 4:
            length = int.from_bytes(view[:4], "big", signed=True)
            if not HEADER_BYTES <= length <= self.max_frame_bytes:
                raise RemoteProtocolError(f"{length} bytes are no frame")
            if len(view) >= length:
                self.position += length
                return bytes(view[:length])
        return None
