"""The way round by arithmetic."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        return self.expected == number

    def advance(self):
        now = self.expected
        self.expected = (now + 1 + 2**31) % 2**32 - 2**31
        return now
