"""One helper for both, told from where it comes."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def hand_out(self, num_bytes):
        self.num_handed_out = self.num_handed_out + num_bytes
        self.settle()

    def settle(self):
        pending = self.num_handed_out - self.num_written
        if self.is_writable:
            self.is_writable = pending <= self.high_bytes
        else:
            self.is_writable = pending < self.low_bytes

    def written(self, num_bytes):
        self.num_written = self.num_written + num_bytes
        self.settle()
