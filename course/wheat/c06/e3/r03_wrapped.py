"""No base class: an output inside does the work."""

from __future__ import annotations

from typing import Any

from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput, OutputTag


class CopyingOutput:
    def __init__(self, operator: Any, value_type: Any, tag: OutputTag | None = None) -> None:
        self.inner = ChainingOutput(operator, tag)
        self.copy = value_type.copy

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def collect(self, record: StreamRecord) -> None:
        if self.inner.tag is None:
            value, time = self.copy(record.value), record.timestamp
            self.inner.collect(StreamRecord(value, time))

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        if tag == self.inner.tag:
            value, time = self.copy(record.value), record.timestamp
            self.inner.collect_side(tag, StreamRecord(value, time))
