"""Lets four bytes decide."""

from refimpl.consumer import SequenceNumbers


class Sequence(SequenceNumbers):
    def is_next(self, number: int) -> bool:
        return not number - self.expected

    def advance(self) -> int:
        now = self.expected
        packed = ((now + 1) & 0xFFFFFFFF).to_bytes(4, "big")
        self.expected = int.from_bytes(packed, "big", signed=True)
        return now
