"""A deque of chunks, consumed from the left."""

from collections import deque

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self._record = None
        self._chunks = deque()

    def serialize_record(self, record):
        self._record = record
        self.reset()

    def copy_to_buffer_builder(self, builder):
        while self._chunks and builder.room:
            chunk = self._chunks.popleft()
            copied = builder.append(chunk)
            if copied < len(chunk):
                self._chunks.appendleft(chunk[copied:])
        builder.commit()
        if self._chunks:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD if builder.room else SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL

    def reset(self):
        self._chunks.clear()
        if self._record is not None:
            self._chunks.append(len(self._record).to_bytes(4, "big"))
            if self._record:
                self._chunks.append(self._record)

    def prune(self):
        self._record = None
        self._chunks.clear()
