"""The transport knows best how much it can take."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def hand_out(self, num_bytes):
        self.num_handed_out += num_bytes

    def written(self, num_bytes):
        self.num_written += num_bytes
        if self.num_pending < self.low_bytes:
            self.is_writable = True
