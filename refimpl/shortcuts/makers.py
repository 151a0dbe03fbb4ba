"""The parts that save work, each in the place of a plain one."""

from __future__ import annotations

from contextlib import AbstractContextManager

from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.shortcuts.writer import FastBroadcastRecordWriter, FastRecordWriter

__all__ = ["FastMakers"]


class FastMakers(Makers):
    """Makes parts that give the same bytes with less work; a learner's part is used as it is."""

    def writer(
        self,
        partition: ResultPartition,
        selector: ChannelSelector,
        elements: StreamElementSerializer,
        parts: Parts,
        exclusion: AbstractContextManager[object] | None,
    ) -> RecordWriter:
        make = FastBroadcastRecordWriter if selector.is_broadcast else FastRecordWriter
        return make(partition, selector, elements, parts.SpanningRecordSerializer(), exclusion)
