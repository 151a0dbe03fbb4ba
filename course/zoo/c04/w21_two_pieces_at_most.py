"""A record that does not fit a buffer goes over two."""

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.view = memoryview(b"")
        self.at = 0
        self.begun = bytearray()

    def set_next_buffer(self, buffer):
        self.buffer, self.view, self.at = buffer, buffer.data, 0

    def get_next_record(self):
        return self.joined() if self.begun else self.in_place()

    def in_place(self):
        left = self.view[self.at :]
        if len(left) >= 4:
            length = int.from_bytes(left[:4], "big")
            if len(left) >= 4 + length:
                self.at += 4 + length
                return self.result(), left[4 : 4 + length]
        self.begun += left
        self.at = len(self.view)
        return R.PARTIAL_RECORD, None

    def joined(self):
        if not self.fill(4):
            return R.PARTIAL_RECORD, None
        self.fill(4 + int.from_bytes(self.begun[:4], "big"))
        record = bytes(self.begun[4:])
        self.begun = bytearray()
        return self.result(), record

    def fill(self, size):
        piece = self.view[self.at : self.at + max(0, size - len(self.begun))]
        self.begun += piece
        self.at += len(piece)
        return len(self.begun) >= size

    def result(self):
        if self.at < len(self.view):
            return R.INTERMEDIATE_RECORD_FROM_BUFFER
        return R.LAST_RECORD_FROM_BUFFER

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
