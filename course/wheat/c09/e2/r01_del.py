"""Cuts off what was given at once."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.gathered.extend(data)

    def next_frame(self):
        if len(self.gathered) < 4:
            return None
        length = int.from_bytes(self.gathered[:4], "big", signed=True)
        if length < 9 or length > self.max_frame_bytes:
            raise RemoteProtocolError("bad length")
        if length > len(self.gathered):
            return None
        frame, self.gathered = bytes(self.gathered[:length]), self.gathered[length:]
        return frame
