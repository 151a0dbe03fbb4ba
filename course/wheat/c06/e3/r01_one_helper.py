"""One line makes the copy for both."""

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput


class CopyingOutput(ChainingOutput):
    def __init__(self, operator, value_type, tag=None):
        ChainingOutput.__init__(self, operator, tag)
        self._copy = value_type.copy

    def _copied(self, record):
        return StreamRecord(self._copy(record.value), timestamp=record.timestamp)

    def collect(self, record):
        if self.tag is not None:
            return
        ChainingOutput.collect(self, self._copied(record))

    def collect_side(self, tag, record):
        if self.tag != tag:
            return
        ChainingOutput.collect_side(self, tag, self._copied(record))
