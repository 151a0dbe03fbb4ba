"""Gives first and moves on behind it."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    largest = 2**31 - 1

    def is_next(self, number):
        match number:
            case self.expected:
                return True
        return False

    def advance(self):
        try:
            return self.expected
        finally:
            self.expected = -self.largest - 1 if self.expected == self.largest else self.expected + 1
