"""Operators that share a task: calling the next one is a function call, not a network.

The chain is a tree. It is built from its leaves, since an operator must know its output before it
is set up. Records enter at the head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from refimpl.errors import USER_CODE_RAISES, speaks_for_itself
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import (
    LatencyMarker,
    StreamElement,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.types import TypeSerializer
from refimpl.task.co_operators import TwoInputOperator
from refimpl.task.collectors import (
    BroadcastingOutputCollector,
    CopyingBroadcastingOutputCollector,
    CopyingDirectedOutput,
    DirectedOutput,
)
from refimpl.task.latency import LatencySnapshot
from refimpl.task.operators import Operator, OperatorContext
from refimpl.task.outputs import (
    ChainingOutput,
    CopyingChainingOutput,
    CountingOutput,
    Output,
    OutputTag,
    RecordWriterOutput,
    process,
)
from refimpl.task.time_service import ProcessingTimeService

__all__ = ["ChainEdge", "ChainNode", "OperatorChain"]


@dataclass(frozen=True, slots=True)
class ChainEdge:
    """Where an operator's records go: to `target` in this chain, or into `writer`.

    `tag` makes it a side output; `names` are what a split must select for it.
    """

    target: int | None = None
    writer: RecordWriter | None = None
    tag: OutputTag | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChainNode:
    """One operator of a chain, with the type of its results and where they go."""

    id: int
    operator: Operator
    context: OperatorContext
    value_type: TypeSerializer
    edges: Sequence[ChainEdge]
    select: Callable[[object], Iterable[str]] | None = None


class _Nowhere:
    """The output of an operator nobody reads."""

    def collect(self, record: StreamRecord) -> None: ...

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None: ...

    def emit_watermark(self, watermark: Watermark) -> None: ...

    def emit_status(self, status: StreamStatus) -> None: ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...


class OperatorChain:
    """The operators of one task, set up and connected; `nodes` starts with the head.

    Flink:   OperatorChain (streaming.runtime.tasks), 1.11.4
    """

    def __init__(
        self,
        nodes: Sequence[ChainNode],
        object_reuse: bool,
        copying_output: Callable[..., ChainingOutput] = CopyingChainingOutput,
    ) -> None:
        self.nodes = nodes
        self.head = nodes[0].operator
        self.num_records_in = 0
        self.counters: dict[int, CountingOutput] = {}
        self._object_reuse = object_reuse
        self._copying_output = copying_output
        by_id = {node.id: node for node in nodes}
        for node in reversed(nodes):  # a target stands behind its source, so leaves come first
            counter = self.counters[node.id] = self._counter(node, self._output_of(node, by_id))
            node.operator.setup(node.context, counter)

    @property
    def time(self) -> ProcessingTimeService:
        """The processing time of the task."""
        return self.nodes[0].context.time

    @property
    def operators(self) -> list[Operator]:
        return [node.operator for node in self.nodes]

    def latencies(self) -> tuple[LatencySnapshot, ...]:
        """How old latency markers were when they came to each operator."""
        found = list[LatencySnapshot]()
        for operator, context in [(node.operator, node.context) for node in self.nodes]:
            found += operator.latency.snapshots(context.name, context.subtask, context.sources)
        return tuple(found)

    def open(self) -> None:
        """Open the operators, the last first: an operator may emit as soon as it is open."""
        for operator in reversed(self.operators):
            _call(operator.open, operator)

    def process(self, element: StreamElement) -> None:
        """Hand one element to the head; everything it causes in the chain happens in this call."""
        match element:
            case StreamRecord():
                self.num_records_in += 1
                process(self.head, element)
            case Watermark():
                self.head.process_watermark(element)
            case StreamStatus():
                self.head.process_status(element)
            case LatencyMarker():
                self.head.process_latency_marker(element)

    def process_from(self, side: int, record: StreamRecord) -> None:
        """Hand a record of input `side` of two to the head."""
        head = self._two_input_head
        self.num_records_in += 1
        try:
            head.process_from(side, record)
        except USER_CODE_RAISES as error:
            if speaks_for_itself(error):
                raise
            raise head.fail(record.value, error) from error

    def end_input(self, side: int) -> None:
        """Tell the head that input `side` of two has ended."""
        _call(partial(self._two_input_head.end_input, side), self.head)

    def finish(self) -> None:
        """End the operators, the head first: what one still emits the next can still take."""
        for operator in self.operators:
            _call(operator.finish, operator)

    def close(self) -> None:
        """Close all operators; one that cannot be closed does not keep the others open."""
        with ExitStack() as stack:
            for operator in self.operators:
                stack.callback(_call, operator.close, operator)

    @property
    def _two_input_head(self) -> TwoInputOperator:
        assert isinstance(self.head, TwoInputOperator), f"{self.nodes[0].context.name} has one input"
        return self.head

    def swap_copying_output(self, copying_output: Callable[..., ChainingOutput]) -> None:
        """Let copies be handed on by another class, between two records."""
        if copying_output is self._copying_output or self._object_reuse:
            return
        self._copying_output = copying_output
        by_id = {node.id: node for node in self.nodes}
        for node in self.nodes:
            if all(edge.target is not None for edge in node.edges):  # an output to the network keeps its turn
                self.counters[node.id].redirect(self._output_of(node, by_id))

    def _counter(self, node: ChainNode, output: Output) -> CountingOutput:
        return CountingOutput(output, node.operator.fail)

    def _output_of(self, node: ChainNode, by_id: Mapping[int, ChainNode]) -> Output:
        outputs = [self._edge_output(edge, node, by_id) for edge in node.edges]
        seed = node.context.config.seed + node.context.subtask
        if node.select is not None:
            by_name: dict[str, list[Output]] = {}
            for edge, output in zip(node.edges, outputs, strict=True):
                for name in edge.names:
                    by_name.setdefault(name, []).append(output)
            always = [output for edge, output in zip(node.edges, outputs, strict=True) if not edge.names]
            directed = CopyingDirectedOutput if self._object_reuse else DirectedOutput
            return directed(node.select, by_name, always, seed)
        if len(outputs) == 1:
            return outputs[0]
        if not outputs:
            return _Nowhere()
        if self._object_reuse:
            return CopyingBroadcastingOutputCollector(outputs, seed)
        return BroadcastingOutputCollector(outputs, seed)

    def _edge_output(self, edge: ChainEdge, node: ChainNode, by_id: Mapping[int, ChainNode]) -> Output:
        if edge.writer is not None:
            return RecordWriterOutput(edge.writer, edge.tag)
        assert edge.target is not None, f"an edge of {node.context.name} leads nowhere"
        receiver = by_id[edge.target].operator
        if self._object_reuse:
            return ChainingOutput(receiver, edge.tag)
        value_type = node.value_type if edge.tag is None else edge.tag.value_type
        return self._copying_output(receiver, value_type, edge.tag)


def _call(method: Callable[[], None], operator: Operator) -> None:
    """Call `open`, `finish` or `close`; what the user's code raises names the operator."""
    try:
        method()
    except USER_CODE_RAISES as error:
        if speaks_for_itself(error):
            raise
        raise operator.fail(None, error) from error
