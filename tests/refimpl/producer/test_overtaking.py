"""A barrier that overtakes: where it stands, what it passes, who is told; and what is recovered comes first."""

from __future__ import annotations

import pytest

from refimpl.config import FlinkVersion
from refimpl.memory import BufferBuilder, BufferConsumer, heap_buffer
from refimpl.memory.data_type import DataType
from refimpl.producer import (
    PipelinedSubpartition,
    SubpartitionQueue,
    has_waiting,
    overtake,
    overtake_waiting,
    put_recovered,
)
from refimpl.records import Alignment, CheckpointBarrier, EndOfSuperstep, Event, event_from_bytes, event_to_buffer

VERSIONS = pytest.mark.parametrize("version", FlinkVersion)


@pytest.fixture
def rules() -> type[SubpartitionQueue]:
    """The kind of subpartition that is overtaken in."""
    return PipelinedSubpartition


class Reader:
    """A subpartition with a reader that counts what it is told, of data and of what has overtaken."""

    def __init__(self, rules: type[SubpartitionQueue], version: FlinkVersion) -> None:
        self.version = version
        self.queue = rules(0)
        self.told: list[str] = []
        self.queue.view.open(lambda: self.told.append("data"), lambda: self.told.append("priority"))

    def add(self, data: bytes) -> None:
        self.queue.add(BufferConsumer.of_buffer(heap_buffer(data, DataType.DATA)))

    def add_open(self, data: bytes) -> BufferBuilder:
        builder = BufferBuilder(heap_buffer(bytes(8), DataType.DATA))
        self.queue.add(builder.create_consumer())
        builder.append_and_commit(data)
        return builder

    def add_event(self, event: Event) -> None:
        self.queue.add(BufferConsumer.of_buffer(event_to_buffer(event, self.version)))

    def overtake(self, checkpoint_id: int) -> bytes:
        barrier = CheckpointBarrier(checkpoint_id, 0, alignment=Alignment.UNALIGNED)
        return overtake(self.queue, BufferConsumer.of_buffer(event_to_buffer(barrier, self.version)))

    def poll(self) -> object:
        """The next data as text, the id of a barrier, or another event; `None` if there is nothing."""
        taken = self.queue.poll()
        if taken is None:
            return None
        data = bytes(taken.buffer.data)
        if taken.buffer.is_buffer:
            return data.decode()
        event = event_from_bytes(data, self.version)
        return event.checkpoint_id if isinstance(event, CheckpointBarrier) else event


