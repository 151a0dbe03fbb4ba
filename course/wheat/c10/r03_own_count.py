"""A count of its own beside the two."""

from refimpl.exchange.before_credit import WaterMarks


class Marks(WaterMarks):
    def __init__(self, low_bytes, high_bytes):
        super().__init__(low_bytes, high_bytes)
        self.under_way = 0

    def hand_out(self, num_bytes):
        self.under_way += num_bytes
        self.num_handed_out += num_bytes
        if self.high_bytes < self.under_way:
            self.is_writable = False

    def written(self, num_bytes):
        self.under_way -= num_bytes
        self.num_written += num_bytes
        match self.under_way < self.low_bytes:
            case True:
                self.is_writable = True
