"""The parts of a task's way for records, and the one place where it is decided which class each of them is.

`Deployment` and `ShuffleEnvironment` make nothing of it themselves: they ask a `Makers`. The one here gives the plain
parts, those that the book describes. `refimpl.shortcuts` has another, whose parts give the same bytes with less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from refimpl.config import Config
from refimpl.consumer.buffer_manager import BufferManager
from refimpl.consumer.channel import InputChannel
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.exchange.before_credit.marked_connection import MarkedConnection
from refimpl.exchange.before_credit.pooled_channel import PooledInputChannel
from refimpl.exchange.before_credit.staging import StagingConnection
from refimpl.exchange.before_credit.water_marks import WaterMarks
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_credit import PartitionProvider, SubpartitionReader
from refimpl.job.parts import Parts
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.spanning import RecordDeserializer
from refimpl.task.chain import ChainNode, OperatorChain
from refimpl.task.source import SourceInput, SourceReader
from refimpl.task.task import Task, TaskInput
from refimpl.trace import Note, Trace

__all__ = ["Makers"]


class Makers:
    """Makes the plain parts: one record, one buffer at a time.

    `parts` are the seams of the job; a learner's part is used as it is. `reader`, `buffer_manager` and `water_marks`
    are the classes that a running job goes back to when a learner's part of a channel is taken out.
    """

    reader: type[SubpartitionReader] = SubpartitionReader
    buffer_manager: type[BufferManager] = BufferManager
    water_marks: type[WaterMarks] = WaterMarks

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
        """The output of one subtask for one edge, its subpartitions by `rules`."""
        partition = ResultPartition(name, num_channels, pool, config, trace)
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
        """The pool of one result partition."""
        return LocalBufferPool(
            global_pool,
            num_required,
            num_max,
            name,
            num_channels,
            config.max_buffers_per_channel,
            config.max_overdraft_buffers,
        )

    def writer(
        self,
        partition: ResultPartition,
        selector: ChannelSelector,
        elements: StreamElementSerializer,
        parts: Parts,
        exclusion: AbstractContextManager[object] | None,
    ) -> RecordWriter:
        """The writer of one result partition."""
        make = BroadcastRecordWriter if selector.is_broadcast else RecordWriter
        return make(partition, selector, elements, parts.SpanningRecordSerializer(), exclusion)

    # -- between two TaskManagers ----------------------------------------------------------------------

    def producer_connection(
        self, partitions: PartitionProvider, config: Config, name: str, trace: Trace | None
    ) -> ProducerConnection:
        """The producer's end of one connection."""
        make = ProducerConnection if config.credit_based else MarkedConnection
        return make(partitions, config, name, trace=trace)

    def consumer_connection(self, config: Config, name: str) -> ConsumerConnection:
        """The consumer's end of one connection."""
        make = ConsumerConnection if config.credit_based else StagingConnection
        return make(config, name)

    # -- the consumer's side -------------------------------------------------------------------------

    def local_channel(self, index: int, view: PipelinedSubpartitionView) -> InputChannel:
        """The channel to a subpartition of this process."""
        return LocalInputChannel(index, view)

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
        """The channel to a subpartition elsewhere; `exclusive` are its own segments, none in the way before credits."""
        if not config.credit_based:
            return PooledInputChannel(index, receiver, producer, floating_pool, config, note_receive, note_take)
        return RemoteInputChannel(
            index,
            receiver,
            producer,
            exclusive,
            global_pool,
            floating_pool,
            config,
            note_receive,
            note_take,
        )

    def gate(self, name: str, channels: Sequence[InputChannel], config: Config) -> InputGate:
        """The channels of one input, in one line."""
        return InputGate(name, channels, config.flink_version)

    def union_gate(self, name: str, gates: Sequence[InputGate]) -> UnionInputGate:
        """The gates of a task that reads several exchanges, read as one."""
        return UnionInputGate(name, gates)

    def network_input(
        self, gate: InputGate | UnionInputGate, elements: StreamElementSerializer, parts: Parts, config: Config
    ) -> NetworkInput:
        """What reads elements from a gate."""
        return NetworkInput(gate, elements, lambda: self.deserializer(parts, config), config.checkpointing_mode)

    # -- the task --------------------------------------------------------------------------------------

    def source_input(self, name: str, subtask: int, reader: SourceReader, config: Config) -> SourceInput:
        """What reads elements from the user's reader."""
        return SourceInput(name, subtask, reader, config.source_batch)

    def chain(self, nodes: Sequence[ChainNode], config: Config, parts: Parts) -> OperatorChain:
        """The operators of one task, connected."""
        return OperatorChain(nodes, config.object_reuse, parts.CopyingChainingOutput)

    def task(
        self,
        name: str,
        chain: OperatorChain,
        source: TaskInput,
        writers: Sequence[RecordWriter],
        buffers_per_step: int,
        trace: Trace | None,
    ) -> Task:
        """One subtask."""
        return Task(name, chain, source, writers, buffers_per_step, trace)

    # -- parts that are put into a running job ---------------------------------------------------------

    def rules(self, parts: Parts) -> type[SubpartitionQueue]:
        """The class of subpartitions, for parts that go in now."""
        return parts.PipelinedSubpartition

    def deserializer(self, parts: Parts, config: Config) -> RecordDeserializer:
        """A deserializer of one channel, likewise."""
        return parts.SpillingAdaptiveSpanningRecordDeserializer(config)
