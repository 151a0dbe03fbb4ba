"""Many records at once: the tests of the book's input with fast parts, then what runs and batches are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.records import (
    INT,
    LONG,
    MAX_WATERMARK,
    STRING,
    CheckpointBarrier,
    EndOfSuperstep,
    LatencyMarker,
    RecordBatch,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    TupleType,
    TypeSerializer,
    Watermark,
)
from refimpl.shortcuts.deserializer import FastDeserializer
from refimpl.shortcuts.input import FastNetworkInput, FastSourceInput
from tests.refimpl.consumer import test_network_input
from tests.refimpl.consumer.test_network_input import *  # noqa: F403 - the same tests
from tests.refimpl.consumer.test_network_input import Bench
from tests.shortcuts.fast_parts import fast_in


@pytest.fixture(autouse=True, scope="module")
def _fast_parts() -> Iterator[None]:
    """The imported tests find fast parts under the names of the book's."""
    with fast_in(test_network_input):
        yield


class FastBench(Bench):
    """The same writer and channels, and an input that may be asked for batches."""

    input: FastNetworkInput

    def __init__(
        self,
        channels: int = 1,
        segment: int = 64,
        kind: TypeSerializer = LONG,
        takes_batches: bool = False,
        **options: object,
    ) -> None:
        super().__init__(channels, segment, kind, **options)
        self.input = FastNetworkInput(self.input.gate, StreamElementSerializer(kind), self.make)
        self.input.takes_batches = takes_batches

    def make(self) -> FastDeserializer:
        return FastDeserializer(self.config)

    def read(self, limit: int = 1) -> list[object]:
        """Everything there is now, records one by one, read as a task with shortcuts does."""
        found = self.read_batches(limit)
        return [one for each in found for one in (each.records() if isinstance(each, RecordBatch) else [each])]

    def read_batches(self, limit: int = 1) -> list[Any]:
        """The same with batches as they are."""
        self.partition.flush_all()
        found: list[Any] = []
        source = self.input
        while source.take(limit):
            while not source.is_drained:
                if source.takes_batches and (batch := source.next_batch()) is not None:
                    found.append(batch)
                else:
                    found += source.next_records()
                if (element := source.next_other()) is not None:
                    found.append(element)
            source.recycle()
        return found


@pytest.mark.parametrize("segment", [64, 1_300])
@pytest.mark.parametrize("takes_batches", [False, True])
def test_a_record_that_is_gathered_in_a_file_is_no_part_of_a_run(
    segment: int, takes_batches: bool, tmp_path: Path
) -> None:
    spilling = {"spill_threshold_bytes": 4, "spill_directory": str(tmp_path)}
    bench = FastBench(1, segment, TupleType(LONG, LONG), takes_batches, **spilling)
    records = [StreamRecord((number, -number), number) for number in range(90)]
    bench.emit(*records)
    assert bench.read() == records


# -- batches ---------------------------------------------------------------------------------------


NAMED = TupleType(LONG, STRING)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.text("aé", max_size=2)).map(StreamRecord)
        | st.tuples(st.integers(0, 99), st.just("ab")).map(lambda value: StreamRecord(value, 7))
        | st.sampled_from([Watermark(3), StreamStatus.IDLE, EndOfSuperstep(), CheckpointBarrier(1, 0)])
        | st.sampled_from([StreamRecord((number, "x" * 5_000)) for number in range(3)])
        | st.integers(8, 60).map(lambda n: [StreamRecord((number, "abc"), number) for number in range(n)]),
        max_size=12,
    ),
    st.integers(1, 300),
    st.integers(1, 3),
    st.integers(1, 9),
    st.booleans(),
)
def test_batches_hold_what_single_records_would_be(
    items: list[object], segment: int, channels: int, limit: int, is_flushed: bool
) -> None:
    """For each channel: nothing lost, doubled or out of order, events where they were, every buffer home."""
    answers = []
    for bench in (
        Bench(channels, segment, NAMED, spill_threshold_bytes=1_000),
        FastBench(channels, segment, NAMED, spill_threshold_bytes=1_000),
        FastBench(channels, segment, NAMED, takes_batches=True, spill_threshold_bytes=1_000),
    ):
        read: list[object] = []
        for item in items:
            if isinstance(item, EndOfSuperstep | CheckpointBarrier):
                bench.writer.broadcast_event(item)
            elif isinstance(item, StreamRecord | list):
                bench.emit(*(item if isinstance(item, list) else [item]))
            else:
                bench.writer.broadcast(item)
            if is_flushed:
                bench.partition.flush_all()
            while bench.writer.is_blocked:
                read += resumed(bench, limit)
                bench.writer.resume()
        bench.writer.finish()
        read += resumed(bench, limit)
        assert bench.input.is_finished
        assert bench.num_out == 0
        answers.append(read)
    if channels == 1:
        assert answers[0] == answers[2]
    assert answers[0] == answers[1]
    assert Counter(map(repr, answers[0])) == Counter(map(repr, answers[2]))


