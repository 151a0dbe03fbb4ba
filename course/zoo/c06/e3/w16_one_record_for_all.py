"""Making records is slow; one will do, filled anew."""

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput


class CopyingOutput(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.value_type = value_type
        self.mine = StreamRecord(None)

    def collect(self, record):
        if self.tag is None:
            self.mine.value = self.value_type.copy(record.value)
            self.mine.timestamp = record.timestamp
            super().collect(self.mine)

    def collect_side(self, tag, record):
        if tag == self.tag:
            super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))
