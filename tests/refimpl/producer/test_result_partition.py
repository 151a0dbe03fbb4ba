"""A partition: its pool, its subpartitions, its end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    BroadcastRecordWriter,
    BroadcastSelector,
    PartitionSnapshot,
    PipelinedSubpartition,
    RecordWriter,
    ResultPartition,
    RoundRobinSelector,
    max_buffers,
    required_buffers,
)
from refimpl.records import (
    LONG,
    CheckpointBarrier,
    EndOfPartition,
    StreamElementSerializer,
    StreamRecord,
    event_from_bytes,
)


@pytest.mark.parametrize(("channels", "required", "most"), [(1, 2, 10), (4, 5, 16), (100, 101, 208)])
def test_an_output_needs_a_buffer_for_each_channel_and_one_more(channels: int, required: int, most: int) -> None:
    """As of 1.10.

    Flink: `ResultPartitionTest#testPipelinedPartitionBufferPool`.
    """
    assert required_buffers(channels) == required
    assert max_buffers(channels, Config()) == most
    least = Config(buffers_per_channel=1, floating_buffers_per_gate=0)
    assert max_buffers(channels, least) == required


def test_a_partition_ends_on_every_channel_and_gives_its_pool_up() -> None:
    home = NetworkBufferPool(4, 16)
    pool = LocalBufferPool(home, 3, num_channels=2)
    partition = ResultPartition("map-0", 2, pool, Config())
    told = []
    for subpartition in partition.subpartitions:
        subpartition.view.open(lambda: told.append(1))
    builder = partition.request_builder(1)
    assert partition.add(builder.create_consumer(), 1)
    builder.append_and_commit(b"abc")
    assert partition.has_unannounced_data
    partition.flush(1)
    assert (told, partition.has_unannounced_data) == ([1], False)
    builder.finish()
    partition.finish()
    assert partition.is_finished
    taken = partition.subpartitions[0].poll()
    assert event_from_bytes(taken.buffer.data) == EndOfPartition()
    partition.release()
    assert home.num_free == 4
    assert pool.is_destroyed
    assert partition.snapshot().name == "map-0"


def test_an_output_that_is_asked_once_per_timeout_flushes_what_may_have_waited_that_long() -> None:
    side = Side(ResultPartition, is_broadcast=False)
    side.partition.flusher.timeout_ms = 8
    side.do("text", 0)
    side.partition.on_timeout(7.9, since_ms=0.0)
    assert ("told", 0) not in side.seen
    side.partition.on_timeout(8.0, since_ms=0.0)
    assert ("told", 0) in side.seen
    side.do("text", 1)
    side.partition.on_timeout(8.1)  # no deadline was asked for, so none has passed
    assert ("told", 1) not in side.seen


class Scanning(ResultPartition):
    """Looks at every channel, each time."""

    @property
    def has_unannounced_data(self) -> bool:
        return any(subpartition.has_unannounced_data for subpartition in self.subpartitions)

    def flush_all(self) -> None:
        for subpartition in self.subpartitions:
            subpartition.flush()


class Side:
    """A writer on a partition, with readers who note when they are told."""

    def __init__(self, kind: type[ResultPartition], is_broadcast: bool) -> None:
        config = Config(segment_size_bytes=40, num_buffers=6, buffer_timeout_ms=-1)
        self.pool = LocalBufferPool(NetworkBufferPool(6, 40), 1, num_channels=3)
        self.partition = kind("map-0", 3, self.pool, config)
        selector = BroadcastSelector() if is_broadcast else RoundRobinSelector()
        make = BroadcastRecordWriter if is_broadcast else RecordWriter
        self.writer = make(self.partition, selector, StreamElementSerializer(LONG))
        self.seen: list[object] = []
        for channel, subpartition in enumerate(self.partition.subpartitions):
            subpartition.view.open(lambda channel=channel: self.seen.append(("told", channel)))

    def do(self, action: str, channel: int) -> None:
        subpartition = self.partition.subpartitions[channel]
        match action:
            case "emit":
                self.writer.emit(StreamRecord(1, 2))
            case "text":
                self.writer.emit_to(StreamRecord(1), channel)
            case "flush all":
                self.partition.flush_all()
            case "flush":
                self.partition.flush(channel)
            case "barrier":
                self.writer.broadcast_event(CheckpointBarrier(1, 0))
            case "resume":
                if subpartition.snapshot().is_blocked:
                    subpartition.view.resume()
                self.writer.resume()
            case "poll":
                if (taken := subpartition.poll()) is not None:
                    self.seen.append((channel, bytes(taken.buffer.data), taken.backlog, taken.is_more_available))
                    taken.buffer.recycle()
        self.seen.append((self.partition.has_unannounced_data, self.partition.snapshot()))


ACTIONS = st.sampled_from(["emit", "text", "flush all", "flush", "barrier", "resume", "poll"])


@pytest.mark.slow
@given(st.booleans(), st.lists(st.tuples(ACTIONS, st.integers(0, 2)), max_size=60))
def test_a_flush_of_the_dirty_channels_does_what_a_flush_of_all_would(
    is_broadcast: bool, actions: list[tuple[str, int]]
) -> None:
    dirty, scanning = Side(ResultPartition, is_broadcast), Side(Scanning, is_broadcast)
    for action, channel in actions:
        dirty.do(action, channel)
        scanning.do(action, channel)
        assert without_segments(dirty.seen[-1]) == without_segments(scanning.seen[-1])
    assert [seen for seen in dirty.seen if seen[0] == "told"] == [seen for seen in scanning.seen if seen[0] == "told"]


def without_segments(seen: tuple[bool, PartitionSnapshot]) -> tuple[object, ...]:
    """What is seen, but for which segments: they have other numbers in another pool."""
    has_data, snapshot = seen
    subpartitions = [
        replace(subpartition, queue=tuple(replace(entry, segment_id=0) for entry in subpartition.queue))
        for subpartition in snapshot.subpartitions
    ]
    return has_data, subpartitions


def test_what_a_flush_could_not_tell_a_blocked_reader_the_next_one_tells() -> None:
    sides = Side(ResultPartition, False), Side(Scanning, False)
    for side in sides:
        for action in ("barrier", "poll", "text", "flush all", "resume", "flush all", "poll"):
            side.do(action, 0)
        assert side.seen[-2][1:2] == (bytes([0, 0, 0, 9, 1, *bytes(7), 1]),)
    assert sides[0].seen[-4] == ("told", 0)


def test_a_flush_looks_at_no_channel_in_which_nothing_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(segment_size_bytes=64, num_buffers=110)
    partition = ResultPartition("map-0", 100, LocalBufferPool(NetworkBufferPool(110, 64), 1, num_channels=100), config)
    writer = RecordWriter(partition, RoundRobinSelector(), StreamElementSerializer(LONG))
    for subpartition in partition.subpartitions:
        subpartition.view.open(lambda: None)
    looked_at = []
    flush = PipelinedSubpartition.flush
    monkeypatch.setattr(PipelinedSubpartition, "flush", lambda self: looked_at.append(self.index) or flush(self))
    for channel in [*range(100), 7, 7]:  # all have an open buffer
        writer.emit_to(StreamRecord(1), channel)
    partition.flush_all()
    assert sorted(looked_at) == list(range(100))
    partition.flush_all()
    assert len(looked_at) == 100
    for channel in (3, 5):
        taken = partition.subpartitions[channel].poll()
        assert taken is not None
        taken.buffer.recycle()
        writer.emit_to(StreamRecord(1), channel)
        writer.emit_to(StreamRecord(2), channel)
    assert partition.has_unannounced_data
    partition.flush_all()
    assert looked_at[100:] == [3, 5]
