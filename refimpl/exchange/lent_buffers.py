"""The bytes that a transport has been given, and the buffers that stay lent until they are written."""

from __future__ import annotations

from collections import deque

from refimpl.errors import LocalUsageError
from refimpl.memory.buffer import BufferSlice

__all__ = ["LentBuffers"]


class LentBuffers:
    """Counts bytes handed out and written, and gives back each buffer with the last byte of its frame.

    Ownership: a buffer is lent from `lend` on, and recycled by the `confirm` that reaches its end.
    """

    def __init__(self) -> None:
        self.num_handed_out = 0
        self.num_written = 0
        self._lent: deque[tuple[int, BufferSlice]] = deque()  # each with where its frame ends

    def __repr__(self) -> str:
        return f"LentBuffers({len(self._lent)} buffers, {self.num_pending} B pending)"

    @property
    def num_pending(self) -> int:
        """Bytes handed out and not written."""
        return self.num_handed_out - self.num_written

    @property
    def buffers(self) -> tuple[BufferSlice, ...]:
        """The buffers of frames that are not written to their ends."""
        return tuple(piece for _, piece in self._lent)

    def hand_out(self, num_bytes: int) -> None:
        """Count a frame that is the transport's now."""
        self.num_handed_out += num_bytes

    def lend(self, num_bytes: int, buffer: BufferSlice) -> None:
        """Count a frame of `num_bytes` bytes that needs `buffer` until it is written."""
        self.num_handed_out += num_bytes
        self._lent.append((self.num_handed_out, buffer))

    def confirm(self, num_bytes: int) -> None:
        """The transport has written `num_bytes` bytes more.

        Raises:
            LocalUsageError: fewer bytes have been handed out.
        """
        num_written = self.num_written + num_bytes
        if not self.num_written <= num_written <= self.num_handed_out:
            raise LocalUsageError(f"{num_bytes} B were written, {self.num_pending} were handed out")
        self.num_written = num_written
        lent = self._lent
        while lent and lent[0][0] <= num_written:
            lent.popleft()[1].recycle()
