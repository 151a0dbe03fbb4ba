"""Outputs and collectors: who gets a record, the same object or a copy, and what happens to everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import RecordWriter, ResultPartition, RoundRobinSelector
from refimpl.records import (
    ANY,
    MIN_TIMESTAMP,
    LatencyMarker,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.task import (
    BroadcastingOutputCollector,
    ChainingOutput,
    CopyingBroadcastingOutputCollector,
    CopyingChainingOutput,
    CopyingDirectedOutput,
    CountingOutput,
    DirectedOutput,
    Operator,
    Output,
    OutputTag,
    RecordWriterOutput,
)

ACTIVE, IDLE = StreamStatus.ACTIVE, StreamStatus.IDLE
LATE, OTHER = OutputTag("late"), OutputTag("other")


class Recorder(Operator):
    """An operator at the end of a chain that keeps what it is given."""

    def __init__(self) -> None:
        self.received: list[object] = []

    def process(self, record: StreamRecord) -> None:
        self.received.append(record)

    def process_watermark(self, watermark: Watermark) -> None:
        self.received.append(watermark)

    def process_status(self, status: StreamStatus) -> None:
        self.received.append(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.received.append(marker)


class Wire:
    """A writer over a number of channels, and everything that arrives at each."""

    def __init__(self, channels: int = 2) -> None:
        self.config = Config(segment_size_bytes=256, num_buffers=64, buffer_timeout_ms=0)
        pool = LocalBufferPool(NetworkBufferPool(64, 256), channels + 1, num_channels=channels)
        self.partition = ResultPartition("map-0", channels, pool, self.config)
        self.writer = RecordWriter(self.partition, RoundRobinSelector(), StreamElementSerializer(ANY))
        for subpartition in self.partition.subpartitions:
            subpartition.view.open(lambda: None)

    def arrived(self) -> list[list[StreamElement]]:
        """What each channel has brought since it was last asked."""
        return [self._read(index) for index in range(len(self.partition.subpartitions))]

    def _read(self, index: int) -> list[StreamElement]:
        reader = SpillingAdaptiveSpanningRecordDeserializer(self.config)
        elements = []
        while (taken := self.partition.subpartitions[index].poll()) is not None:
            reader.set_next_buffer(taken.buffer)
            while (found := reader.get_next_record())[1] is not None:
                elements.append(StreamElementSerializer(ANY).deserialize(found[1]))
                if found[0].is_buffer_consumed:
                    break
            taken.buffer.recycle()
        return elements


def chained(copies: bool = False, tag: OutputTag | None = None) -> tuple[ChainingOutput, Recorder]:
    recorder = Recorder()
    return (CopyingChainingOutput(recorder, ANY, tag) if copies else ChainingOutput(recorder, tag)), recorder


# -- to the next operator --------------------------------------------------------------------------


def test_a_chaining_output_hands_on_the_very_object() -> None:
    """Flink: `StreamOperatorChainingTest`."""
    output, recorder = chained()
    record = StreamRecord([1], 5)
    output.collect(record)
    assert recorder.received == [record]
    assert recorder.received[0] is record


def test_a_copying_output_hands_on_a_record_nobody_else_can_change() -> None:
    """Flink: `StreamOperatorChainingTest`."""
    output, recorder = chained(copies=True)
    record = StreamRecord([1], 5)
    output.collect(record)
    assert recorder.received == [StreamRecord([1], 5)]
    record.value.append(2)
    record.timestamp = 6
    assert recorder.received == [StreamRecord([1], 5)]


@pytest.mark.parametrize("copies", [False, True])
def test_a_chained_output_delivers_its_own_side_or_the_main_stream_never_both(copies: bool) -> None:
    main, at_main = chained(copies)
    side, at_side = chained(copies, LATE)
    for output in (main, side):
        output.collect(StreamRecord("main"))
        output.collect_side(LATE, StreamRecord("late"))
        output.collect_side(OTHER, StreamRecord("other"))
    assert at_main.received == [StreamRecord("main")]
    assert at_side.received == [StreamRecord("late")]


def test_a_side_output_copies_like_the_main_one() -> None:
    for copies in (False, True):
        output, recorder = chained(copies, LATE)
        record = StreamRecord([1], 5)
        output.collect_side(LATE, record)
        record.value.append(2)
        assert recorder.received == [StreamRecord([1] if copies else [1, 2], 5)]


def test_tags_of_one_name_are_one_side_output() -> None:
    output, recorder = chained(tag=OutputTag("late"))
    output.collect_side(OutputTag("late"), StreamRecord(1))
    assert recorder.received == [StreamRecord(1)]


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("tag", [None, LATE])
def test_everything_but_records_goes_through_whatever_the_tag(copies: bool, tag: OutputTag | None) -> None:
    output, recorder = chained(copies, tag)
    marker = LatencyMarker(1, 2, 3, 4)
    output.emit_watermark(Watermark(7))
    output.emit_status(IDLE)
    output.emit_status(ACTIVE)
    output.emit_latency_marker(marker)
    assert recorder.received == [Watermark(7), IDLE, ACTIVE, marker]


# -- to the network --------------------------------------------------------------------------------


def test_records_take_turns_and_watermarks_and_statuses_reach_every_channel() -> None:
    """Flink: `OneInputStreamTaskTest`."""
    wire = Wire()
    output = RecordWriterOutput(wire.writer)
    for number in range(3):
        output.collect(StreamRecord(number))
    output.emit_watermark(Watermark(9))
    output.emit_status(IDLE)
    assert wire.arrived() == [
        [StreamRecord(0), StreamRecord(2), Watermark(9), IDLE],
        [StreamRecord(1), Watermark(9), IDLE],
    ]


def test_a_latency_marker_takes_one_channel_drawn_by_the_seed() -> None:
    markers = [LatencyMarker(number, 0, 0, 0) for number in range(30)]

    def arrived() -> list[list[object]]:
        wire = Wire(channels=3)
        output = RecordWriterOutput(wire.writer)
        for marker in markers:
            output.emit_latency_marker(marker)
        return wire.arrived()

    channels = arrived()
    assert all(0 < len(channel) < 30 for channel in channels)
    assert sorted((each for channel in channels for each in channel), key=lambda m: m.marked_time) == markers
    assert channels != [markers[0::3], markers[1::3], markers[2::3]]
    assert arrived() == channels


def test_the_network_gets_its_own_side_or_the_main_stream_never_both() -> None:
    main, side = Wire(channels=1), Wire(channels=1)
    for output in (RecordWriterOutput(main.writer), RecordWriterOutput(side.writer, LATE)):
        output.collect(StreamRecord("main"))
        output.collect_side(LATE, StreamRecord("late"))
        output.collect_side(OTHER, StreamRecord("other"))
    assert main.arrived() == [[StreamRecord("main")]]
    assert side.arrived() == [[StreamRecord("late")]]


# -- watermarks while idle -------------------------------------------------------------------------


def test_an_idle_chained_stream_says_nothing_about_time_but_its_gauge_does() -> None:
    """The gauge moves even when the watermark is held back, as up to 1.11.

    Flink: `OneInputStreamTaskTest`.
    """
    output, recorder = chained()
    assert output.watermark_gauge.current == MIN_TIMESTAMP
    output.emit_status(IDLE)
    output.emit_watermark(Watermark(7))
    assert output.watermark_gauge.current == 7
    output.emit_status(ACTIVE)
    output.emit_watermark(Watermark(8))
    assert recorder.received == [IDLE, ACTIVE, Watermark(8)]
    assert output.watermark_gauge.current == 8


def test_an_idle_network_stream_says_nothing_about_time_but_its_gauge_does() -> None:
    wire = Wire(channels=1)
    output = RecordWriterOutput(wire.writer)
    assert output.watermark_gauge.current == MIN_TIMESTAMP
    output.emit_status(IDLE)
    output.emit_watermark(Watermark(7))
    assert output.watermark_gauge.current == 7
    output.emit_status(ACTIVE)
    output.emit_watermark(Watermark(8))
    assert wire.arrived() == [[IDLE, ACTIVE, Watermark(8)]]


# -- to several at once ----------------------------------------------------------------------------


def several(
    make: Callable[[list[Output]], Output], count: int = 3, copies: bool = False, tag: OutputTag | None = None
) -> tuple[Output, list[Recorder]]:
    pairs = [chained(copies, tag) for _ in range(count)]
    return make([output for output, _ in pairs]), [recorder for _, recorder in pairs]


def directed(kind: type[DirectedOutput]) -> Callable[[list[Output]], Output]:
    """All outputs under one name that every record selects."""
    return lambda outputs: kind(lambda _value: ["all"], {"all": outputs})


PLAIN = {"broadcasting": BroadcastingOutputCollector, "directed": directed(DirectedOutput)}
COPYING = {
    "broadcasting": CopyingBroadcastingOutputCollector, "directed": directed(CopyingDirectedOutput),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_collector_gives_all_the_same_record(name: str) -> None:
    """Enough while every chained output copies.

    Flink: `StreamOperatorChainingTest`.
    """
    output, recorders = several(PLAIN[name])
    record = StreamRecord([1], 5)
    output.collect(record)
    for recorder in recorders:
        assert len(recorder.received) == 1
        assert recorder.received[0] is record


@pytest.mark.parametrize("name", COPYING)
def test_a_copying_collector_gives_all_but_the_last_a_record_of_their_own_around_one_value(name: str) -> None:
    """Copies protect the record around the value, not the value.

    Flink: `StreamOperatorChainingTest`.
    """
    output, recorders = several(COPYING[name])
    record = StreamRecord([1], 5)
    output.collect(record)
    received = [recorder.received[0] for recorder in recorders]
    assert received == [record] * 3
    assert [one is record for one in received] == [False, False, True]
    assert len({id(one) for one in received}) == 3
    assert all(one.value is record.value for one in received)


def test_a_new_time_in_one_branch_shows_in_no_other() -> None:
    """Why the copying collectors exist: with object reuse nobody else copies."""

    class Stamping(Recorder):
        def process(self, record: StreamRecord) -> None:
            record.timestamp = 99
            super().process(record)

    for make in COPYING.values():
        first, second = Stamping(), Recorder()
        make([ChainingOutput(first), ChainingOutput(second)]).collect(StreamRecord("a", 5))
        assert (first.received, second.received) == ([StreamRecord("a", 99)], [StreamRecord("a", 5)])


@pytest.mark.parametrize("make", [BroadcastingOutputCollector, CopyingBroadcastingOutputCollector])
def test_a_side_record_is_offered_to_all_and_taken_by_those_of_its_tag(make: Callable[..., Output]) -> None:
    tags = [LATE, None, OTHER, LATE]
    pairs = [chained(tag=tag) for tag in tags]
    output = make([one for one, _ in pairs])
    output.collect_side(LATE, StreamRecord("late", 3))
    late = [StreamRecord("late", 3)]
    assert [recorder.received for _, recorder in pairs] == [late, [], [], late]


def test_side_records_of_two_takers_are_two_objects_when_copied() -> None:
    for make, is_same in ((BroadcastingOutputCollector, True), (CopyingBroadcastingOutputCollector, False)):
        output, recorders = several(make, 2, tag=LATE)
        record = StreamRecord([1], 5)
        output.collect_side(LATE, record)
        first, last = (recorder.received[0] for recorder in recorders)
        assert (first is record, last is record) == (is_same, True)
        assert first.value is record.value


@pytest.mark.parametrize("make", [*PLAIN.values(), *COPYING.values()])
def test_watermarks_and_statuses_go_to_all_and_the_gauge_shows_the_last(make: Callable[..., Output]) -> None:
    output, recorders = several(make)
    assert output.watermark_gauge.current == MIN_TIMESTAMP
    output.emit_watermark(Watermark(4))
    output.emit_status(IDLE)
    assert [recorder.received for recorder in recorders] == [[Watermark(4), IDLE]] * 3
    assert output.watermark_gauge.current == 4


@pytest.mark.parametrize("make", [*PLAIN.values(), *COPYING.values()])
def test_a_latency_marker_goes_down_one_branch_and_others_down_others(make: Callable[..., Output]) -> None:
    output, recorders = several(make)
    markers = [LatencyMarker(time, 0, 0, 0) for time in range(30)]
    for marker in markers:
        output.emit_latency_marker(marker)
    received = [recorder.received for recorder in recorders]
    assert sorted((marker for branch in received for marker in branch), key=lambda m: m.marked_time) == markers
    assert all(0 < len(branch) < 30 for branch in received)


# -- to those a selector names ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DirectedOutput, CopyingDirectedOutput])
@pytest.mark.parametrize(
    ("names", "takers"),
    [
        ([], "always"),
        (["even"], "always even both"),
        (["odd"], "always odd both"),
        (["even", "odd"], "always even odd both"),
        (["even", "even"], "always even both"),
        (["prime"], "always"),
        (("odd", "prime"), "always odd both"),
    ],
)
def test_a_record_goes_once_to_each_output_of_its_names(
    kind: type[DirectedOutput], names: list[str], takers: str
) -> None:
    """Flink: `OutputSelectorTest`."""
    outputs = {name: chained() for name in ("always", "even", "odd", "both")}
    one = {name: output for name, (output, _) in outputs.items()}
    by_name = {"even": [one["even"], one["both"]], "odd": [one["odd"], one["both"]]}
    output = kind(lambda _value: names, by_name, [one["always"]])
    output.collect(StreamRecord(1))
    assert [name for name, (_, recorder) in outputs.items() if recorder.received] == takers.split()
    assert all(len(recorder.received) <= 1 for _, recorder in outputs.values())


def test_the_selector_sees_the_value() -> None:
    even, at_even = chained()
    output = DirectedOutput(lambda value: ["odd"] if value % 2 else ["even"], {"even": [even]})
    for number in range(4):
        output.collect(StreamRecord(number))
    assert at_even.received == [StreamRecord(0), StreamRecord(2)]


@pytest.mark.parametrize("kind", [DirectedOutput, CopyingDirectedOutput])
def test_an_output_of_two_names_gets_a_watermark_once_and_no_side_records(kind: type[DirectedOutput]) -> None:
    output, recorder = chained(tag=LATE)
    both = kind(lambda _value: ["a"], {"a": [output], "b": [output]}, [output])
    both.emit_watermark(Watermark(1))
    both.emit_status(IDLE)
    both.collect_side(LATE, StreamRecord("late"))
    assert recorder.received == [Watermark(1), IDLE]


def test_a_split_without_branches_drops_everything() -> None:
    for kind in (DirectedOutput, CopyingDirectedOutput):
        output = kind(lambda _value: ["a"], {})
        output.collect(StreamRecord(1))
        output.emit_latency_marker(LatencyMarker(1, 0, 0, 0))
        output.emit_watermark(Watermark(3))
        assert output.watermark_gauge.current == 3


# -- counting --------------------------------------------------------------------------------------


def test_main_and_side_records_are_counted_and_nothing_else_is() -> None:
    plain, recorder = chained()
    output = CountingOutput(plain)
    output.collect(StreamRecord(1))
    output.collect_side(LATE, StreamRecord(2))  # nobody listens: it still left the operator
    output.emit_watermark(Watermark(3))
    output.emit_status(IDLE)
    output.emit_latency_marker(LatencyMarker(1, 0, 0, 0))
    assert output.num_records == 2
    assert recorder.received == [StreamRecord(1), Watermark(3), IDLE, LatencyMarker(1, 0, 0, 0)]


def test_a_counting_output_hands_on_side_records_under_their_tag() -> None:
    side, recorder = chained(tag=LATE)
    output = CountingOutput(side)
    output.collect_side(LATE, StreamRecord(2))
    output.collect_side(OTHER, StreamRecord(3))
    assert (recorder.received, output.num_records) == ([StreamRecord(2)], 2)
