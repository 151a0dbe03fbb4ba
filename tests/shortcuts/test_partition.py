"""Several buffers at once, from the pool to a reader in the same process, are what one after the other would be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import LocalInputChannel
from refimpl.memory import Buffer, BufferBuilder, BufferConsumer, LocalBufferPool, MemorySegment, NetworkBufferPool
from refimpl.producer import BufferAndBacklog, PipelinedSubpartition, ResultPartition
from refimpl.records import CheckpointBarrier, EndOfSuperstep, event_to_buffer
from refimpl.shortcuts.partition import (
    FastBufferPool,
    FastLocalInputChannel,
    FastPipelinedSubpartition,
    FastResultPartition,
    add_full,
    poll_run,
    request_buffers,
)
from refimpl.trace import Trace

BARRIER = CheckpointBarrier(1, 0)


class Other(PipelinedSubpartition):
    """A learner's rules: the book's, with a note of each call."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.calls: list[str] = []

    def add(self, consumer: BufferConsumer) -> bool:
        self.calls.append("add")
        return super().add(consumer)

    def poll(self) -> BufferAndBacklog | None:
        self.calls.append("poll")
        return super().poll()


class Bench:
    """A fast partition of one channel, a reader that counts what it is told, and full buffers of 64 bytes."""

    def __init__(self, trace: Trace | None = None, num_buffers: int = 32) -> None:
        self.pool = FastBufferPool(NetworkBufferPool(num_buffers, 64), 2, num_buffers, num_channels=1)
        self.partition = FastResultPartition("map-0", 1, self.pool, Config(), trace)
        self.trace = trace
        self.num_told = self.num_recycled = 0
        self.channel = FastLocalInputChannel(0, self.partition.create_view(0))
        self.channel.open(self.on_data_available)

    @property
    def subpartition(self) -> PipelinedSubpartition:
        return self.partition.subpartitions[0]

    def on_data_available(self) -> None:
        self.num_told += 1

    def recycle_segment(self, segment: MemorySegment) -> None:
        self.num_recycled += 1

    def full(self, num_bytes: int) -> BufferConsumer:
        buffer = Buffer(MemorySegment.allocate(64), self)
        buffer.size = num_bytes
        return BufferConsumer.of_buffer(buffer)

    def add(self, *sizes: int) -> None:
        for size in sizes:
            self.subpartition.add(self.full(size))

    def add_written(self, num_bytes: int) -> None:
        """A buffer out of a builder's hands; that it has finished the queue finds out when it is read."""
        builder = self.partition.request_builder(0)
        self.partition.add(builder.create_consumer(), 0)
        builder.append_and_commit(bytes(num_bytes))
        builder.finish()

    def add_in_the_queue(self, num_bytes: int) -> None:
        """A buffer like `full`, which stands in the queue while it is filled."""
        builder = BufferBuilder(Buffer(MemorySegment.allocate(64), self))
        self.subpartition.add(builder.create_consumer())
        builder.append_and_commit(bytes(num_bytes))
        builder.finish()

    def add_event(self, event: object) -> None:
        self.subpartition.add(BufferConsumer.of_buffer(event_to_buffer(event)))

    def polls(self, most: int = 0) -> list[tuple[int, bool]]:
        """What is there to poll, to the end, `most` at once where they come at once: sizes, and which are data."""
        seen = []
        while True:
            pieces = self.channel.poll_run(most)
            if not pieces and (taken := self.channel.poll()) is not None:
                pieces = [taken.buffer]
            if not pieces:
                return seen
            for piece in pieces:
                seen.append((piece.size, piece.is_buffer))
                piece.recycle()


