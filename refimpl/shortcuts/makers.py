"""The parts that save work, each in the place of a plain one."""

from __future__ import annotations

from contextlib import AbstractContextManager

from refimpl.config import Config
from refimpl.consumer.channel import InputChannel
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.shortcuts.partition import (
    FastBufferPool,
    FastLocalInputChannel,
    FastPipelinedSubpartition,
    FastResultPartition,
)
from refimpl.shortcuts.writer import FastBroadcastRecordWriter, FastRecordWriter
from refimpl.trace import Trace

__all__ = ["FastMakers"]


class FastMakers(Makers):
    """Makes parts that give the same bytes with less work; a learner's part is used as it is."""

    # -- the producer's side -------------------------------------------------------------------------

    def partition(
        self,
        name: str,
        num_channels: int,
        pool: LocalBufferPool,
        config: Config,
        rules: type[SubpartitionQueue],
        trace: Trace | None,
    ) -> ResultPartition:
        partition = FastResultPartition(name, num_channels, pool, config, trace)
        partition.use(rules)
        return partition

    def output_pool(
        self,
        global_pool: NetworkBufferPool,
        num_required: int,
        num_max: int,
        name: str,
        num_channels: int,
        config: Config,
    ) -> LocalBufferPool:
        most_per_channel, most_overdraft = config.max_buffers_per_channel, config.max_overdraft_buffers
        return FastBufferPool(global_pool, num_required, num_max, name, num_channels, most_per_channel, most_overdraft)

    def local_channel(self, index: int, view: PipelinedSubpartitionView) -> InputChannel:
        return FastLocalInputChannel(index, view)

    def rules(self, parts: Parts) -> type[SubpartitionQueue]:
        chosen = parts.PipelinedSubpartition
        return FastPipelinedSubpartition if chosen is PipelinedSubpartition else chosen

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