def resumed(bench: Bench, limit: int) -> list[object]:
    """What there is, also behind barriers."""
    read = []
    while True:
        found = bench.read(limit)
        read += found
        for channel in bench.input.gate.channels:
            if channel.view.subpartition.snapshot().is_blocked:
                channel.resume()
                found.append(None)
        if not found:
            return read


def test_buffers_of_one_channel_become_one_batch_and_a_record_cut_in_two_is_in_it() -> None:
    bench = FastBench(segment=50, kind=TupleType(LONG, LONG), takes_batches=True)
    records = [StreamRecord((number, -number), number) for number in range(40)]  # 29 bytes each
    bench.emit(*records)
    bench.partition.flush_all()
    assert bench.input.take(limit=8) == 8
    first = bench.input.next_batch()
    assert first is not None
    assert list(first.records()) == records[: 8 * 50 // 29]
    assert bench.input.next_batch() is None
    bench.input.recycle()
    assert bench.num_out == 40 * 29 // 50 + 1 - 8
    [rest] = bench.read_batches(limit=16)
    assert list(rest.records()) == records[8 * 50 // 29 :]
    assert bench.num_out == 1  # the last buffer is still open


def test_large_buffers_become_several_batches() -> None:
    """One of all would be so large that the system has to clear new memory for each."""
    segment = 128 * 1024
    bench = FastBench(segment=segment, kind=TupleType(LONG, LONG), takes_batches=True)
    records = [StreamRecord((number, -number), number) for number in range(12 * segment // 29)]
    bench.emit(*records)
    batches = bench.read_batches(limit=16)
    most = 28 + segment + 512 * 1024  # a record begun, the rest of which is at hand, and what is read with that
    assert len(batches) == 3
    assert all(len(batch) * 29 <= most for batch in batches)
    assert [record for batch in batches for record in batch.records()] == records
    assert bench.num_out <= 1


def test_a_batch_ends_where_a_watermark_stands() -> None:
    bench = FastBench(segment=500, takes_batches=True)
    bench.emit(*[StreamRecord(number, number) for number in range(10)])
    bench.writer.broadcast(Watermark(5))
    bench.emit(*[StreamRecord(number, number) for number in range(9)])
    batch, watermark, rest = bench.read_batches()
    assert (len(batch), watermark, len(rest)) == (10, Watermark(5), 9)


def test_few_records_are_handed_out_one_by_one() -> None:
    bench = FastBench(takes_batches=True)
    bench.emit(StreamRecord(1, 1), StreamRecord(2, 2))
    assert bench.read_batches() == [StreamRecord(1, 1), StreamRecord(2, 2)]


def test_records_next_to_each_other_are_handed_out_as_a_run_or_one_by_one() -> None:
    bench = FastBench(segment=400)
    records = [StreamRecord(number, number) for number in range(15)]
    bench.emit(*records)
    bench.partition.flush_all()
    bench.input.take()
    assert bench.input.next_element() == records[0]
    run = bench.input.next_records()
    assert [next(run), next(run)] == records[1:3]
    assert bench.input.next_element() == records[3]
    assert not bench.input.is_drained
    assert next(bench.input.next_values()) == (4, 4)
    assert list(bench.input.next_records()) == records[5:]
    assert bench.input.is_drained
    assert (list(bench.input.next_records()), bench.input.next_element()) == ([], None)


def test_a_run_ends_where_something_else_stands() -> None:
    """A watermark, and a record without a time."""
    bench = FastBench(segment=2_000)
    timed = [StreamRecord(number, number) for number in range(10)]
    bench.emit(*timed)
    bench.writer.broadcast(Watermark(9))
    bench.writer.emit_many([*timed[:8], *(StreamRecord(number) for number in range(9)), timed[0]])
    bench.partition.flush_all()
    bench.input.take()
    runs = []
    while not bench.input.is_drained:
        runs.append((len(list(bench.input.next_records())), bench.input.next_element()))
    assert runs == [(10, Watermark(9)), (8, StreamRecord(0)), (8, timed[0])]


@pytest.mark.parametrize("position", [1, 7, 8, 30])
@pytest.mark.parametrize("other", [StreamRecord(5), Watermark(9)], ids=repr)
def test_values_come_with_their_times_up_to_what_is_no_such_record(position: int, other: object) -> None:
    bench = FastBench(segment=2_000)
    for number in range(40):
        bench.writer.emit(StreamRecord(number, -number))
        if number == position:
            bench.writer.emit_to(other, 0)
    bench.partition.flush_all()
    bench.input.take()
    found = []
    while not bench.input.is_drained:
        found += bench.input.next_values()
        element = bench.input.next_element()
        found.append((element.value, element.timestamp) if isinstance(element, StreamRecord) else element)
    expected = [(number, -number) for number in range(40)]
    expected.insert(position + 1, (5, None) if isinstance(other, StreamRecord) else other)
    assert [item for item in found if item is not None] == expected


@pytest.mark.parametrize("position", [0, 1, 31, 32, 33, 38])
def test_what_is_as_long_as_a_record_and_is_none_ends_a_run(position: int) -> None:
    """A latency marker has 29 bytes, and so has a record of three longs and an int."""
    bench = FastBench(segment=2_000, kind=TupleType(LONG, LONG, LONG, INT))
    elements: list[object] = [StreamRecord((number, -number, 2**40, 7)) for number in range(40)]
    elements.insert(position, LatencyMarker(1, 2, 3, 4))
    for element in elements:
        bench.writer.emit_to(element, 0)
    assert bench.read() == elements


def test_a_run_that_was_begun_is_forgotten_when_the_input_closes() -> None:
    bench = FastBench(segment=400)
    bench.emit(*[StreamRecord(number) for number in range(20)])
    bench.partition.flush_all()
    bench.input.take()
    next(bench.input.next_records())
    bench.input.close()
    assert (bench.input.is_drained, list(bench.input.next_records())) == (True, [])
    bench.writer.close()
    bench.partition.release()
    assert bench.num_out == 0


def test_a_batch_is_taken_apart_where_records_are_asked_for() -> None:
    """As when another function has come into the operator: by then the input may have read on."""
    bench = FastBench(segment=500, takes_batches=True)
    records = [StreamRecord(number, number) for number in range(20)]
    bench.emit(*records)
    bench.partition.flush_all()
    bench.input.take()
    assert bench.input.next_element() == records[0]
    assert list(bench.input.next_records()) == records[1:]
    assert (bench.input.next_batch(), bench.input.next_element(), bench.input.is_drained) == (None, None, True)


class Learners(test_network_input.SpillingAdaptiveSpanningRecordDeserializer):
    """A part of the book's kind that counts its calls."""

    num_calls = 0

    def get_next_record(self) -> Any:
        self.num_calls += 1
        return super().get_next_record()


@pytest.mark.parametrize("takes_batches", [False, True])
def test_a_part_of_the_books_kind_is_asked_for_each_record(takes_batches: bool) -> None:
    bench = FastBench(segment=500, takes_batches=takes_batches)
    learners = Learners(bench.config)
    bench.input.swap_deserializers([learners])
    records = [StreamRecord(number, number) for number in range(100)]
    bench.emit(*records)
    assert bench.read(limit=8) == records
    assert learners.num_calls >= 100
    bench.input.swap_deserializers([FastDeserializer(bench.config)])
    bench.emit(*records)
    assert bench.read(limit=8) == records
    assert learners.num_calls < 130


class Answers:
    """A reader that gives these answers."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = iter(answers)

    def read(self, max_records: int) -> Any:
        return next(self._answers)

    def close(self) -> None: ...


@pytest.mark.parametrize("num_elements", range(9))
def test_a_fast_source_is_behind_what_it_has_handed_on(num_elements: int) -> None:
    batch = RecordBatch([np.arange(2, 5)], None, None, False)
    answers = [[StreamRecord(0), StreamRecord(1)], batch, [], [StreamRecord(5), Watermark(7)], None]
    sources = [FastSourceInput("numbers", 0, Answers(answers), 64) for _ in range(2)]
    for _ in range(num_elements):
        while (element := sources[0].next_element()) is None:
            sources[0].take()
    assert sources[0].position == min(num_elements, 7), element
    sources[1].seek(sources[0].position)
    rest = []
    while not sources[1].is_finished:
        sources[1].take()
        while (element := sources[1].next_element()) is not None:
            rest.append(element)
    every = [*map(StreamRecord, range(6)), Watermark(7), MAX_WATERMARK]
    assert rest == every[min(num_elements, 7) :]
