"""Builder and consumer: one published number between a writer and its readers."""

from __future__ import annotations

import random
import struct

import pytest

from refimpl.errors import LocalUsageError
from refimpl.memory import Buffer, BufferBuilder, BufferConsumer, DataType, MemorySegment, heap_buffer


class Home:
    """Where segments go."""

    num_recycled = 0

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.num_recycled += 1


@pytest.fixture
def home() -> Home:
    return Home()


@pytest.fixture
def builder(home: Home) -> BufferBuilder:
    """Room for ten ints, as Flink's own test has."""
    return BufferBuilder(Buffer(MemorySegment.allocate(40), home))


def ints(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def built(consumer: BufferConsumer) -> tuple[int, ...]:
    piece = consumer.build()
    data = bytes(piece.data)
    piece.recycle()
    return struct.unpack(f">{len(data) // 4}i", data)


def test_nothing_is_visible_before_the_commit(builder: BufferBuilder) -> None:
    """Flink: `BufferBuilderAndConsumerTest#multipleNotCommittedAppends` (P24)."""
    consumer = builder.create_consumer()
    builder.append(ints(0, 1))
    builder.append(ints(2))
    builder.append(ints(3, 42))
    assert not consumer.is_data_available
    assert built(consumer) == ()
    builder.commit()
    assert consumer.is_data_available
    assert built(consumer) == (0, 1, 2, 3, 42)


def test_an_append_takes_what_fits_and_the_rest_goes_into_the_next(builder: BufferBuilder, home: Home) -> None:
    """Flink: `BufferBuilderAndConsumerTest#appendOverSize` (P25)."""
    source = ints(*range(11))
    assert builder.append_and_commit(source) == 40
    assert builder.is_full
    assert builder.append(source, 40) == 0
    following = BufferBuilder(Buffer(MemorySegment.allocate(40), home))
    assert following.append_and_commit(source, 40) == 4
    assert built(following.create_consumer_from_beginning()) == (10,)


def test_copies_start_where_the_original_stands(builder: BufferBuilder) -> None:
    """Flink: `BufferBuilderAndConsumerTest#copy` (P26)."""
    one = builder.create_consumer()
    builder.append_and_commit(ints(0, 1))
    two = one.copy()
    builder.append_and_commit(ints(2))
    assert built(one) == built(two) == (0, 1, 2)
    three = one.copy()
    builder.append_and_commit(ints(3, 42))
    four = one.copy()
    assert built(one) == built(two) == built(three) == built(four) == (3, 42)


def test_successive_builds_never_overlap(builder: BufferBuilder) -> None:
    """Flink: `BufferBuilderAndConsumerTest#buildingBufferMultipleTimes` (P27)."""
    consumer = builder.create_consumer()
    builder.append_and_commit(ints(0, 1))
    builder.append_and_commit(ints(2))
    assert built(consumer) == (0, 1, 2)
    builder.append_and_commit(ints(3, 42))
    builder.append_and_commit(ints(44))
    assert built(consumer) == (3, 42, 44)
    while not builder.is_full:
        builder.append_and_commit(ints(8))
    assert built(consumer) == (8, 8, 8, 8)


@pytest.mark.parametrize("num_ints", [0, 5, 10])
def test_a_consumer_notices_the_end_only_when_it_builds(builder: BufferBuilder, num_ints: int) -> None:
    """An end with nothing written needs a number of its own, since minus zero is zero.

    Flink: `BufferBuilderAndConsumerTest#emptyIsFinished` (P28).
    """
    consumer = builder.create_consumer()
    builder.append_and_commit(ints(*range(num_ints)))
    assert consumer.written_bytes == 0
    assert built(consumer) == tuple(range(num_ints))
    assert consumer.written_bytes == 4 * num_ints
    assert (builder.finish(), builder.finish()) == (4 * num_ints, 4 * num_ints)
    assert builder.is_finished
    assert not consumer.is_finished
    assert built(consumer) == ()
    assert consumer.is_finished
    assert consumer.written_bytes == builder.committed_bytes == 4 * num_ints


def test_the_segment_goes_home_when_both_ends_are_done(builder: BufferBuilder, home: Home) -> None:
    """Flink: `BufferBuilderAndConsumerTest#recycleConsumerAndBufferBuilder` (P29)."""
    consumer = builder.create_consumer()
    builder.finish()
    assert home.num_recycled == 0
    consumer.close()
    consumer.close()
    assert (home.num_recycled, consumer.is_closed) == (1, True)


def test_a_slice_keeps_the_segment_after_its_consumer_is_closed(builder: BufferBuilder, home: Home) -> None:
    consumer = builder.create_consumer()
    builder.append_and_commit(ints(7))
    piece = consumer.build()
    builder.finish()
    consumer.close()
    assert (home.num_recycled, bytes(piece.data)) == (0, ints(7))
    piece.recycle()
    assert home.num_recycled == 1


def test_a_taken_slice_has_the_reference_of_a_consumer_that_is_done(builder: BufferBuilder, home: Home) -> None:
    consumer = builder.create_consumer()
    builder.append_and_commit(ints(1))
    open_piece = consumer.take()
    assert not consumer.is_closed
    open_piece.recycle()
    builder.append_and_commit(ints(2))
    builder.finish()
    last = consumer.take()
    assert consumer.is_closed
    assert bytes(last.data) == ints(2)
    assert home.num_recycled == 0
    last.recycle()
    assert home.num_recycled == 1


def test_what_is_taken_is_what_is_built(home: Home) -> None:
    """Whenever the builder writes, ends, and somebody looks in between; and nothing is kept or given back twice."""
    for seed in range(200):
        dice = random.Random(seed)
        builders = [BufferBuilder(Buffer(MemorySegment.allocate(64), home)) for _ in range(2)]
        watched, taken = [each.create_consumer() for each in builders]
        skipped = dice.choice([0, 0, 3, 80])
        for _ in range(dice.randint(1, 6)):
            for builder in builders:
                builder.append_and_commit(bytes(5))
            if dice.random() < 0.3:
                for builder in builders:
                    builder.finish()
            if dice.random() < 0.2:
                watched.skip(skipped)
                taken.skip(skipped)
            one, other = watched.build(), taken.take()
            where = f"seed {seed}: {one}, {other}"
            assert (one.start, one.end, watched.is_finished) == (other.start, other.end, taken.is_finished), where
            assert watched.read_position == taken.read_position, where
            one.recycle()
            other.recycle()
            if builders[0].is_finished:
                break
        for builder in builders:
            builder.finish()
        watched.close()
        taken.close()
        assert watched.buffer.is_recycled, f"seed {seed}"
        assert taken.buffer.is_recycled, f"seed {seed}"


@pytest.mark.parametrize(
    ("num_written", "capacity", "expected"),
    [(0, 20, 20), (0, 0, 0), (0, -1, 0), (12, 4, 12), (0, 41, 40), (12, -1, 12)],
)
def test_trimming_keeps_what_is_written(builder: BufferBuilder, num_written: int, capacity: int, expected: int) -> None:
    """Flink: `BufferBuilderAndConsumerTest#trimToSizeLessThanWritten` (P30)."""
    builder.append_and_commit(bytes(num_written))
    builder.trim(capacity)
    assert builder.capacity == expected
    assert builder.room == expected - num_written


@pytest.mark.parametrize("position", [0, 3, 7, 9])
def test_a_full_buffer_is_taken_as_it_is_built_from_wherever_its_reader_stands(home: Home, position: int) -> None:
    """Also by one of several, and by one that has been asked for more than there is."""
    buffer = Buffer(MemorySegment.allocate(8), home, size=7)
    first = BufferConsumer.of_buffer(buffer)
    one, other = (first.copy_with_reader_position(position) for _ in range(2))
    by_build, by_take = one.build(), other.take()
    assert (by_take.start, by_take.end) == (by_build.start, by_build.end) == (min(position, 7), 7)
    assert one.read_position == max(position, 7)
    assert other.read_position >= 7
    assert (other.is_closed, buffer.num_references) == (True, 4)
    again = other.take()  # it has given its reference away, so this piece has one of its own
    assert (again.start, again.end, buffer.num_references) == (7, 7, 5)
    one.close()
    other.close()
    for each in (first, by_build, by_take, again):
        each.close() if isinstance(each, BufferConsumer) else each.recycle()
    assert home.num_recycled == 1


def test_a_builder_has_one_consumer(builder: BufferBuilder) -> None:
    """Flink: `BufferBuilderAndConsumerTest#creatingBufferConsumerTwice`."""
    builder.create_consumer()
    with pytest.raises(LocalUsageError, match="copy that one"):
        builder.create_consumer_from_beginning()


def test_a_consumer_starts_at_what_is_committed_unless_told_to_start_at_the_beginning(home: Home) -> None:
    from_beginning = BufferBuilder.create_consumer_from_beginning
    for make, expected in ((BufferBuilder.create_consumer, (2,)), (from_beginning, (1, 2))):
        builder = BufferBuilder(Buffer(MemorySegment.allocate(40), home))
        builder.append_and_commit(ints(1))
        consumer = make(builder)
        builder.append_and_commit(ints(2))
        assert built(consumer) == expected


def test_a_finished_builder_takes_nothing_more(builder: BufferBuilder) -> None:
    builder.create_consumer()
    builder.append(ints(1))
    assert builder.finish() == 4  # what was appended is committed with the end
    with pytest.raises(LocalUsageError, match="finished"):
        builder.append(ints(2))
    builder.commit()
    assert builder.committed_bytes == 4


def test_an_event_is_finished_from_birth_and_built_once() -> None:
    """Flink: `EventSerializerTest#testToBufferConsumer` (P104)."""
    consumer = BufferConsumer.of_buffer(heap_buffer(ints(5), DataType.EVENT))
    assert consumer.is_finished
    assert not consumer.is_buffer
    assert built(consumer) == (5,)
    assert built(consumer) == ()


def test_skipped_bytes_are_not_built(builder: BufferBuilder) -> None:
    consumer = builder.create_consumer()
    builder.append_and_commit(ints(1, 2))
    consumer.skip(4)
    assert consumer.unread_bytes == 4
    assert built(consumer) == (2,)
    assert built(consumer.copy_with_reader_position(4)) == (2,)


def test_what_is_packed_in_place_is_published_with_advance(builder: BufferBuilder) -> None:
    consumer = builder.create_consumer()
    struct.pack_into(">i", builder.memory, builder.written_bytes, 9)
    assert built(consumer) == ()
    builder.advance(4)
    assert built(consumer) == (9,)
