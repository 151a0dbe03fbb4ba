"""Whoever asks has seen it."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        is_right = number == self.expected
        self.expected = number + 1
        return is_right

    def advance(self):
        number = self.expected
        self.expected = number + 1 if number < 2**31 - 1 else -(2**31)
        return number