BEFORE = {
    "nothing": lambda bench: None,
    "one": lambda bench: bench.add(5),
    "one that is flushed": lambda bench: (bench.add(5), bench.subpartition.flush()),
    "one that is complete unseen": lambda bench: bench.add_written(5),
    "two": lambda bench: bench.add(5, 5),
    "one of two": lambda bench: (bench.add(5, 5), bench.channel.poll()),
    "blocked": lambda bench: (bench.add_event(BARRIER), bench.channel.poll()),
    "the end": lambda bench: bench.partition.finish(),
    "released": lambda bench: bench.subpartition.release(),
}


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("rules", ["fast", "another class", "fast, with a trace"])
def test_full_buffers_are_added_at_once_as_one_by_one(before: str, count: int, rules: str) -> None:
    """The same queue and books; the reader is told if it would have been, once is enough."""
    one, several = (Bench(Trace() if rules == "fast, with a trace" else None) for _ in range(2))
    for bench in (one, several):
        if rules == "another class":
            bench.partition.use(Other)
        BEFORE[before](bench)
        bench.num_told = 0
    for _ in range(count):
        if rules == "another class":
            one.subpartition.add(one.full(7))
        else:
            one.add_in_the_queue(7)
    add_full(several.partition, [several.full(7) for _ in range(count)], 0)
    assert several.partition.snapshot() == one.partition.snapshot()
    assert several.partition.has_unannounced_data == one.partition.has_unannounced_data
    assert several.subpartition.is_data_available == one.subpartition.is_data_available
    assert (several.num_told > 0) == (one.num_told > 0)
    assert several.num_told <= one.num_told
    assert several.num_recycled == one.num_recycled
    assert several.polls() == one.polls()
    if one.trace is not None and several.trace is not None:
        assert [str(each) for each in one.trace] == [str(each) for each in several.trace]


STEPS = st.lists(st.sampled_from(["data", "empty", "event", "barrier", "flush", "read", "resume"]), max_size=30)


@given(STEPS, st.integers(1, 9))
def test_a_run_is_what_as_many_polls_give(steps: list[str], most: int) -> None:
    """The same pieces, counts, numbers and events of a trace; only fewer calls."""
    one, several = Bench(Trace()), Bench(Trace())
    seen = []
    for bench, at_once in ((one, 0), (several, most)):
        read = []
        for step in steps:
            match step:
                case "data" | "empty":
                    bench.add(9 if step == "data" else 0)
                case "event" | "barrier":
                    bench.add_event(EndOfSuperstep() if step == "event" else BARRIER)
                case "flush":
                    bench.partition.flush_all()
                case "read":
                    read.append(bench.polls(at_once))
                case "resume" if bench.subpartition.is_blocked:
                    bench.channel.resume()
        seen.append((read, bench.partition.snapshot(), [str(event) for event in bench.trace or ()], bench.num_told))
    assert seen[0] == seen[1]


def test_a_run_leaves_two_entries_to_poll() -> None:
    bench = Bench()
    bench.add(*[7] * 6)
    assert [piece.size for piece in bench.channel.poll_run(3)] == [7] * 3
    assert [piece.size for piece in bench.channel.poll_run(3)] == [7]
    assert bench.channel.poll_run(3) == []


def test_of_several_full_buffers_only_the_last_is_taken_for_one_that_may_still_grow() -> None:
    bench = Bench()
    bench.subpartition.add_full([bench.full(7) for _ in range(3)])
    assert [consumer.is_finished for consumer in bench.subpartition.queue] == [True, True, False]


def test_a_run_says_what_waits_behind_each_buffer() -> None:
    bench = Bench()
    bench.add(*[7] * 5)
    assert [backlog for _, backlog in poll_run(bench.channel.view, 9)] == [3, 2, 1]


def test_there_is_no_run_behind_a_barrier_nor_from_a_channel_that_is_released() -> None:
    bench = Bench()
    bench.add_event(BARRIER)
    bench.add(*[7] * 5)
    bench.channel.poll()
    assert bench.channel.poll_run(9) == []
    bench.channel.resume()
    assert len(bench.channel.poll_run(1)) == 1
    bench.channel.release()
    assert bench.channel.poll_run(9) == []


