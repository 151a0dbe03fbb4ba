"""A memoryview of what is left, cut shorter with each copy."""

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.whole = memoryview(b"")
        self.left = self.whole

    def serialize_record(self, record):
        self.whole = memoryview(b"".join((len(record).to_bytes(4, "big"), record)))
        self.left = self.whole

    def copy_to_buffer_builder(self, builder):
        self.left = self.left[builder.append_and_commit(self.left) :]
        if len(self.left):
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.room == 0:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.left = self.whole

    def prune(self):
        self.whole = self.left = memoryview(b"")
