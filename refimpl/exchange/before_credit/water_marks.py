"""High and low water: how much a producer hands out to a transport that does not write it away.

No message says "stop". Above the high mark nothing more is handed out, so the rest stays in the subpartitions, where
the producer's pool feels it.
"""

from __future__ import annotations

from refimpl.config import Config
from refimpl.errors import LocalUsageError

__all__ = ["WaterMarks"]


class WaterMarks:
    """How many bytes may be handed out to a transport and not be written yet.

    Above `high_bytes` nothing more is handed out, until less than `low_bytes` are left. The gap keeps
    the producer from being woken for every few bytes; that the low mark is not 0 keeps the transport
    busy meanwhile. What is handed out is a whole frame, so the last one may go beyond the mark. To
    stop is the caller's: a frame that comes all the same is under way, and counted.

    Flink:   NettyServer, WRITE_BUFFER_LOW_WATER_MARK and _HIGH_WATER_MARK, 1.4 to 1.10
    Differs: counts the bytes of frames alone; Netty adds its own cost of each message. 1.5 to 1.10
             have the marks with credits too; here, as in 1.11, credit is limit enough.
    """

    def __init__(self, low_bytes: int, high_bytes: int) -> None:
        self.low_bytes = low_bytes
        self.high_bytes = high_bytes
        self.num_handed_out = 0
        self.num_written = 0
        self.is_writable = True

    def __repr__(self) -> str:
        return f"WaterMarks({self.num_pending} B pending, {self.low_bytes} to {self.high_bytes})"

    @classmethod
    def of(cls, config: Config) -> WaterMarks:
        """One segment and two, as Flink sets them."""
        return cls(config.segment_size_bytes + 1, 2 * config.segment_size_bytes)

    @property
    def num_pending(self) -> int:
        """Bytes handed out and not written."""
        return self.num_handed_out - self.num_written

    def hand_out(self, num_bytes: int) -> None:
        """Count a frame that the transport is given, writable or not: above the high mark no more is."""
        self.num_handed_out += num_bytes
        if self.num_handed_out - self.num_written > self.high_bytes:
            self.is_writable = False

    def confirm(self, num_bytes: int) -> None:
        """The transport says how many bytes more it has written.

        Raises:
            LocalUsageError: so many were not pending.
        """
        if not 0 <= num_bytes <= self.num_pending:
            raise LocalUsageError(f"{num_bytes} B were written, {self.num_pending} were handed out")
        self.written(num_bytes)

    def written(self, num_bytes: int) -> None:
        """Count bytes that the transport has written: below the low mark more may be handed out."""
        self.num_written += num_bytes
        if self.num_handed_out - self.num_written < self.low_bytes:
            self.is_writable = True
