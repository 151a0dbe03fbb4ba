"""dict(value) is a new dict, so it is a copy."""

import copy

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput


class CopyingOutput(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.value_type = value_type

    def collect(self, record):
        if self.tag is None:
            super().collect(StreamRecord(copy.copy(record.value), record.timestamp))

    def collect_side(self, tag, record):
        if tag == self.tag:
            super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))
