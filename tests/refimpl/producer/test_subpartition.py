"""The producer's queue: when the consumer is told, what a poll gives, and the backlog."""

from __future__ import annotations

import itertools

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import LocalUsageError
from refimpl.memory import Buffer, BufferBuilder, BufferConsumer, MemorySegment
from refimpl.producer import (
    SUBPARTITION_TRANSITIONS,
    VIEW_TRANSITIONS,
    DirtyChannels,
    PipelinedSubpartition,
    SubpartitionEvent,
    SubpartitionState,
    ViewEvent,
    ViewState,
)
from refimpl.records import (
    Alignment,
    CheckpointBarrier,
    EndOfPartition,
    EndOfSuperstep,
    Event,
    event_from_bytes,
    event_to_buffer,
)


class Bench:
    """A subpartition, a reader that counts what it is told, and builders of 2048 bytes."""

    def __init__(self) -> None:
        self.dirty = DirtyChannels()
        self.subpartition = PipelinedSubpartition(0, dirty=self.dirty)
        self.num_told = 0
        self.num_recycled = 0
        self.subpartition.view.open(self.on_data_available)

    def on_data_available(self) -> None:
        self.num_told += 1

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.num_recycled += 1

    def builder(self, num_bytes: int = 0) -> tuple[BufferBuilder, BufferConsumer]:
        builder = BufferBuilder(Buffer(MemorySegment.allocate(2048), self))
        consumer = builder.create_consumer()
        builder.append_and_commit(bytes(num_bytes))
        return builder, consumer

    def add_open(self, num_bytes: int = 0) -> BufferBuilder:
        builder, consumer = self.builder(num_bytes)
        assert self.subpartition.add(consumer)
        return builder

    def add_finished(self, num_bytes: int = 0) -> None:
        builder, consumer = self.builder(num_bytes)
        builder.finish()
        assert self.subpartition.add(consumer)

    def add_event(self, event: Event) -> None:
        assert self.subpartition.add(BufferConsumer.of_buffer(event_to_buffer(event)))

    def poll(self) -> tuple[int, bool, int, bool] | None:
        """(bytes, more available, backlog, next is an event), the buffer given back."""
        taken = self.subpartition.poll()
        if taken is None:
            return None
        size = taken.buffer.size
        taken.buffer.recycle()
        return size, taken.is_more_available, taken.backlog, taken.is_event_next


@pytest.fixture
def bench() -> Bench:
    return Bench()


BARRIER = CheckpointBarrier(1, 1000)


