"""A generator stands where the reading stopped."""

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.reading = self.read()
        next(self.reading)

    def set_next_buffer(self, buffer):
        self.buffer = buffer

    def get_next_record(self):
        return next(self.reading)

    def read(self):
        piece = yield
        held = b""
        piece = bytes(self.buffer.data)
        while True:
            held += piece
            while len(held) >= 4 and len(held) >= 4 + (length := int.from_bytes(held[:4], "big")):
                record, held = held[4 : 4 + length], held[4 + length :]
                if not held:
                    yield R.LAST_RECORD_FROM_BUFFER, record
                    break
                yield R.INTERMEDIATE_RECORD_FROM_BUFFER, record
            else:
                yield R.PARTIAL_RECORD, None
            piece = bytes(self.buffer.data)

    def get_current_buffer(self):
        buffer, self.buffer = self.buffer, None
        return buffer
