"""Attributes stand at the top of the class, so that one sees what the object has."""

from refimpl.records import SerializationResult


class Serializer:
    buffer = bytearray()

    def __init__(self):
        self.position = 0

    def serialize_record(self, record):
        self.buffer.clear()
        self.buffer += len(record).to_bytes(4, "big") + record
        self.position = 0

    def copy_to_buffer_builder(self, builder):
        self.position += builder.append_and_commit(bytes(self.buffer), self.position)
        if self.position < len(self.buffer):
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.position = 0

    def prune(self):
        self.buffer.clear()
        self.position = 0
