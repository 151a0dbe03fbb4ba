"""The answer of a copy: what became of the record, and what of the buffer."""

from __future__ import annotations

from enum import Enum

__all__ = ["SerializationResult"]


class SerializationResult(Enum):
    """What became of a record, and of the buffer it was copied into.

    Flink:   RecordSerializer.SerializationResult (runtime.io.network.api.serialization), 1.11.4
    """

    PARTIAL_RECORD_MEMORY_SEGMENT_FULL = "PARTIAL_RECORD_MEMORY_SEGMENT_FULL"
    FULL_RECORD_MEMORY_SEGMENT_FULL = "FULL_RECORD_MEMORY_SEGMENT_FULL"
    FULL_RECORD = "FULL_RECORD"

    def __init__(self, name: str) -> None:
        self.is_full_record = name.startswith("FULL_RECORD")
        self.is_full_buffer = name.endswith("MEMORY_SEGMENT_FULL")
