"""Operators in one task: which output each gets, in which order they open and end, and copies."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ForwardSelector, RecordWriter, ResultPartition
from refimpl.records import ANY, LatencyMarker, StreamElementSerializer, StreamRecord, StreamStatus, Watermark
from refimpl.task import (
    BroadcastingOutputCollector,
    ChainEdge,
    ChainingOutput,
    ChainNode,
    CopyingBroadcastingOutputCollector,
    CopyingChainingOutput,
    CopyingDirectedOutput,
    DirectedOutput,
    MapOperator,
    Operator,
    OperatorChain,
    OperatorContext,
    OutputTag,
    RecordWriterOutput,
    SinkOperator,
)

LATE = OutputTag("late")


def node(number: int, operator: Operator, *targets: int | ChainEdge, select: object = None) -> ChainNode:
    edges = [edge if isinstance(edge, ChainEdge) else ChainEdge(edge) for edge in targets]
    return ChainNode(number, operator, OperatorContext(f"op-{number}", 0, 1, 128), ANY, edges, select)


def writer() -> RecordWriter:
    config = Config(segment_size_bytes=64, num_buffers=4)
    partition = ResultPartition("map-0", 1, LocalBufferPool(NetworkBufferPool(4, 64), 2, num_channels=1), config)
    return RecordWriter(partition, ForwardSelector(), StreamElementSerializer(ANY))


def chain(*nodes: ChainNode, reuse: bool = False) -> OperatorChain:
    return OperatorChain(nodes, reuse)


@pytest.mark.parametrize("reuse", [False, True])
def test_a_record_runs_through_the_whole_chain_in_one_call(reuse: bool) -> None:
    values: list[object] = []
    whole = chain(
        node(0, MapOperator(lambda n: n + 1), 1),
        node(1, MapOperator(lambda n: n * 10), 2),
        node(2, SinkOperator(values.append)),
        reuse=reuse,
    )
    whole.process(StreamRecord(1, 5))
    assert values == [20]
    assert {number: counter.num_records for number, counter in whole.counters.items()} == {0: 1, 1: 1, 2: 0}
    assert whole.num_records_in == 1
    assert whole.head is whole.nodes[0].operator


class Noting(Operator):
    """Notes when it is opened, given something and ended; may still emit at its end."""

    def __init__(self, name: str, notes: list[str], last_word: object = None) -> None:
        self.name, self.notes, self.last_word = name, notes, last_word

    def note(self, what: str) -> None:
        self.notes.append(f"{self.name} {what}")

    def open(self) -> None:
        self.note("opens")

    def process(self, record: StreamRecord) -> None:
        self.note(f"gets {record.value}")
        self.output.collect(record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.note(f"gets {watermark.timestamp}")
        super().process_watermark(watermark)

    def process_status(self, status: StreamStatus) -> None:
        self.note(f"gets {status.name}")
        super().process_status(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.note(f"gets marker {marker.marked_time}")
        super().process_latency_marker(marker)

    def finish(self) -> None:
        self.note("ends")
        if self.last_word is not None:
            self.output.collect(StreamRecord(self.last_word))


def test_operators_open_from_the_last_and_end_from_the_first() -> None:
    notes: list[str] = []
    whole = chain(node(0, Noting("a", notes, "bye"), 1), node(1, Noting("b", notes), 2), node(2, Noting("c", notes)))
    whole.open()
    assert notes == ["c opens", "b opens", "a opens"]
    notes.clear()
    whole.finish()
    assert notes == ["a ends", "b gets bye", "c gets bye", "b ends", "c ends"]


def test_each_kind_of_element_reaches_its_method_and_only_records_are_counted() -> None:
    notes: list[str] = []
    whole = chain(node(0, Noting("a", notes), 1), node(1, Noting("b", notes)))
    for element in (StreamRecord("r"), Watermark(5), LatencyMarker(7, 0, 0, 0), StreamStatus.IDLE):
        whole.process(element)
    assert notes == [
        "a gets r",
        "b gets r",
        "a gets 5",
        "b gets 5",
        "a gets marker 7",
        "b gets marker 7",
        "a gets IDLE",
        "b gets IDLE",
    ]
    assert whole.num_records_in == 1


# -- which output ----------------------------------------------------------------------------------


def output_of(whole: OperatorChain, number: int = 0) -> object:
    return whole.counters[number].output


def chained_to(count: int, edges: list[ChainEdge | int], reuse: bool, select: object = None) -> OperatorChain:
    others = [node(number, Operator()) for number in range(1, count + 1)]
    return chain(node(0, Operator(), *edges, select=select), *others, reuse=reuse)


@pytest.mark.parametrize(
    ("reuse", "kind"), [(False, CopyingChainingOutput), (True, ChainingOutput)], ids=["copies", "reuse"]
)
def test_a_chained_operator_gets_copies_unless_objects_are_reused(reuse: bool, kind: type) -> None:
    """Flink: `StreamOperatorChainingTest`."""
    assert type(output_of(chained_to(1, [1], reuse))) is kind


@pytest.mark.parametrize(
    ("reuse", "kind"),
    [(False, BroadcastingOutputCollector), (True, CopyingBroadcastingOutputCollector)],
    ids=["copies", "reuse"],
)
def test_several_outputs_get_the_copying_collector_when_objects_are_reused(reuse: bool, kind: type) -> None:
    """Without reuse each chained output makes its own copy already.

    Flink: `StreamOperatorChainingTest`.
    """
    assert type(output_of(chained_to(2, [1, 2], reuse))) is kind
    assert type(output_of(chained_to(1, [1, ChainEdge(writer=writer())], reuse))) is kind


@pytest.mark.parametrize(
    ("reuse", "kind"), [(False, DirectedOutput), (True, CopyingDirectedOutput)], ids=["copies", "reuse"]
)
def test_a_split_gets_a_directed_output_also_with_one_branch(reuse: bool, kind: type) -> None:
    """Flink: `OutputSelectorTest`."""
    whole = chained_to(1, [ChainEdge(1, names=("even",))], reuse, select=lambda value: ["even"])
    assert type(output_of(whole)) is kind


def test_an_edge_to_the_network_gets_a_writer_output_whatever_the_reuse() -> None:
    for reuse in (False, True):
        target = writer()
        output = output_of(chain(node(0, Operator(), ChainEdge(writer=target)), reuse=reuse))
        assert isinstance(output, RecordWriterOutput)
        assert output.writer is target


@pytest.mark.parametrize("reuse", [False, True])
def test_branches_of_a_tree_each_get_every_record(reuse: bool) -> None:
    values: list[object] = []
    whole = chain(
        node(0, Operator(), 1, 3),
        node(1, MapOperator(lambda n: n + 1), 2),
        node(2, SinkOperator(lambda n: values.append(("left", n)))),
        node(3, SinkOperator(lambda n: values.append(("right", n)))),
        reuse=reuse,
    )
    whole.process(StreamRecord(1))
    assert values == [("left", 2), ("right", 1)]


@pytest.mark.parametrize("reuse", [False, True])
def test_a_change_in_one_branch_shows_in_the_other_only_when_objects_are_reused(reuse: bool) -> None:
    values: list[object] = []
    whole = chain(
        node(0, Operator(), 1, 2),
        node(1, SinkOperator(lambda value: value.append("changed"))),
        node(2, SinkOperator(values.append)),
        reuse=reuse,
    )
    whole.process(StreamRecord(["as it was"]))
    assert values == [["as it was", "changed"] if reuse else ["as it was"]]


class Siding(Operator):
    def process(self, record: StreamRecord) -> None:
        if record.value % 2:
            self.output.collect_side(LATE, record)
        else:
            self.output.collect(record)


@pytest.mark.parametrize("reuse", [False, True])
def test_side_records_go_down_the_edges_of_their_tag(reuse: bool) -> None:
    main: list[object] = []
    side: list[object] = []
    whole = chain(
        node(0, Siding(), 1, ChainEdge(2, tag=LATE)),
        node(1, SinkOperator(main.append)),
        node(2, SinkOperator(side.append)),
        reuse=reuse,
    )
    for number in range(4):
        whole.process(StreamRecord(number))
    assert (main, side) == ([0, 2], [1, 3])
    assert whole.counters[0].num_records == 4


@pytest.mark.parametrize("reuse", [False, True])
def test_a_split_sends_named_branches_theirs_and_the_others_everything(reuse: bool) -> None:
    taken: dict[str, list[object]] = {"even": [], "odd": [], "all": []}
    whole = chain(
        node(
            0,
            Operator(),
            ChainEdge(1, names=("even",)),
            ChainEdge(2, names=("odd", "prime")),
            3,
            select=lambda n: ["odd"] if n % 2 else ["even"],
        ),
        *(node(number, SinkOperator(taken[name].append)) for number, name in enumerate(taken, 1)),
        reuse=reuse,
    )
    for number in range(4):
        whole.process(StreamRecord(number))
    assert taken == {"even": [0, 2], "odd": [1, 3], "all": [0, 1, 2, 3]}


def test_an_operator_nobody_reads_is_run_all_the_same() -> None:
    notes: list[str] = []
    whole = chain(node(0, Noting("a", notes)))
    for element in (StreamRecord("r"), Watermark(5), LatencyMarker(7, 0, 0, 0), StreamStatus.IDLE):
        whole.process(element)
    assert notes == ["a gets r", "a gets 5", "a gets marker 7", "a gets IDLE"]
    assert whole.counters[0].num_records == 1


def test_an_operator_knows_where_it_runs() -> None:
    operator = Operator()
    context = OperatorContext("parse", 2, 4, 128)
    OperatorChain([ChainNode(0, operator, context, ANY, [])], object_reuse=False)
    assert operator.context is context
