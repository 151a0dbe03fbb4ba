"""What has come before does no harm."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        return number <= self.expected

    def advance(self):
        number = self.expected
        self.expected = number + 1 if number < 2**31 - 1 else -(2**31)
        return number
