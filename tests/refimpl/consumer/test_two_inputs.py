"""Two inputs read in turn: each with its type, one cut through both, and each tells its end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.consumer import (
    FIRST,
    SECOND,
    EndOfInput,
    InputGate,
    LocalInputChannel,
    TwoInputs,
    UnionInputGate,
)
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import RecordWriter, ResultPartition, RoundRobinSelector
from refimpl.records import (
    LONG,
    STRING,
    CheckpointBarrier,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    Watermark,
)

AT_LEAST_ONCE = CheckpointingMode.AT_LEAST_ONCE


class Bench:
    """Longs into the first input and texts into the second, each through so many channels in turn."""

    def __init__(
        self,
        widths: Sequence[int] = (1, 1),
        kinds: tuple[type, type, type] = (InputGate, UnionInputGate, TwoInputs),
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
        version: FlinkVersion = FlinkVersion.V1_11,
        segment: int = 32,
    ) -> None:
        config = Config(segment_size_bytes=segment, num_buffers=400, buffer_timeout_ms=-1, flink_version=version)
        self.home = NetworkBufferPool(config.num_buffers, segment)
        elements = [StreamElementSerializer(kind, version) for kind in (LONG, STRING)]
        self.partitions = [
            ResultPartition(f"map-{side}", width, LocalBufferPool(self.home, 1, num_channels=width), config)
            for side, width in enumerate(widths)
        ]
        self.writers = [
            RecordWriter(partition, RoundRobinSelector(), each)
            for partition, each in zip(self.partitions, elements, strict=True)
        ]
        make_gate, make_union, make_input = kinds
        gates = [
            make_gate("co-0", [LocalInputChannel(i, s.view) for i, s in enumerate(partition.subpartitions)])
            for partition in self.partitions
        ]
        union = make_union("co-0", gates)
        make_deserializer = lambda: SpillingAdaptiveSpanningRecordDeserializer(config)  # noqa: E731
        self.input = make_input(union, elements, make_deserializer, mode)
        union.open()

    def emit(self, side: int, *values: object) -> None:
        for value in values:
            self.writers[side].emit(StreamRecord(value))

    def read(self, limit: int = 1) -> list[tuple[int, object]]:
        """All there is now, `limit` buffers at a time: each element, a record's value, with the input it is of."""
        for partition in self.partitions:
            partition.flush_all()
        found: list[tuple[int, object]] = []
        while self.input.take(limit):
            while (element := self.input.next_element()) is not None:
                found.append((self.input.side, element.value if isinstance(element, StreamRecord) else element))
            self.input.recycle()
        return found


def test_each_input_is_read_with_its_own_type() -> None:
    bench = Bench((2, 1))
    bench.emit(FIRST, *range(6))
    bench.emit(SECOND, "a", "b", "c" * 100)
    found = bench.read()
    assert sorted(value for side, value in found if side == FIRST) == list(range(6))
    assert [value for side, value in found if side == SECOND] == ["a", "b", "c" * 100]


@pytest.mark.parametrize("limit", [1, 4])
def test_a_flood_in_one_input_does_not_keep_the_other_waiting(limit: int) -> None:
    """A buffer of each in turn, however many channels the flood comes through."""
    bench = Bench((3, 1))
    bench.emit(FIRST, *range(400))
    bench.emit(SECOND, *["word"] * 20)
    sides = [side for side, _ in bench.read(limit)]
    last = len(sides) - 1 - sides[::-1].index(SECOND)
    num_texts, num_longs = 20 / (32 / 9), 400 / (32 / 13)  # that many buffers, more or less
    assert sides[: last + 1].count(FIRST) < 2 * num_texts * 32 / 13 < num_longs


def test_an_input_that_has_ended_gets_no_turn_and_the_other_all() -> None:
    bench = Bench()
    bench.writers[FIRST].finish()
    bench.emit(SECOND, *"abc")
    assert bench.read() == [(FIRST, EndOfInput(FIRST)), *((SECOND, each) for each in "abc")]
    assert not bench.input.is_finished


def test_each_input_tells_its_end_once_behind_its_last_record() -> None:
    bench = Bench((2, 3))
    bench.emit(FIRST, 1, 2)
    bench.emit(SECOND, "a")
    for writer in bench.writers:
        writer.finish()
    found = bench.read(8)
    for side, values in ((FIRST, {1, 2}), (SECOND, {"a"})):
        of_side = [value for each, value in found if each == side]
        assert of_side[-1] == EndOfInput(side)
        assert set(of_side[:-1]) == values
    assert bench.input.is_finished


def test_the_watermark_is_that_of_both() -> None:
    bench = Bench()
    bench.writers[FIRST].broadcast(Watermark(7))
    assert bench.read() == []
    bench.writers[SECOND].broadcast(Watermark(5))
    assert [element for _, element in bench.read()] == [Watermark(5)]
    bench.writers[SECOND].broadcast(Watermark(9))
    assert [element for _, element in bench.read()] == [Watermark(7)]


def test_one_barrier_comes_of_all_channels_of_both_inputs() -> None:
    """What stands before it in either has come by then, and nothing from behind it in either."""
    barrier = CheckpointBarrier(1, 0)
    bench = Bench((2, 2))
    bench.emit(FIRST, 1, 2)
    bench.writers[FIRST].broadcast_event(barrier)
    bench.emit(FIRST, 3, 4)
    assert {value for _, value in bench.read(8)} == {1, 2}
    assert bench.input.alignment.snapshot().arrived == (0, 1)
    bench.emit(SECOND, "a", "b")
    bench.writers[SECOND].broadcast_event(barrier)
    bench.emit(SECOND, "c", "d")
    found = [value for _, value in bench.read(8)]
    cut = found.index(barrier)
    assert set(found[:cut]) == {"a", "b"}
    assert set(found[cut + 1 :]) == {3, 4, "c", "d"}
    assert found.count(barrier) == 1


def test_at_least_once_nobody_waits_for_the_other_input() -> None:
    bench = Bench(mode=AT_LEAST_ONCE)
    bench.writers[FIRST].broadcast_event(CheckpointBarrier(1, 0))
    bench.emit(FIRST, 1)
    assert [value for _, value in bench.read()] == [1]
    bench.writers[SECOND].broadcast_event(CheckpointBarrier(1, 0))
    assert [value for _, value in bench.read()] == [CheckpointBarrier(1, 0)]


def test_what_is_held_of_both_inputs_is_given_back() -> None:
    bench = Bench()
    bench.emit(FIRST, *range(10))
    bench.emit(SECOND, "a" * 50)
    for partition in bench.partitions:
        partition.flush_all()
    assert bench.input.take(limit=4) == 4
    bench.input.next_element()
    assert len(bench.input.held_buffers) == 4
    bench.input.close()
    assert bench.input.held_buffers == []
