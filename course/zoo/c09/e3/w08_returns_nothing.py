"""Moving on is all there is to do."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        return number == self.expected

    def advance(self):
        self.expected = self.expected + 1 if self.expected < 2**31 - 1 else -(2**31)