def test_other_rules_see_every_buffer_and_the_fast_ones_come_back() -> None:
    """The same view, the same reader: which way it reads is decided by what stands behind it now."""
    bench = Bench()
    bench.partition.use(Other)
    other = bench.subpartition
    add_full(bench.partition, [bench.full(7) for _ in range(5)], 0)
    assert bench.channel.poll_run(9) == []
    assert bench.channel.poll() is not None
    assert other.calls == ["add"] * 5 + ["poll"]
    bench.partition.use(FastPipelinedSubpartition)
    assert len(bench.channel.poll_run(9)) == 2
    assert len(bench.polls(9)) == 2
    assert len(other.calls) == 6


def test_a_plain_view_and_a_plain_pool_go_one_by_one() -> None:
    pool = LocalBufferPool(NetworkBufferPool(8, 64), 2, 8, num_channels=1)
    plain, fast = ResultPartition("map-0", 1, pool, Config()), FastResultPartition("map-1", 1, pool, Config())
    channel = FastLocalInputChannel(0, plain.create_view(0))
    assert channel.poll_run(9) == []
    assert isinstance(channel, LocalInputChannel)
    assert len(request_buffers(fast, 0, 3)) == 3
    assert len(request_buffers(fast, 0, 9)) == 5


@given(
    st.sampled_from([FlinkVersion.V1_11, FlinkVersion.V2_2]),
    st.integers(2, 6),
    st.integers(0, 2),
    st.integers(0, 4),
    st.integers(0, 12),
    st.sampled_from([-1, 0, 1]),
)
def test_several_at_once_are_what_as_many_requests_give(
    version: FlinkVersion, size: int, max_overdraft: int, num_before: int, most: int, channel: int
) -> None:
    """The same segments, of the same channel, and the pool is as it would be; fewer where there are no more."""
    pools = [FastBufferPool(NetworkBufferPool(8, 16, version), 2, size, "pool", 2, 3, max_overdraft) for _ in range(2)]
    one_by_one, at_once = pools
    for pool in pools:
        for buffer in [pool.request_buffer() for _ in range(num_before)]:
            if buffer is not None:
                buffer.recycle()
    several = at_once.request_buffers(most, channel)
    singles = [buffer for _ in range(most) if (buffer := one_by_one.request_buffer(channel)) is not None]
    assert [buffer.segment.id for buffer in several] == [buffer.segment.id for buffer in singles]
    assert at_once.snapshot() == one_by_one.snapshot()
    assert list(at_once.lent.values()) == several
    for buffer in (*several, *singles):
        buffer.recycle()
    assert at_once.snapshot() == one_by_one.snapshot()
    assert at_once.num_requested == len(at_once.idle_segments)


@given(STEPS)
def test_one_by_one_the_fast_subpartition_does_what_the_book_does(steps: list[str]) -> None:
    seen = []
    for rules in (FastPipelinedSubpartition, PipelinedSubpartition):
        bench = Bench(Trace())
        bench.partition.use(rules)
        read = []
        for step in steps:
            match step:
                case "data" | "empty":
                    bench.add_written(9 if step == "data" else 0)
                case "event" | "barrier":
                    bench.add_event(EndOfSuperstep() if step == "event" else BARRIER)
                case "flush":
                    bench.partition.flush_all()
                case "read" if (taken := bench.channel.poll()) is not None:
                    read.append((taken.buffer.size, *taken[1:]))
                    taken.buffer.recycle()
                case "resume" if bench.subpartition.is_blocked:
                    bench.channel.resume()
            queue = bench.subpartition
            read.append((queue.is_data_available, queue.is_event_available, queue.count_backlog(), bench.num_told))
        bench.partition.finish()
        read += bench.polls()
        seen.append((read, bench.partition.snapshot(), [str(event) for event in bench.trace or ()], bench.num_told))
    assert seen[0] == seen[1]
