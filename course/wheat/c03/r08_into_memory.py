"""Written straight into the memory of the builder, which is told afterwards."""

import numpy as np

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.data = np.zeros(0, dtype=np.uint8)
        self.position = 0

    def serialize_record(self, record):
        header = np.frombuffer(len(record).to_bytes(4, "big"), dtype=np.uint8)
        self.data = np.concatenate([header, np.frombuffer(record, dtype=np.uint8)])
        self.position = 0

    def copy_to_buffer_builder(self, builder):
        count = min(builder.room, self.data.size - self.position)
        start = builder.written_bytes
        builder.memory[start : start + count] = self.data[self.position : self.position + count].tobytes()
        builder.advance(count)
        self.position += count
        if self.position < self.data.size:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.position = 0

    def prune(self):
        self.data, self.position = np.zeros(0, dtype=np.uint8), 0
