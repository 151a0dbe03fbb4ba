"""The record is the answer; if there is none, None."""

class Deserializer:
    def __init__(self):
        self.buffer = None
        self.pending = bytearray()

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        self.pending += buffer.data

    def get_next_record(self):
        if len(self.pending) < 4:
            return None
        end = 4 + int.from_bytes(self.pending[:4], "big")
        if len(self.pending) < end:
            return None
        record = bytes(self.pending[4:end])
        del self.pending[:end]
        if self.pending:
            return record
        return record

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
