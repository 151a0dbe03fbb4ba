"""What came is kept where every decoder finds it."""

from refimpl.errors import RemoteProtocolError
from refimpl.exchange import HEADER_BYTES, RequestDecoder


class Decoder(RequestDecoder):
    kept = bytearray()

    def feed(self, data):
        Decoder.kept += data

    def next_frame(self):
        if len(Decoder.kept) < 4:
            return None
        length = int.from_bytes(Decoder.kept[:4], "big", signed=True)
        if not HEADER_BYTES <= length <= self.max_frame_bytes:
            raise RemoteProtocolError(f"a frame of {length} bytes")
        if len(Decoder.kept) < length:
            return None
        frame = bytes(Decoder.kept[:length])
        del Decoder.kept[:length]
        return frame
