"""The numbers of one channel's buffers: what shows that one was lost, or came twice.

A connection that works keeps the order and loses nothing. The numbers are there for the day on which some part does not
work: then a channel fails loudly, where it would otherwise go on with a hole in its records.
"""

from __future__ import annotations

__all__ = ["SequenceNumbers"]

_LARGEST = 2**31 - 1
_SMALLEST = -(2**31)


class SequenceNumbers:
    """Which number must come next; the first is 0.

    Flink:   RemoteInputChannel.expectedSequenceNumber (runtime.io.network.partition.consumer), 1.11.4
    """

    def __init__(self) -> None:
        self.expected = 0

    def __repr__(self) -> str:
        return f"SequenceNumbers(expected={self.expected})"

    def is_next(self, number: int) -> bool:
        """Whether a buffer with this number is the one that must come now. Asking changes nothing."""
        return number == self.expected

    def advance(self) -> int:
        """The number that was expected; from here on the one after it is.

        An `int` of Java: after the largest, 2**31 - 1, comes the smallest, -2**31.
        """
        number = self.expected
        self.expected = number + 1 if number < _LARGEST else _SMALLEST
        return number
