"""A base class that keeps bytes, a dataclass below it, and the protocol of the engine."""

import struct
from dataclasses import dataclass, field

from refimpl.memory import BufferBuilder
from refimpl.records import RecordSerializer, SerializationResult


@dataclass
class Pending:
    data: bytearray = field(default_factory=bytearray)
    position: int = 0

    @property
    def has_serialized_data(self) -> bool:
        return self.position < len(self.data)

    def reset(self) -> None:
        self.position = 0

    def prune(self) -> None:
        self.data, self.position = bytearray(), 0


class Mine(Pending, RecordSerializer):
    def serialize_record(self, record: bytes) -> None:
        self.prune()
        self.data.extend(struct.pack("!I", len(record)))
        self.data.extend(record)

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        end = min(self.position + builder.room, len(self.data))
        builder.append(memoryview(self.data)[self.position : end])
        builder.commit()
        self.position = end
        if self.has_serialized_data:
            return SerializationResult["PARTIAL_RECORD_MEMORY_SEGMENT_FULL"]
        return SerializationResult("FULL_RECORD" + "_MEMORY_SEGMENT_FULL" * builder.is_full)
