"""The parts that save work, each in the place of a plain one."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
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
from refimpl.shortcuts.input import FastNetworkInput, FastSourceInput, FastTwoInputs
from refimpl.shortcuts.partition import (
    FastBufferPool,
    FastLocalInputChannel,
    FastPipelinedSubpartition,
    FastResultPartition,
)
from refimpl.shortcuts.task import FastTask, FastTwoInputTask
from refimpl.shortcuts.turns import (
    FastMarkedConnection,
    FastPartitionRequestQueue,
    FastSubpartitionReader,
    FastUncreditedReader,
    FastWaterMarks,
)
from refimpl.shortcuts.writer import FastBroadcastRecordWriter, FastRecordWriter

__all__ = ["FastMakers"]


class FastMakers(Makers):
    """Makes parts that give the same bytes with less work; a learner's part is used as it is."""

    buffer_pool = FastBufferPool
    partition = FastResultPartition
    record_writer = FastRecordWriter
    broadcast_writer = FastBroadcastRecordWriter
    request_queue = FastPartitionRequestQueue
    reader = FastSubpartitionReader
    frame_decoder = FastFrameDecoder
    marked_connection = FastMarkedConnection
    uncredited_reader = FastUncreditedReader
    water_marks = FastWaterMarks
    staging_decoder = FastStagingDecoder
    local_channel = FastLocalInputChannel
    credited_channel = FastRemoteInputChannel
    pooled_channel = FastPooledInputChannel
    buffer_manager = FastBufferManager
    gate = FastInputGate
    union_gate = FastUnionInputGate
    network_input = FastNetworkInput
    two_inputs = FastTwoInputs
    source_input = FastSourceInput
    chain = FastChain
    task = FastTask
    two_input_task = FastTwoInputTask

    def rules(self, parts: Parts) -> type[SubpartitionQueue]:
        chosen = parts.PipelinedSubpartition
        return FastPipelinedSubpartition if chosen is PipelinedSubpartition else chosen

    def deserializer(self, parts: Parts, config: Config) -> RecordDeserializer:
        make = parts.SpillingAdaptiveSpanningRecordDeserializer
        return FastDeserializer(config) if make is SpillingAdaptiveSpanningRecordDeserializer else make(config)