def test_two_open_buffers_break_a_law(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testAddTwoNonFinishedBuffer` (P50)."""
    bench.add_open()
    bench.add_open()
    with pytest.raises(AssertionError, match="the buffer at the head is open"):
        bench.subpartition.poll()


def test_an_empty_open_buffer_is_nothing_to_read(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testAddEmptyNonFinishedBuffer` (P51)."""
    builder = bench.add_open()
    assert (bench.num_told, bench.poll()) == (0, None)
    builder.finish()
    bench.add_open()
    assert bench.num_told == 1
    assert bench.subpartition.count_backlog() == 1
    assert bench.poll() is None
    assert bench.subpartition.count_backlog() == 0
    assert bench.num_recycled == 1


def test_an_open_buffer_with_bytes_can_be_read(bench: Bench) -> None:
    """And read again when there is more.

    Flink: `PipelinedSubpartitionWithReadViewTest#testAddNonEmptyNotFinishedBuffer` (P52).
    """
    builder = bench.add_open(1024)
    assert (bench.num_told, bench.subpartition.count_backlog()) == (0, 0)
    assert bench.poll() == (1024, False, 0, False)
    assert bench.poll() is None
    builder.append_and_commit(b"abc")
    assert bench.poll() == (3, False, 0, False)
    assert bench.subpartition.num_queued == 1


def test_an_open_buffer_behind_a_finished_one_is_deliverable_but_not_announced(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testUnfinishedBufferBehindFinished` (P53)."""
    bench.add_finished(1025)
    bench.add_open(1024)
    assert bench.num_told == 1
    assert bench.poll() == (1025, False, 0, False)
    assert bench.poll() == (1024, False, 0, False)
    assert bench.poll() is None


def test_a_flush_announces_the_open_buffer_behind_a_finished_one(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testFlushWithUnfinishedBufferBehindFinished` (P54)."""
    bench.add_finished(1025)
    bench.add_open(1024)
    assert bench.subpartition.count_backlog() == 1
    bench.subpartition.flush()
    assert (bench.num_told, bench.subpartition.count_backlog()) == (1, 2)
    assert bench.poll() == (1025, True, 1, False)
    assert bench.poll() == (1024, False, 0, False)


def test_a_flush_tells_once(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testFlushWithUnfinishedBufferBehindFinished2` (P55)."""
    bench.subpartition.flush()
    assert bench.num_told == 0
    bench.add_finished(1025)
    bench.add_open(1024)
    assert bench.num_told == 1
    bench.poll()
    bench.subpartition.flush()
    assert bench.num_told == 2
    bench.subpartition.flush()
    assert bench.num_told == 2


def test_a_flush_of_an_empty_open_buffer_tells_nobody(bench: Bench) -> None:
    """As of 1.10.

    Flink: `PipelinedSubpartitionWithReadViewTest#testEmptyFlush`.
    """
    bench.add_open()
    bench.subpartition.flush()
    assert (bench.num_told, bench.subpartition.is_data_available) == (0, False)


def test_empty_buffers_are_skipped(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testMultipleEmptyBuffers` (P56)."""
    told = []
    for num_bytes in (0, 0, 0):
        bench.add_finished(num_bytes)
        told.append(bench.num_told)
    bench.add_finished(1024)
    assert [*told, bench.num_told] == [0, 1, 1, 1]
    assert bench.subpartition.count_backlog() == 3
    assert bench.poll() == (1024, False, 0, False)
    assert bench.num_recycled == 4


def test_totals_count_buffers_when_added_and_bytes_when_read(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testBasicPipelinedProduceConsumeLogic` (P57)."""
    bench.add_finished(1024)
    shot = bench.subpartition.snapshot()
    assert (shot.num_buffers_total, shot.num_bytes_total) == (1, 0)
    bench.subpartition.flush()
    assert bench.poll() == (1024, False, 0, False)
    assert bench.subpartition.snapshot().num_bytes_total == 1024
    bench.add_finished(1024)
    bench.add_event(EndOfSuperstep())
    bench.add_finished(1024)
    shot = bench.subpartition.snapshot()
    assert (shot.num_buffers_total, shot.backlog) == (4, 1)
    assert bench.poll() == (1024, True, 0, True)
    assert bench.poll() == (4, False, 0, False)
    assert bench.poll() == (1024, False, 0, False)
    assert bench.subpartition.snapshot().num_bytes_total == 3 * 1024 + 4


def test_an_event_is_told_of_at_once_and_is_no_backlog(bench: Bench) -> None:
    bench.add_event(EndOfSuperstep())
    assert (bench.num_told, bench.subpartition.count_backlog(), bench.subpartition.is_event_available) == (1, 0, True)


def test_sequence_numbers_count_pieces_and_events(bench: Bench) -> None:
    """One buffer may be delivered in several pieces."""
    builder = bench.add_open(4)
    numbers = []
    for _ in range(2):
        taken = bench.subpartition.poll()
        numbers.append(taken.sequence_number)
        taken.buffer.recycle()
        builder.append_and_commit(b"xx")
    bench.poll()
    builder.finish()
    bench.add_event(EndOfSuperstep())
    taken = bench.subpartition.poll()
    assert [*numbers, taken.sequence_number] == [0, 1, 3]


@pytest.mark.parametrize("end", ["finish", "release"])
def test_what_is_added_after_the_end_is_closed_and_refused(bench: Bench, end: str) -> None:
    """Flink: `SubpartitionTestBase#testAddAfterRelease` (P63)."""
    getattr(bench.subpartition, end)()
    builder, consumer = bench.builder(4)
    builder.finish()
    assert not bench.subpartition.add(consumer)
    assert (consumer.is_closed, bench.num_recycled) == (True, 1)


def test_release_closes_what_is_queued_and_can_be_repeated(bench: Bench) -> None:
    """Flink: `SubpartitionTestBase#testReleaseIsIdempotent` (P63)."""
    bench.add_finished(4)
    bench.add_finished(4)
    bench.subpartition.release()
    bench.subpartition.release()
    assert (bench.num_recycled, bench.subpartition.num_queued) == (2, 0)
    assert bench.poll() is None


def test_a_pipelined_result_is_read_once(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionTest#testIllegalReadViewRequest` (P61)."""
    with pytest.raises(LocalUsageError, match="is being read: it can block or close, not open"):
        bench.subpartition.view.open(bench.on_data_available)


def test_a_reader_is_told_of_what_was_queued_before_it_came() -> None:
    """As up to 1.11; in 2.x the reader asks."""
    subpartition = PipelinedSubpartition(0)
    subpartition.finish()
    told = []
    subpartition.view.open(lambda: told.append(1))
    assert told == [1]


def test_the_end_is_the_last_entry_and_always_told(bench: Bench) -> None:
    """Flink: `SubpartitionTestBase#testAddAfterFinish`."""
    builder = bench.add_open(3)
    builder.finish()
    bench.subpartition.finish()
    assert bench.num_told == 1
    assert bench.subpartition.count_backlog() == 1
    assert bench.poll() == (3, True, 0, True)
    taken = bench.subpartition.poll()
    assert event_from_bytes(taken.buffer.data) == EndOfPartition()
    with pytest.raises(LocalUsageError, match="is finished: it can release, not finish"):
        bench.subpartition.finish()


def test_a_blocking_event_stops_everything_until_resume(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testBlockedByCheckpointAndResumeConsumption`."""
    bench.add_event(BARRIER)
    assert bench.poll() == (30, False, 0, False)
    told = bench.num_told
    bench.add_finished(8)
    bench.add_open(8)
    bench.subpartition.flush()
    subpartition = bench.subpartition
    assert (bench.num_told, bench.poll()) == (told, None)
    assert (subpartition.count_backlog(), subpartition.is_data_available) == (2, False)
    subpartition.view.resume()
    assert bench.num_told == told + 1
    assert bench.poll() == (8, True, 1, False)


@pytest.mark.parametrize(
    ("behind", "is_told"), [("event", True), ("two", True), ("flushed", False), ("unflushed", False)]
)
def test_resume_tells_only_of_what_can_be_read(bench: Bench, behind: str, is_told: bool) -> None:
    """As 1.11.4 has it: it forgets the flush of a single buffer while blocked; 2.x remembers.

    Flink: `PipelinedSubpartitionWithReadViewTest#testResumeBlockedSubpartition…` (P60).
    """
    bench.add_event(BARRIER)
    bench.poll()
    if behind == "event":
        bench.add_event(EndOfSuperstep())
    else:
        bench.add_finished(8)
        if behind == "two":
            bench.add_open()
        if behind == "flushed":
            bench.subpartition.flush()
    told = bench.num_told
    bench.subpartition.view.resume()
    assert (bench.num_told > told) is is_told


def test_a_forgotten_flush_can_be_repeated(bench: Bench) -> None:
    bench.add_event(BARRIER)
    bench.poll()
    bench.add_finished(8)
    bench.subpartition.flush()
    bench.subpartition.view.resume()
    assert bench.subpartition.has_unannounced_data
    bench.subpartition.flush()
    assert bench.poll() == (8, False, 0, False)


def test_a_reader_that_left_is_told_nothing_and_leaves_the_queue_as_it_is(bench: Bench) -> None:
    bench.add_finished(8)
    bench.subpartition.view.close()
    told = bench.num_told
    bench.add_open(8)
    bench.subpartition.finish()
    assert (bench.num_told, bench.subpartition.num_queued, bench.subpartition.view.is_consumed) == (told, 3, True)
    with pytest.raises(LocalUsageError, match="is consumed: it can close, not open"):
        bench.subpartition.view.open(bench.on_data_available)


def test_nobody_has_left_where_nobody_came() -> None:
    subpartition = PipelinedSubpartition(0)
    subpartition.view.close()
    assert not subpartition.view.is_consumed


@pytest.mark.parametrize(("cause", "num_told"), [("disk full", 1), (None, 0)])
def test_a_release_tells_the_reader_only_of_a_failure(bench: Bench, cause: str | None, num_told: int) -> None:
    bench.add_open(8)
    bench.subpartition.release(cause)
    assert (bench.num_told, bench.subpartition.failure_cause, bench.poll()) == (num_told, cause, None)
    bench.subpartition.release("a later cause" if cause else None)
    assert (bench.num_told, bench.subpartition.failure_cause) == (num_told, cause)


def test_nothing_is_available_after_a_release(bench: Bench) -> None:
    bench.add_finished(8)
    bench.add_open(8)
    bench.subpartition.flush()
    bench.subpartition.release()
    assert not bench.subpartition.is_data_available


def test_an_unaligned_or_loose_barrier_does_not_block(bench: Bench) -> None:
    bench.add_event(CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE))
    bench.poll()
    bench.add_finished(8)
    bench.subpartition.flush()
    assert bench.poll() == (8, False, 0, False)


def test_resume_without_a_block_is_a_mistake(bench: Bench) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testBlockedByCheckpointAndResumeConsumption`."""
    with pytest.raises(LocalUsageError, match="is being read: it can block or close, not resume"):
        bench.subpartition.view.resume()


def test_unannounced_data_is_what_a_flush_would_tell(bench: Bench) -> None:
    subpartition = bench.subpartition
    seen = [subpartition.has_unannounced_data]
    builder = bench.add_open()
    seen.append(subpartition.has_unannounced_data)
    builder.append_and_commit(b"x")
    seen.append(subpartition.has_unannounced_data)
    subpartition.flush()
    seen.append(subpartition.has_unannounced_data)
    bench.poll()
    seen.append(subpartition.has_unannounced_data)
    assert seen == [False, False, True, False, False]


def test_the_snapshot_shows_each_entry(bench: Bench) -> None:
    bench.add_finished(5)
    bench.add_open(7)
    first, second = bench.subpartition.snapshot().queue
    assert (first.written_bytes, first.unread_bytes, first.capacity_bytes, first.is_finished) == (5, 5, 2048, True)
    assert (second.written_bytes, second.is_finished) == (7, False)


def test_the_end_follows_the_version() -> None:
    subpartition = PipelinedSubpartition(0)
    subpartition.view.open(lambda: None)
    subpartition.finish(FlinkVersion.V2_2)
    assert subpartition.poll().buffer.data_type.name == "END_OF_PARTITION"


class OneByOne(PipelinedSubpartition):
    """Other rules, with something of their own."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.polls = []

    def poll(self) -> object:
        self.polls.append(self.num_queued)
        return super().poll()


def test_other_rules_take_over_what_is_queued_and_the_reader(bench: Bench) -> None:
    bench.add_finished(8)
    bench.add_open(3)
    told, first = bench.num_told, bench.subpartition
    second = bench.subpartition = OneByOne(0)
    second.take_over(first)
    assert (first.num_queued, first.is_released, second.view.subpartition) == (0, True, second)
    assert (bench.poll(), bench.poll()) == ((8, False, 0, False), (3, False, 0, False))
    second.flush()
    assert (second.polls, bench.num_told) == ([2, 1], told)
    third = bench.subpartition = PipelinedSubpartition(0)
    third.take_over(second)
    assert bench.poll() is None
    assert second.polls == [2, 1]


def test_after_an_empty_commit_the_next_record_is_flushed() -> None:
    """The buffer at the head was looked at and had nothing: what comes later is news all the same."""
    bench = Bench()
    first = bench.add_open()
    first.finish()
    second = bench.add_open()
    second.commit()
    assert bench.dirty.take() == [0]
    bench.subpartition.flush_dirty()
    assert bench.poll() is None
    second.append_and_commit(b"abc")
    assert list(bench.dirty) == [0]


PATHS_OF_THE_PRODUCER = {
    SubpartitionState.OPEN: [],
    SubpartitionState.FINISHED: [SubpartitionEvent.FINISH],
    SubpartitionState.ABANDONED: [SubpartitionEvent.RELEASE],
    SubpartitionState.RELEASED: [SubpartitionEvent.FINISH, SubpartitionEvent.RELEASE],
}
PATHS_OF_THE_READER = {
    ViewState.UNREAD: [],
    ViewState.READING: [ViewEvent.OPEN],
    ViewState.BLOCKED: [ViewEvent.OPEN, ViewEvent.BLOCK],
    ViewState.CONSUMED: [ViewEvent.OPEN, ViewEvent.CLOSE],
}


def happen(subpartition: PipelinedSubpartition, event: SubpartitionEvent | ViewEvent) -> None:
    view = subpartition.view
    match event:
        case SubpartitionEvent.FINISH:
            subpartition.finish()
        case SubpartitionEvent.RELEASE:
            subpartition.release()
        case ViewEvent.OPEN:
            view.open(lambda: None)
        case ViewEvent.BLOCK:
            view.block()
        case ViewEvent.RESUME:
            view.resume()
        case ViewEvent.CLOSE:
            view.close()


@pytest.mark.parametrize(
    ("state", "event"),
    [
        *itertools.product(PATHS_OF_THE_PRODUCER, SubpartitionEvent),
        *itertools.product(PATHS_OF_THE_READER, ViewEvent),
    ],
)
def test_every_event_in_every_state_does_what_its_table_says(
    state: SubpartitionState | ViewState, event: SubpartitionEvent | ViewEvent
) -> None:
    """An event its row does not name is refused, and the state stays."""
    subpartition = PipelinedSubpartition(0)
    for step in (PATHS_OF_THE_PRODUCER | PATHS_OF_THE_READER)[state]:
        happen(subpartition, step)
    of_producer = isinstance(state, SubpartitionState)
    table = SUBPARTITION_TRANSITIONS if of_producer else VIEW_TRANSITIONS
    wanted = table[state].get(event)
    if wanted is None:
        with pytest.raises(LocalUsageError, match=f"not {event.value}$"):
            happen(subpartition, event)
    else:
        happen(subpartition, event)
    assert (subpartition.producer_state if of_producer else subpartition.view.state) is (wanted or state)
