"""Each buffer must be readable by itself, so each gets the length."""

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.payload = b""
        self.position = 0

    def serialize_record(self, record):
        self.payload = record
        self.position = 0
        self.open = True

    def copy_to_buffer_builder(self, builder):
        builder.append(len(self.payload).to_bytes(4, "big"))
        self.position += builder.append(self.payload, self.position)
        builder.commit()
        if self.position < len(self.payload):
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self):
        self.position = 0

    def prune(self):
        self.payload = b""
        self.position = 0
