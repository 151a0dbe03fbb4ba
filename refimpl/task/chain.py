"""Operators that share a task: calling the next one is a function call, not a network.

The chain is a tree. It is built from its leaves, since an operator must know its output before it
is set up. Records enter at the head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refimpl.errors import speaks_for_itself
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import (
    LatencyMarker,
    RecordBatch,
    StreamElement,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.types import TypeSerializer
from refimpl.task.collectors import (
    BroadcastingOutputCollector,
    CopyingBroadcastingOutputCollector,
    CopyingDirectedOutput,
    DirectedOutput,
)
from refimpl.task.operators import Operator, OperatorContext
from refimpl.task.outputs import (
    ChainingOutput,
    CopyingChainingOutput,
    CountingOutput,
    Output,
    OutputTag,
    RecordWriterOutput,
    process,
    process_batch,
)

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

    def collect_batch(self, batch: RecordBatch) -> None: ...

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
            counter = CountingOutput(self._output_of(node, by_id), node.operator.fail)
            self.counters[node.id] = counter
            node.operator.setup(node.context, counter)
        is_plain = type(self.head).process is Operator.process
        self._only_passes_on = is_plain and self.counters[nodes[0].id].writer is not None
        self._process_value = _process_value_of(self.head)

    @property
    def takes_values(self) -> bool:
        """Whether the head needs no record around a value, see `process_values`."""
        return self._process_value is not None

    @property
    def operators(self) -> list[Operator]:
        return [node.operator for node in self.nodes]

    def open(self) -> None:
        """Open the operators, the last first: an operator may emit as soon as it is open."""
        for operator in reversed(self.operators):
            _call(operator.open, operator)

    def process(self, element: StreamElement) -> None:
        """Hand one element to the head; everything it causes in the chain happens in this call."""
        if isinstance(element, StreamRecord):
            self.num_records_in += 1
            process(self.head, element)
            return
        match element:
            case RecordBatch():
                self.num_records_in += len(element)
                process_batch(self.head, element)
            case Watermark():
                self.head.process_watermark(element)
            case StreamStatus():
                self.head.process_status(element)
            case LatencyMarker():
                self.head.process_latency_marker(element)

    def process_records(self, records: Iterator[StreamRecord], writers: Sequence[RecordWriter]) -> None:
        """Hand records to the head until there are none, or one of `writers` waits for a buffer."""
        head = self.head
        if self._only_passes_on:  # what its output takes one by one, it takes many at a time too
            counter = self.counters[self.nodes[0].id]
            num_before = self.num_records_in - counter.num_records
            try:
                counter.collect_from(records)
            finally:
                self.num_records_in = num_before + counter.num_records
            return
        for record in records:
            self.num_records_in += 1
            try:
                head.process(record)
            except Exception as error:
                if speaks_for_itself(error):
                    raise
                raise head.fail(record.value, error) from error
            for writer in writers:
                if writer.is_blocked:
                    return

    def process_values(self, values: Iterator[tuple[object, int | None]], writers: Sequence[RecordWriter]) -> None:
        """The same with values and their times, for a chain that `takes_values`."""
        process_value = self._process_value
        assert process_value is not None, f"{self.head} takes records"
        num_records = 0
        try:
            for value, time in values:
                num_records += 1
                try:
                    process_value(value, time)
                except Exception as error:
                    if speaks_for_itself(error):
                        raise
                    raise self.head.fail(value, error) from error
                if writers:  # a sink has none, and a loop over nothing is not free
                    for writer in writers:
                        if writer.is_blocked:
                            return
        finally:
            self.num_records_in += num_records

    def finish(self) -> None:
        """End the operators, the head first: what one still emits the next can still take."""
        for operator in self.operators:
            _call(operator.finish, operator)

    def swap_copying_output(self, copying_output: Callable[..., ChainingOutput]) -> None:
        """Let copies be handed on by another class, between two records."""
        if copying_output is self._copying_output or self._object_reuse:
            return
        self._copying_output = copying_output
        by_id = {node.id: node for node in self.nodes}
        for node in self.nodes:
            if all(edge.target is not None for edge in node.edges):  # an output to the network keeps its turn
                self.counters[node.id].redirect(self._output_of(node, by_id))

    def _output_of(self, node: ChainNode, by_id: Mapping[int, ChainNode]) -> Output:
        outputs = [self._edge_output(edge, node, by_id) for edge in node.edges]
        if node.select is not None:
            by_name: dict[str, list[Output]] = {}
            for edge, output in zip(node.edges, outputs, strict=True):
                for name in edge.names:
                    by_name.setdefault(name, []).append(output)
            always = [output for edge, output in zip(node.edges, outputs, strict=True) if not edge.names]
            directed = CopyingDirectedOutput if self._object_reuse else DirectedOutput
            return directed(node.select, by_name, always)
        if len(outputs) == 1:
            return outputs[0]
        if not outputs:
            return _Nowhere()
        if self._object_reuse:
            return CopyingBroadcastingOutputCollector(outputs)
        return BroadcastingOutputCollector(outputs)

    def _edge_output(self, edge: ChainEdge, node: ChainNode, by_id: Mapping[int, ChainNode]) -> Output:
        if edge.writer is not None:
            return RecordWriterOutput(edge.writer, edge.tag)
        assert edge.target is not None, f"an edge of {node.context.name} leads nowhere"
        receiver = by_id[edge.target].operator
        if self._object_reuse:
            return ChainingOutput(receiver, edge.tag)
        value_type = node.value_type if edge.tag is None else edge.tag.value_type
        return self._copying_output(receiver, value_type, edge.tag)


def _process_value_of(operator: Operator) -> Callable[[object, int | None], None] | None:
    """`process_value`, if it is of the class that says what `process` does; a subclass may have changed one of them."""
    kind = next(kind for kind in type(operator).__mro__ if "process" in vars(kind))
    process_value: Callable[[object, int | None], None] | None = getattr(operator, "process_value", None)
    return process_value if "process_value" in vars(kind) else None


def _call(method: Callable[[], None], operator: Operator) -> None:
    """Call `open` or `finish`; what the user's code raises names the operator."""
    try:
        method()
    except Exception as error:
        if speaks_for_itself(error):
            raise
        raise operator.fail(None, error) from error
