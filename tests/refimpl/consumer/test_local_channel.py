"""A channel that reads the queue of its own process: what it leaves behind when it goes."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ResultPartition


@pytest.fixture
def partition() -> ResultPartition:
    """One queue with a finished buffer in it, and the end behind that."""
    pool = LocalBufferPool(NetworkBufferPool(4, 16), 2, 4, "map-0", 1)
    made = ResultPartition("map-0", 1, pool, Config(segment_size_bytes=16))
    builder = made.request_builder(0)
    assert builder is not None
    made.add(builder.create_consumer(), 0)
    builder.append_and_commit(b"data")
    builder.finish()
    made.finish()
    return made


def test_a_channel_that_has_read_to_the_end_leaves_the_partition_consumed(partition: ResultPartition) -> None:
    gate = InputGate("sink-0", [LocalInputChannel(0, partition.create_view(0))])
    gate.open()
    assert not partition.is_consumed
    while (arrived := gate.poll_next()) is not None:
        if arrived.buffer is not None:
            arrived.buffer.recycle()
    assert gate.is_finished
    assert partition.is_consumed


def test_a_released_channel_reads_nothing_and_hears_nothing(partition: ResultPartition) -> None:
    """Flink: `LocalInputChannelTest#testGetNextAfterPartitionReleased`."""
    (subpartition,) = partition.subpartitions
    channel = LocalInputChannel(0, subpartition.view)
    heard: list[str] = []
    channel.open(lambda: heard.append("data"))
    heard.clear()
    channel.release()
    channel.release()
    assert channel.poll() is None
    subpartition.flush()
    assert heard == []
    assert subpartition.num_queued == 2, "what is queued is its owner's"


def test_a_late_notice_does_not_put_an_ended_channel_in_line_again(partition: ResultPartition) -> None:
    told = []

    class Listening(LocalInputChannel):
        def open(self, on_data_available):
            told.append(on_data_available)
            super().open(on_data_available)

    gate = InputGate("sink-0", [Listening(0, partition.create_view(0))])
    gate.open()
    while (arrived := gate.poll_next()) is not None:
        if arrived.buffer is not None:
            arrived.buffer.recycle()
    told[0]()
    assert not gate.is_ready
