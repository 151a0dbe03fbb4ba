"""A cut length is a number too: what has come of it is the length."""

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.view = memoryview(b"")
        self.at = 0
        self.header = bytearray()
        self.payload = bytearray()
        self.length = None

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        self.view = buffer.data
        self.at = 0

    def get_next_record(self):
        self.header += self.take(4 - len(self.header))
        if not self.header:
            return R.PARTIAL_RECORD, None
        self.length = int.from_bytes(self.header, "big")
        self.payload += self.take(self.length - len(self.payload))
        if len(self.payload) < self.length:
            return R.PARTIAL_RECORD, None
        record = bytes(self.payload)
        self.header.clear()
        self.payload.clear()
        if self.at < len(self.view):
            return R.INTERMEDIATE_RECORD_FROM_BUFFER, record
        return R.LAST_RECORD_FROM_BUFFER, record

    def take(self, number):
        piece = self.view[self.at : self.at + number]
        self.at += len(piece)
        return piece

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
