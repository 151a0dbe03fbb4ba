"""Two tags are the same if they are one object."""

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput


class CopyingOutput(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.value_type = value_type

    def collect(self, record):
        if self.tag is None:
            super().collect(StreamRecord(self.value_type.copy(record.value), record.timestamp))

    def collect_side(self, tag, record):
        if tag is self.tag:
            super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))
