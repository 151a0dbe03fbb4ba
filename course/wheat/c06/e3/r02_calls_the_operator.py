"""Hands on by itself, without the base class."""

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput


class CopyingOutput(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        super().__init__(operator, tag)
        self.type = value_type

    def send(self, record):
        fresh = StreamRecord(None, record.timestamp)
        fresh.value = self.type.copy(record.value)
        self.operator.process(fresh)

    def collect(self, record):
        if self.tag is None:
            self.send(record)

    def collect_side(self, tag, record):
        if self.tag is not None and tag.name == self.tag.name:
            self.send(record)
