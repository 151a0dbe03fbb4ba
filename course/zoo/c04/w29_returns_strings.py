"""The name of the result says enough."""

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.pending = bytearray()

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        self.pending += buffer.data

    def get_next_record(self):
        if len(self.pending) < 4:
            return R.PARTIAL_RECORD, None
        end = 4 + int.from_bytes(self.pending[:4], "big")
        if len(self.pending) < end:
            return R.PARTIAL_RECORD, None
        record = bytes(self.pending[4:end])
        del self.pending[:end]
        if self.pending:
            return "INTERMEDIATE_RECORD_FROM_BUFFER", record
        return "LAST_RECORD_FROM_BUFFER", record

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
