"""A generator that eats bytes, and bytes of its own."""

import struct

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import RequestDecoder


class Decoder(RequestDecoder):
    def __init__(self, config):
        super().__init__(config)
        self.stream = b""

    def feed(self, data):
        self.stream += bytes(data)

    def _frames(self):
        while len(self.stream) >= 4:
            (length,) = struct.unpack_from(">i", self.stream)
            if not 9 <= length <= self.max_frame_bytes:
                raise RemoteProtocolError(length)
            if len(self.stream) < length:
                return
            frame, self.stream = self.stream[:length], self.stream[length:]
            yield frame

    def next_frame(self):
        return next(self._frames(), None)
