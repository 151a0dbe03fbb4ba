"""The first piece stays where it is; only the last one must be copied."""

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
        end = 4 + int.from_bytes(data[:4], "big")
        if len(data) < max(4, end):
            return R.PARTIAL_RECORD, None
        self.pieces = [data[end:]] if end < len(data) else []
        return (R.INTERMEDIATE_RECORD_FROM_BUFFER if self.pieces else R.LAST_RECORD_FROM_BUFFER), data[4:end]

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
