"""What is written is not handed out any more."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def hand_out(self, num_bytes):
        self.num_handed_out += num_bytes
        if self.num_pending > self.high_bytes:
            self.is_writable = False

    def written(self, num_bytes):
        self.num_handed_out -= num_bytes
        if self.num_pending < self.low_bytes:
            self.is_writable = True
