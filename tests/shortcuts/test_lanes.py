"""A record packed in place has the bytes of the serializers; what does not fit or is of another type is handed on."""

from __future__ import annotations

import pytest

from refimpl.memory import BufferBuilder, DataType, heap_buffer
from refimpl.records import (
    BOOLEAN,
    DOUBLE,
    INT,
    LENGTH_BYTES,
    LONG,
    STRING,
    StreamElementSerializer,
    StreamRecord,
    TupleType,
    TypeSerializer,
)
from refimpl.shortcuts.fixed_width import RecordPacker
from refimpl.shortcuts.lanes import Lanes

PAIR = TupleType(LONG, LONG)
FLIGHT = TupleType(INT, DOUBLE, LONG)
KINDS: dict[TypeSerializer, list[object]] = {
    LONG: [-3, 2**63 - 1, True],
    TupleType(LONG): [(-3,), (0,)],
    PAIR: [(1, -2), (2**62, -(2**63))],
    TupleType(INT, DOUBLE): [(-(2**31), -0.0), (5, 1e300), (1, 2)],
    FLIGHT: [(1, 2.5, -(2**63)), (-(2**31), -0.0, 2**63 - 1)],
}


def framed(record: StreamRecord, kind: TypeSerializer) -> bytes:
    data = StreamElementSerializer(kind).serialize(record)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


class Bench:
    """Lanes of one type, each with an open buffer; keeps what is handed on."""

    def __init__(self, kind: TypeSerializer, size: int = 400, num_channels: int = 1) -> None:
        self.handed_on: list[tuple[StreamRecord, int]] = []
        self.lanes = Lanes(RecordPacker.of(kind), num_channels, lambda *item: self.handed_on.append(item))
        self.builders = [BufferBuilder(heap_buffer(bytes(size), DataType.DATA)) for _ in range(num_channels)]
        for channel, builder in enumerate(self.builders):
            self.lanes.open(channel, builder)

    def filled(self, channel: int = 0) -> bytes:
        builder = self.builders[channel]
        assert builder.written_bytes == builder.committed_bytes
        return bytes(builder.memory[: builder.committed_bytes])


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_packed_record_has_the_bytes_of_the_serializers(kind: TypeSerializer) -> None:
    bench = Bench(kind)
    records = [StreamRecord(value, time) for value in KINDS[kind] for time in (None, 7, -(2**63))]
    assert all(bench.lanes.put[0](record) for record in records)
    assert bench.filled() == b"".join(framed(record, kind) for record in records)
    assert (bench.handed_on, bench.lanes.num_records) == ([], len(records))


@pytest.mark.parametrize("kind", [LONG, PAIR], ids=repr)
@pytest.mark.parametrize("time", [None, 7])
def test_a_record_that_would_fill_the_buffer_is_handed_on(kind: TypeSerializer, time: int | None) -> None:
    """Who fills a buffer must close it, which packing does not."""
    record = StreamRecord(KINDS[kind][0], time)
    width = len(framed(record, kind))
    exact, roomy = Bench(kind, width), Bench(kind, width + 1)
    assert (exact.lanes.put[0](record), roomy.lanes.put[0](record)) == (False, True)
    assert (exact.filled(), exact.handed_on) == (b"", [(record, 0)])
    assert (len(roomy.filled()), roomy.handed_on) == (width, [])


@pytest.mark.parametrize("kind", [PAIR, FLIGHT], ids=repr)
@pytest.mark.parametrize(
    "record",
    [StreamRecord([1, 2]), StreamRecord([1, 2, 3], 0), StreamRecord((1,), 0), StreamRecord((1, 2, 3, 4), 0),
     StreamRecord(("a", 2), 0), StreamRecord((2**63, 2), 0), StreamRecord(None, 0), StreamRecord(5, 0),
     StreamRecord((1, 2), 2**63), StreamRecord((1, 2.0, 3), 0.5)],
    ids=repr,
)  # fmt: skip
def test_another_type_is_handed_on_and_leaves_the_buffer_as_it_was(kind: TypeSerializer, record: StreamRecord) -> None:
    """The serializers say what is wrong with it."""
    bench, good = Bench(kind), StreamRecord(KINDS[kind][0], 1)
    assert [bench.lanes.put[0](each) for each in (good, record, good)] == [True, False, True]
    assert bench.filled() == 2 * framed(good, kind)
    assert (bench.handed_on, bench.lanes.num_records) == ([(record, 0)], 3)


