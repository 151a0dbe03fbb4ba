"""A memoryview of the first piece is as good as a copy, and cheaper."""

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.pieces = []

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        self.pieces.append(buffer.data)

    def get_next_record(self):
        data = b"".join(self.pieces)
        if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            return R.PARTIAL_RECORD, None
        end = 4 + int.from_bytes(data[:4], "big")
        self.pieces = [memoryview(data)[end:]] if end < len(data) else []
        return (R.INTERMEDIATE_RECORD_FROM_BUFFER if self.pieces else R.LAST_RECORD_FROM_BUFFER), data[4:end]

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
