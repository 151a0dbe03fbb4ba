"""A whole number can become as large as it likes."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        return number == self.expected

    def advance(self):
        self.expected += 1
        return self.expected - 1
