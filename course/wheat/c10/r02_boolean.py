"""One expression each."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def hand_out(self, num_bytes: int) -> None:
        self.num_handed_out += num_bytes
        self.is_writable = self.is_writable and self.num_pending <= self.high_bytes

    def written(self, num_bytes: int) -> None:
        self.num_written += num_bytes
        self.is_writable = self.is_writable or self.num_pending < self.low_bytes
