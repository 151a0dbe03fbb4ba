"""Copy first, then see where it goes."""

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
        super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))
