"""What the bytes of a buffer are, and how each version of Flink calls that and writes it on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.config import FlinkVersion

__all__ = ["DataType", "DataTypeCodes"]


@dataclass(frozen=True, slots=True)
class DataTypeCodes:
    """Names and codes of one data type; the code is the byte a BufferResponse carries on the wire.

    `None` marks a kind that version does not have.
    """

    flink_name_1_11: str | None
    code_1_11: int | None
    flink_name_2_2: str
    code_2_2: int


class DataType(Enum):
    """User data, or an event of a certain kind.

    Flink:   Buffer.DataType (runtime.io.network.buffer), 1.11.4 and 2.2.1
    """

    NONE = DataTypeCodes(None, None, "NONE", 0)
    DATA = DataTypeCodes("DATA_BUFFER", 0, "DATA_BUFFER", 1)
    EVENT = DataTypeCodes("EVENT_BUFFER", 1, "EVENT_BUFFER", 2)
    PRIORITY_EVENT = DataTypeCodes(None, None, "PRIORITIZED_EVENT_BUFFER", 3)
    ALIGNED_BARRIER = DataTypeCodes("ALIGNED_EXACTLY_ONCE_CHECKPOINT_BARRIER", 2, "ALIGNED_CHECKPOINT_BARRIER", 4)
    TIMEOUTABLE_BARRIER = DataTypeCodes(None, None, "TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER", 5)
    RECOVERY_COMPLETION = DataTypeCodes(None, None, "RECOVERY_COMPLETION", 6)
    END_OF_SEGMENT = DataTypeCodes(None, None, "END_OF_SEGMENT", 7)
    DATA_WITH_CLEAR_END = DataTypeCodes(None, None, "DATA_BUFFER_WITH_CLEAR_END", 8)
    END_OF_DATA = DataTypeCodes(None, None, "END_OF_DATA", 9)
    END_OF_PARTITION = DataTypeCodes(None, None, "END_OF_PARTITION", 10)
    RECOVERY_METADATA = DataTypeCodes(None, None, "RECOVERY_METADATA", 11)
    ALIGNED_WATERMARK = DataTypeCodes(None, None, "ALIGNED_WATERMARK_EVENT", 12)
    UNALIGNED_WATERMARK = DataTypeCodes(None, None, "UNALIGNED_WATERMARK_EVENT", 13)

    def __init__(self, _codes: DataTypeCodes) -> None:
        self.is_buffer = self._name_ in ("DATA", "DATA_WITH_CLEAR_END")
        """User data: it costs credit and counts in the backlog. Events do neither."""
        self.is_event = self._name_ != "NONE" and not self.is_buffer
        self.blocks_upstream = self._name_ in (
            "ALIGNED_BARRIER",
            "TIMEOUTABLE_BARRIER",
            "RECOVERY_COMPLETION",
            "ALIGNED_WATERMARK",
        )
        """After this the producer stops the subpartition until the consumer says resume."""

    def flink_name(self, version: FlinkVersion) -> str | None:
        codes: DataTypeCodes = self.value
        return codes.flink_name_1_11 if version is FlinkVersion.V1_11 else codes.flink_name_2_2

    def code(self, version: FlinkVersion) -> int | None:
        """The byte on the wire, or `None` where that version has no such kind."""
        codes: DataTypeCodes = self.value
        return codes.code_1_11 if version is FlinkVersion.V1_11 else codes.code_2_2

    @property
    def has_priority(self) -> bool:
        return self is DataType.PRIORITY_EVENT

    @property
    def requires_announcement(self) -> bool:
        return self is DataType.TIMEOUTABLE_BARRIER

    @property
    def is_partial_record_possible(self) -> bool:
        """Whether a record may be cut at the end of such a buffer."""
        return self is DataType.DATA
