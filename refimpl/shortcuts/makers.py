"""The parts that save work, each in the place of a plain one."""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.config import Config
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import NetworkInput
from refimpl.job.makers import Makers
from refimpl.job.parts import Parts
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.spanning import RecordDeserializer, SpillingAdaptiveSpanningRecordDeserializer
from refimpl.shortcuts.chain import FastChain
from refimpl.shortcuts.deserializer import FastDeserializer
from refimpl.shortcuts.input import FastNetworkInput, FastSourceInput
from refimpl.shortcuts.task import FastTask
from refimpl.task.chain import ChainNode, OperatorChain
from refimpl.task.source import SourceInput, SourceReader
from refimpl.task.task import Task, TaskInput
from refimpl.trace import Trace

__all__ = ["FastMakers"]


class FastMakers(Makers):
    """Makes parts that give the same bytes with less work; a learner's part is used as it is."""

    # -- the task --------------------------------------------------------------------------------------

    def deserializer(self, parts: Parts, config: Config) -> RecordDeserializer:
        make = parts.SpillingAdaptiveSpanningRecordDeserializer
        return FastDeserializer(config) if make is SpillingAdaptiveSpanningRecordDeserializer else make(config)

    def network_input(
        self, gate: InputGate, elements: StreamElementSerializer, parts: Parts, config: Config
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
