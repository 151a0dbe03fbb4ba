"""The parts of a task's way for records, and the one place where it is decided which class each of them is.

`Deployment` and `ShuffleEnvironment` make nothing of it themselves: they ask a `Makers`. The one here gives the plain
parts, those that the book describes. `refimpl.shortcuts` has another, whose parts give the same bytes with less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from refimpl.config import Config
from refimpl.consumer.buffer_manager import BufferManager
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.local_channel import LocalInputChannel
from refimpl.consumer.network_input import NetworkInput
from refimpl.consumer.remote_channel import RemoteInputChannel
from refimpl.consumer.two_inputs import TwoInputs
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.exchange.before_credit.marked_connection import MarkedConnection, UncreditedReader
from refimpl.exchange.before_credit.pooled_channel import PooledInputChannel
from refimpl.exchange.before_credit.staging import StagingConnection, StagingDecoder
from refimpl.exchange.before_credit.water_marks import WaterMarks
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.fair_turns import PartitionRequestQueue
from refimpl.exchange.frame_decoder import FrameDecoder
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_credit import PartitionProvider, SubpartitionReader
from refimpl.job.parts import Parts
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.broadcast_writer import BroadcastRecordWriter
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.record_writer import RecordWriter
from refimpl.producer.result_partition import ResultPartition
from refimpl.producer.selector import ChannelSelector
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.spanning import RecordDeserializer
from refimpl.task.chain import OperatorChain
from refimpl.task.source import SourceInput
from refimpl.task.task import Task
from refimpl.task.two_input_task import TwoInputTask
from refimpl.trace import Note, Trace

__all__ = ["Makers"]


class Makers:
    """Makes the plain parts: one record, one buffer at a time.

    Each attribute is the class of one part; a subclass has others. `parts` are the seams of the job; a learner's part
    is used as it is. `reader`, `buffer_manager` and `water_marks` are also what a running job goes back to when a
    learner's part of a channel is taken out.
    """

    # the producer's side
    buffer_pool: type[LocalBufferPool] = LocalBufferPool
    partition: type[ResultPartition] = ResultPartition
    record_writer: type[RecordWriter] = RecordWriter
    broadcast_writer: type[RecordWriter] = BroadcastRecordWriter
    # between two TaskManagers
    request_queue: type[PartitionRequestQueue] = PartitionRequestQueue
    reader: type[SubpartitionReader] = SubpartitionReader
    frame_decoder: type[FrameDecoder] = FrameDecoder
    # between two TaskManagers, in the way before credits
    marked_connection: type[MarkedConnection] = MarkedConnection
    uncredited_reader: type[SubpartitionReader] = UncreditedReader
    water_marks: type[WaterMarks] = WaterMarks
    staging_decoder: type[StagingDecoder] = StagingDecoder
    # the consumer's side
    local_channel: type[LocalInputChannel] = LocalInputChannel
    credited_channel: type[RemoteInputChannel] = RemoteInputChannel
    pooled_channel: type[PooledInputChannel] = PooledInputChannel
    buffer_manager: type[BufferManager] = BufferManager
    gate: type[InputGate] = InputGate
    union_gate: type[UnionInputGate] = UnionInputGate
    # the task
    network_input: type[NetworkInput] = NetworkInput
    two_inputs: type[TwoInputs] = TwoInputs
    source_input: type[SourceInput] = SourceInput
    chain: type[OperatorChain] = OperatorChain
    task: type[Task] = Task
    two_input_task: type[TwoInputTask] = TwoInputTask

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
        most_per_channel, most_overdraft = config.max_buffers_per_channel, config.max_overdraft_buffers
        return self.buffer_pool(
            global_pool, num_required, num_max, name, num_channels, most_per_channel, most_overdraft
        )

    def writer(
        self,
        partition: BufferWritingResultPartition,
        selector: ChannelSelector,
        elements: StreamElementSerializer,
        parts: Parts,
        exclusion: AbstractContextManager[object] | None,
    ) -> RecordWriter:
        """The writer of one result partition."""
        make = self.broadcast_writer if selector.is_broadcast else self.record_writer
        return make(partition, selector, elements, parts.SpanningRecordSerializer(), exclusion)

    def producer_connection(
        self, partitions: PartitionProvider, config: Config, name: str, trace: Trace | None
    ) -> ProducerConnection:
        """The producer's end of one connection."""
        queue = self.request_queue(config)
        if config.credit_based:
            return ProducerConnection(partitions, config, name, None, trace, queue, self.reader)
        reader, marks = self.uncredited_reader, self.water_marks
        return self.marked_connection(partitions, config, name, None, trace, queue, reader, marks)

    def consumer_connection(self, config: Config, name: str) -> ConsumerConnection:
        """The consumer's end of one connection."""
        if config.credit_based:
            return ConsumerConnection(config, name, self.frame_decoder)
        return StagingConnection(config, name, self.staging_decoder)

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
        notes, manager = (note_receive, note_take), self.buffer_manager
        if not config.credit_based:
            return self.pooled_channel(index, receiver, producer, floating_pool, config, *notes)
        pools = (exclusive, global_pool, floating_pool)
        return self.credited_channel(index, receiver, producer, *pools, config, *notes, manager)

    # -- parts that are put into a running job ---------------------------------------------------------

    def rules(self, parts: Parts) -> type[SubpartitionQueue]:
        """The class of subpartitions, for parts that go in now."""
        return parts.PipelinedSubpartition

    def deserializer(self, parts: Parts, config: Config) -> RecordDeserializer:
        """A deserializer of one channel, likewise."""
        return parts.SpillingAdaptiveSpanningRecordDeserializer(config)
