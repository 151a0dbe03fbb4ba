"""The kinds of results: whether a consumer reads while the producer writes, and who waits for whom then."""

from __future__ import annotations

from enum import Enum

__all__ = ["ResultPartitionType"]


class ResultPartitionType(Enum):
    """A kind of result, by four answers: read while it is written; the producer waits for the consumer; the pool is
    bounded; it stays when it has been read.

    "Bounded" is said of the buffers here, and never of the stream.

    Flink:   ResultPartitionType (runtime.io.network.partition), 1.11.4
    """

    BLOCKING = (False, False, False, False)
    BLOCKING_PERSISTENT = (False, False, False, True)
    PIPELINED = (True, True, False, False)
    PIPELINED_BOUNDED = (True, True, True, False)

    def __init__(self, is_pipelined: bool, has_back_pressure: bool, is_bounded: bool, is_persistent: bool) -> None:
        self.is_pipelined = is_pipelined
        self.has_back_pressure = has_back_pressure
        self.is_bounded = is_bounded
        self.is_persistent = is_persistent

    @property
    def is_blocking(self) -> bool:
        return not self.is_pipelined
