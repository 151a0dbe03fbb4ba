"""After the largest number it begins anew."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number):
        return number == self.expected

    def advance(self):
        number = self.expected
        self.expected = (number + 1) % 2**31
        return number
