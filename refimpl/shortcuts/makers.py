"""The parts that save work, each in the place of a plain one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from refimpl.config import Config
from refimpl.consumer.channel import InputChannel
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.exchange.before_credit.staging import StagingConnection
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_credit import PartitionProvider
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.spanning import RecordDeserializer, SpillingAdaptiveSpanningRecordDeserializer
from refimpl.shortcuts.chain import FastChain
from refimpl.shortcuts.channels import (
    FastBufferManager,
    FastInputGate,
    FastPooledInputChannel,
    FastRemoteInputChannel,
    FastUnionInputGate,
)
from refimpl.shortcuts.deserializer import FastDeserializer
from refimpl.shortcuts.frames import FastFrameDecoder, FastStagingDecoder
from refimpl.shortcuts.input import FastNetworkInput, FastSourceInput
from refimpl.shortcuts.partition import (
    FastBufferPool,
    FastLocalInputChannel,
    FastPipelinedSubpartition,
    FastResultPartition,
)
from refimpl.shortcuts.task import FastTask
from refimpl.shortcuts.turns import (
    FastMarkedConnection,
    FastPartitionRequestQueue,
    FastSubpartitionReader,
    FastUncreditedReader,
    FastWaterMarks,
)
from refimpl.shortcuts.writer import FastBroadcastRecordWriter, FastRecordWriter
from refimpl.task.chain import ChainNode, OperatorChain
from refimpl.task.source import SourceInput, SourceReader
from refimpl.task.task import Task, TaskInput
from refimpl.trace import Note, Trace

__all__ = ["FastMakers"]


class FastMakers(Makers):
    """Makes parts that give the same bytes with less work; a learner's part is used as it is."""

    reader = FastSubpartitionReader
    buffer_manager = FastBufferManager
    water_marks = FastWaterMarks

    # -- between two TaskManagers ----------------------------------------------------------------------

    def producer_connection(
        self, partitions: PartitionProvider, config: Config, name: str, trace: Trace | None
    ) -> ProducerConnection:
        queue = FastPartitionRequestQueue(config)
        if config.credit_based:
            return ProducerConnection(partitions, config, name, None, trace, queue, self.reader)
        return FastMarkedConnection(
            partitions, config, name, None, trace, queue, FastUncreditedReader, self.water_marks
        )

    def consumer_connection(self, config: Config, name: str) -> ConsumerConnection:
        if config.credit_based:
            return ConsumerConnection(config, name, FastFrameDecoder)
        return StagingConnection(config, name, FastStagingDecoder)

    # -- the consumer's side -------------------------------------------------------------------------

    def remote_channel(
        self,
        index: int,
        receiver: bytes,
        producer: str,
        exclusive: Sequence[MemorySegment],
        global_pool: NetworkBufferPool,
        floating_pool: LocalBufferPool,
        config: Config,
        note_receive: Note | None,
        note_take: Note | None,
    ) -> ConnectedChannel:
        if not config.credit_based:
            return FastPooledInputChannel(index, receiver, producer, floating_pool, config, note_receive, note_take)
        return FastRemoteInputChannel(
            index,
            receiver,
            producer,
            exclusive,
            global_pool,
            floating_pool,
            config,
            note_receive,
            note_take,
            self.buffer_manager,
        )

    def gate(self, name: str, channels: Sequence[InputChannel], config: Config) -> InputGate:
        return FastInputGate(name, channels, config.flink_version)

    def union_gate(self, name: str, gates: Sequence[InputGate]) -> UnionInputGate:
        return FastUnionInputGate(name, gates)

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

    # -- the task --------------------------------------------------------------------------------------

    def deserializer(self, parts: Parts, config: Config) -> RecordDeserializer:
        make = parts.SpillingAdaptiveSpanningRecordDeserializer
        return FastDeserializer(config) if make is SpillingAdaptiveSpanningRecordDeserializer else make(config)

    def network_input(
        self, gate: InputGate | UnionInputGate, elements: StreamElementSerializer, parts: Parts, config: Config
    ) -> NetworkInput:
        return FastNetworkInput(gate, elements, lambda: self.deserializer(parts, config), config.checkpointing_mode)

    def source_input(self, name: str, subtask: int, reader: SourceReader, config: Config) -> SourceInput:
        return FastSourceInput(name, subtask, reader, config.source_batch)

    def chain(self, nodes: Sequence[ChainNode], config: Config, parts: Parts) -> OperatorChain:
        return FastChain(nodes, config.object_reuse, parts.CopyingChainingOutput)

    def task(
        self,
        name: str,
        chain: OperatorChain,
        source: TaskInput,
        writers: Sequence[RecordWriter],
        buffers_per_step: int,
        trace: Trace | None,
    ) -> Task:
        assert isinstance(chain, FastChain), f"{chain} was made by others"
        assert isinstance(source, FastNetworkInput | FastSourceInput), f"{source} was made by others"
        return FastTask(name, chain, source, writers, buffers_per_step, trace)
