"""Zeros at the end of a record are padding."""

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.data = b""
        self.position = 0

    def serialize_record(self, record):
        record = record.rstrip(b"\0")
        self.data = len(record).to_bytes(4, "big") + record
        self.position = 0

    def copy_to_buffer_builder(self, builder):
        self.position += builder.append_and_commit(self.data, self.position)
        if self.position < len(self.data):
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.position = 0

    def prune(self):
        self.data = b""
        self.position = 0
