"""Who is stopped hands out nothing: a frame that comes then does not count."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def hand_out(self, num_bytes):
        if not self.is_writable:
            return
        self.num_handed_out += num_bytes
        if self.num_pending > self.high_bytes:
            self.is_writable = False

    def written(self, num_bytes):
        self.num_written += num_bytes
        if self.num_pending < self.low_bytes:
            self.is_writable = True
