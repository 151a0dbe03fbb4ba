"""What does not fit into the buffer is not sent; append has done its work."""

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.data = b""
        self.position = 0

    def serialize_record(self, record):
        self.data = len(record).to_bytes(4, "big") + record
        self.position = 0

    def copy_to_buffer_builder(self, builder):
        builder.append_and_commit(self.data, self.position)
        fits = self.position + len(self.data) <= builder.capacity
        self.position = len(self.data)
        if not fits:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.position = 0

    def prune(self):
        self.data = b""
        self.position = 0
