"""A state machine that takes single bytes, with a dataclass and a base class."""

from dataclasses import dataclass, field
from struct import unpack

from refimpl.records import DeserializationResult as R


@dataclass
class Record:
    missing: int = 4
    has_length: bool = False
    data: list = field(default_factory=list)


class Base:
    buffer = None

    def get_current_buffer(self):
        try:
            return self.buffer
        finally:
            self.buffer = None


class Deserializer(Base):
    """One byte after the other through two states: length, payload."""

    def __init__(self):
        self.bytes = iter(())
        self.left = 0
        self.record = Record()

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        self.bytes = iter(bytes(buffer.data))
        self.left = len(buffer.data)

    def get_next_record(self):
        record = self.record
        while True:
            while record.missing and self.left:
                record.data.append(next(self.bytes))
                record.missing -= 1
                self.left -= 1
            if record.missing:
                return R.PARTIAL_RECORD, None
            if record.has_length:
                break
            (record.missing,) = unpack(">i", bytes(record.data))
            record.data, record.has_length = [], True
        self.record = Record()
        more = R.INTERMEDIATE_RECORD_FROM_BUFFER if self.left else R.LAST_RECORD_FROM_BUFFER
        return more, bytearray(record.data)
