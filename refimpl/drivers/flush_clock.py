"""When to flush, for drivers whose tasks write while the clock is not looked at.

The simulation sees each write, and asks an output for its deadline. Threads and loops would have to ask after each
record. They look once per buffer timeout instead, and tell the outputs since when they have not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from refimpl.producer.buffer_writing import BufferWritingResultPartition

__all__ = ["FlushClock"]


class FlushClock:
    """Calls `on_timeout` of all `partitions` once per buffer timeout; never by time if `timeout_ms` is not above 0.

    `on_flush` is then told how many ms too late that was. `num_flushes` counts. To look whether a flush is due costs
    the same however many partitions there are.

    Flink:   RecordWriter.OutputFlusher, 1.11.4
    Differs: one for all outputs of a TaskManager; Flink has a thread for each.
    """

    def __init__(
        self,
        partitions: Sequence[BufferWritingResultPartition],
        timeout_ms: int,
        on_flush: Callable[[float], None] = lambda late_ms: None,
    ) -> None:
        self.num_flushes = 0
        self._on_flush = on_flush
        self._partitions = partitions
        self.set_timeout(timeout_ms)

    @property
    def due_s(self) -> float:
        """When the next flush is due, on `time.monotonic`; infinity if never."""
        return self._due_ms / 1000

    @property
    def is_due(self) -> bool:
        """Whether the time has come; any thread may ask."""
        return time.monotonic() * 1000 >= self._due_ms

    def set_timeout(self, timeout_ms: int) -> None:
        """Another timeout from now on; that of the partitions is set already."""
        self._timeout_ms = timeout_ms
        self._begin(time.monotonic() * 1000)

    def begin_anew(self, rest_s: float) -> None:
        """Count the time to the next flush from the end of a rest that begins now.

        The task that rests writes nothing. Bytes that others write meanwhile wait longer, by the rest at most.
        """
        self._begin((time.monotonic() + rest_s) * 1000)

    def flush_if_due(self) -> bool:
        """Flush if the time has come; times that were missed are one flush. Whether it had come."""
        now_ms = time.monotonic() * 1000
        late_ms = now_ms - self._due_ms
        if late_ms < 0:
            return False
        since_ms = self._since_ms
        self._begin(self._due_ms + self._timeout_ms * (late_ms // self._timeout_ms))
        self.num_flushes += 1
        for partition in self._partitions:
            partition.on_timeout(now_ms, since_ms)
        self._on_flush(late_ms)
        return True

    def _begin(self, since_ms: float) -> None:
        self._since_ms = since_ms
        self._due_ms = since_ms + self._timeout_ms if self._timeout_ms > 0 else math.inf
