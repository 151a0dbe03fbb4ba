"""A deserializer that shows several records at once."""

from __future__ import annotations

from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.records.spanning import SpillingAdaptiveSpanningRecordDeserializer

__all__ = ["FastDeserializer"]

_SHORT_BYTES = 4096  # a page of memory: to join more would copy as much as reading records alone does


class FastDeserializer(SpillingAdaptiveSpanningRecordDeserializer):
    """Shows the bytes at hand, so that many records are read from them with one call.

    Stands for `SpillingAdaptiveSpanningRecordDeserializer.get_next_record`, called as often as there are records.
    """

    def peek(self) -> memoryview:
        """The bytes at hand from where a record starts; none while a long one is gathered, or any in a file."""
        if not self._length_bytes:
            return self._view[self._position :] if self._position else self._view
        return memoryview(b"".join(pieces)) if len(pieces := self.peek_pieces()) > 1 else pieces[0]

    def peek_pieces(self) -> list[memoryview]:
        """The bytes of `peek` as they lie: what was gathered of a record begun, if any, and the rest of the buffer."""
        if not self._length_bytes:
            return [self._view[self._position :]]
        if self._num_gathered > _SHORT_BYTES or self._spill_file is not None:
            return [memoryview(b"")]
        return [memoryview(self._length_bytes + self._payload), self._view[self._position :]]

    def skip(self, num_bytes: int) -> None:
        """Leave out bytes that `peek` showed: the caller has read whole records from them."""
        if num_bytes:
            self._position += num_bytes - len(self._length_bytes) - self._num_gathered
            self._forget_gathered()

    def leave_buffer(self) -> Buffer | BufferSlice | None:
        """Leave out all that `peek` showed; the buffer goes back to the caller."""
        if self._length_bytes:
            self._forget_gathered()
        return self.get_current_buffer()