@VERSIONS
def test_a_barrier_comes_first_and_what_it_passes_is_copied_but_for_events(
    rules: type[SubpartitionQueue], version: FlinkVersion
) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testBarrierOvertaking` (P58)."""
    reader = Reader(rules, version)
    for data in (b"1", b"2"):
        reader.add(data)
    reader.add_event(EndOfSuperstep())
    reader.add(b"4")
    told = list(reader.told)
    assert reader.overtake(7) == b"124"
    assert reader.told == [*told, "priority"]
    assert [reader.poll() for _ in range(6)] == [7, "1", "2", EndOfSuperstep(), "4", None]


@VERSIONS
def test_of_an_open_buffer_what_is_committed_and_not_read_is_copied(
    rules: type[SubpartitionQueue], version: FlinkVersion
) -> None:
    reader = Reader(rules, version)
    builder = reader.add_open(b"abc")
    reader.queue.flush()
    assert reader.poll() == "abc"
    builder.append_and_commit(b"de")
    builder.append(b"f")
    assert reader.overtake(1) == b"de"
    assert reader.poll() == 1
    builder.finish()
    assert reader.poll() == "def"


@VERSIONS
def test_two_barriers_stay_in_their_order(rules: type[SubpartitionQueue], version: FlinkVersion) -> None:
    reader = Reader(rules, version)
    reader.add(b"a")
    assert (reader.overtake(1), reader.overtake(2)) == (b"a", b"a")
    assert [reader.poll() for _ in range(4)] == [1, 2, "a", None]


@pytest.mark.parametrize(("version", "passes"), [(FlinkVersion.V1_11, False), (FlinkVersion.V2_2, True)])
def test_in_2_x_a_barrier_passes_a_queue_that_an_aligned_one_has_blocked(
    rules: type[SubpartitionQueue], version: FlinkVersion, passes: bool
) -> None:
    """Flink: `PipelinedSubpartitionWithReadViewTest#testPriorityEventBypassesBlockedSubpartition` (P59),
    `PipelinedSubpartitionWithReadViewTest#testDataStillBlockedAfterPriorityEventBypasses` (P59).
    """
    reader = Reader(rules, version)
    reader.add_event(CheckpointBarrier(1, 0))
    reader.add(b"a")
    assert reader.poll() == 1
    assert reader.overtake(2) == b"a"
    assert reader.queue.has_priority_event is passes
    assert reader.queue.is_event_available is passes
    assert reader.poll() == (2 if passes else None)
    assert reader.poll() is None, "data is still blocked"
    assert not reader.queue.is_data_available
    reader.told.clear()
    reader.queue.view.resume()
    assert reader.told == (["data"] if passes else ["priority", "data"])
    assert reader.poll() == ("a" if passes else 2)


def test_nothing_overtakes_where_nobody_reads_any_more(rules: type[SubpartitionQueue]) -> None:
    reader = Reader(rules, FlinkVersion.V1_11)
    reader.queue.release()
    assert reader.overtake(1) == b""
    assert reader.poll() is None


def test_a_queue_that_is_replaced_keeps_what_has_overtaken_in_front(rules: type[SubpartitionQueue]) -> None:
    reader = Reader(rules, FlinkVersion.V2_2)
    reader.add(b"a")
    reader.overtake(1)
    other = PipelinedSubpartition(0)
    other.take_over(reader.queue)
    reader.queue = other
    assert reader.overtake(2) == b"a"
    assert [reader.poll() for _ in range(3)] == [1, 2, "a"]


def test_what_is_recovered_comes_first_in_pieces_that_fit_a_segment(rules: type[SubpartitionQueue]) -> None:
    queue = rules(0)
    put_recovered(queue, b"abcdefgh", 3)
    queue.add(BufferConsumer.of_buffer(heap_buffer(b"new", DataType.DATA)))
    pieces = [queue.poll() for _ in range(5)]
    assert [None if piece is None else bytes(piece.buffer.data) for piece in pieces] == [
        b"abc", b"def", b"gh", b"new", None,
    ]  # fmt: skip


# -- a barrier that has waited too long ----------------------------------------------------------------

TIMED = CheckpointBarrier(4, 0, alignment_timeout_ms=10)


def test_a_barrier_that_waits_goes_to_the_head_and_what_was_before_it_is_copied(rules: type[SubpartitionQueue]) -> None:
    reader = Reader(rules, FlinkVersion.V2_2)
    reader.add(b"one")
    reader.add_event(EndOfSuperstep())
    reader.add(b"two")
    reader.add_event(TIMED)
    reader.add(b"behind")
    reader.told.clear()
    assert has_waiting(reader.queue, TIMED)
    assert overtake_waiting(reader.queue, TIMED) == b"onetwo"
    assert reader.told == ["priority"]
    assert not has_waiting(reader.queue, TIMED)
    taken = reader.queue.poll()
    assert taken is not None
    assert event_from_bytes(taken.buffer.data, FlinkVersion.V2_2) == TIMED.as_unaligned()
    assert not reader.queue.is_blocked, "it stops nobody any more"
    assert [reader.poll() for _ in range(5)] == ["one", EndOfSuperstep(), "two", "behind", None]
    assert overtake_waiting(reader.queue, TIMED) == b""


def test_what_a_barrier_made_complete_can_be_read_when_it_has_gone_ahead(rules: type[SubpartitionQueue]) -> None:
    reader = Reader(rules, FlinkVersion.V2_2)
    reader.add_open(b"x")
    reader.add_event(TIMED)
    assert overtake_waiting(reader.queue, TIMED) == b"x"
    assert [reader.poll(), reader.queue.is_data_available, reader.poll()] == [4, True, "x"]


def test_a_barrier_that_has_been_read_or_is_of_another_checkpoint_passes_nothing(
    rules: type[SubpartitionQueue],
) -> None:
    reader = Reader(rules, FlinkVersion.V2_2)
    reader.add_event(CheckpointBarrier(3, 0, alignment_timeout_ms=10))
    reader.add(b"one")
    assert overtake_waiting(reader.queue, TIMED) == b""
    assert reader.poll() == 3
    assert not has_waiting(reader.queue, CheckpointBarrier(3, 0, alignment_timeout_ms=10))


def test_it_goes_ahead_though_the_partition_has_ended_behind_it(rules: type[SubpartitionQueue]) -> None:
    reader = Reader(rules, FlinkVersion.V2_2)
    reader.add(b"one")
    reader.add_event(TIMED)
    reader.queue.finish(FlinkVersion.V2_2)
    assert overtake_waiting(reader.queue, TIMED) == b"one"
    assert [reader.poll(), reader.poll()] == [4, "one"]