def test_each_channel_has_its_own_buffer() -> None:
    bench = Bench(PAIR, num_channels=2)
    records = [StreamRecord((number, 0)) for number in range(4)]
    for number, record in enumerate(records):
        bench.lanes.put[number % 2](record)
    assert bench.filled(0) == framed(records[0], PAIR) + framed(records[2], PAIR)
    assert bench.filled(1) == framed(records[1], PAIR) + framed(records[3], PAIR)


@pytest.mark.parametrize("kind", [LONG, PAIR], ids=repr)
def test_nothing_is_packed_while_the_lanes_are_closed_or_one_has_no_buffer(kind: TypeSerializer) -> None:
    """Also by who took the function before."""
    bench, record = Bench(kind, num_channels=2), StreamRecord(KINDS[kind][0], 1)
    first, second = bench.lanes.put
    bench.lanes.close(0)
    assert (first(record), second(record)) == (False, True)
    bench.lanes.open(0, bench.builders[0])
    bench.lanes.is_open = False
    assert (first(record), second(record)) == (False, False)
    bench.lanes.is_open = True
    assert (first(record), second(record)) == (True, True)
    assert (len(bench.handed_on), bench.lanes.num_records) == (3, 6)


def test_the_number_of_records_is_right_while_a_lane_turns_to_another_buffer() -> None:
    """As when one thread asks, and the one that writes closes a buffer between two of its looks."""
    bench = Bench(LONG, num_channels=2)
    for time in range(5):
        bench.lanes.put[0](StreamRecord(1, time))
    count, looks = bench.lanes._count_open[0], []

    def count_and_be_interrupted() -> int:
        looks.append(count())
        bench.lanes.close(0)
        return looks[-1]

    bench.lanes._count_open[0] = count_and_be_interrupted
    assert (bench.lanes.num_records, looks) == (5, [5, 0])


@pytest.mark.parametrize("kind", [STRING, TupleType(LONG, BOOLEAN)], ids=repr)
def test_what_cannot_be_packed_is_counted_and_handed_on(kind: TypeSerializer) -> None:
    bench, record = Bench(kind, num_channels=2), StreamRecord("a")
    assert not bench.lanes.put[1](record)
    bench.lanes.close(1)
    assert (bench.handed_on, bench.lanes.num_records) == ([(record, 1)], 1)


@pytest.mark.parametrize("kind", [LONG, PAIR], ids=repr)
def test_who_waits_for_the_next_bytes_is_told_once(kind: TypeSerializer) -> None:
    bench, told = Bench(kind), []
    bench.builders[0].create_consumer().watch(lambda: told.append(bench.filled()))
    for _ in range(2):
        bench.lanes.put[0](StreamRecord(KINDS[kind][0]))
    assert told == [framed(StreamRecord(KINDS[kind][0]), kind)]


def test_what_is_put_whole_is_published_and_leaves_room_or_nothing_is_done() -> None:
    bench = Bench(LONG, size=8)
    (builder,) = bench.builders
    assert bench.lanes.put_whole(b"abc", 0, builder)
    assert not bench.lanes.put_whole(b"defgh", 0, builder)  # it would fill the buffer
    assert not bench.lanes.put_whole(b"d", 0, None)
    assert bench.lanes.put_whole(b"defg", 0, builder)
    assert bench.filled() == b"abcdefg"
    bench.lanes.is_open = False
    assert not bench.lanes.put_whole(b"", 0, builder)
    assert bench.lanes.num_records == 0  # whoever puts them counts them
