"""Channels and the gate: a fair turn for each, and the end of all."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ResultPartition
from refimpl.records import CheckpointBarrier, EndOfChannelState, EndOfPartition


class Bench:
    """A gate that reads channel i of one partition; buffers are filled with the number of their channel."""

    def __init__(self, channels: int, buffers: int = 64) -> None:
        self.home = NetworkBufferPool(buffers, 4)
        pool = LocalBufferPool(self.home, 1, num_channels=channels)
        self.partition = ResultPartition("map-0", channels, pool, Config())
        self.num_ready = 0
        locals_ = [LocalInputChannel(i, sub.view) for i, sub in enumerate(self.partition.subpartitions)]
        self.gate = InputGate("sink-0", locals_, on_ready=self.on_ready)
        self.gate.open()

    def on_ready(self) -> None:
        self.num_ready += 1

    def fill(self, channel: int, count: int = 1) -> None:
        for _ in range(count):
            builder = self.partition.request_builder(channel)
            assert builder is not None
            self.partition.add(builder.create_consumer(), channel)
            builder.append_and_commit(bytes((channel,)) * 4)
            builder.finish()

    def poll(self) -> tuple[int, str, bool] | None:
        arrived = self.gate.poll_next()
        if arrived is None:
            return None
        if arrived.buffer is None:
            return arrived.channel_index, type(arrived.event).__name__, arrived.is_more_available
        assert bytes(arrived.buffer.data) == bytes((arrived.channel_index,)) * 4
        arrived.buffer.recycle()
        return arrived.channel_index, "buffer", arrived.is_more_available


def test_channels_take_turns_and_only_the_last_says_there_is_no_more() -> None:
    """Flink: `SingleInputGateTest#testBasicGetNextLogic` (P92)."""
    bench = Bench(2)
    bench.fill(0, 2)
    bench.partition.subpartitions[0].flush()
    bench.fill(1)
    bench.partition.finish()
    order = [bench.poll() for _ in range(6)]
    assert order == [
        (0, "buffer", True),
        (1, "buffer", True),
        (0, "buffer", True),
        (1, "EndOfPartition", True),
        (0, "EndOfPartition", False),
        None,
    ]
    assert bench.gate.is_finished
    assert bench.home.num_free + bench.partition.pool.snapshot().num_idle == 64


def test_no_channel_is_ever_more_than_one_buffer_ahead() -> None:
    """37 channels with 27 buffers each.

    Flink: `InputGateFairnessTest#testFairConsumptionRemoteChannelsPreFilled` (P98).
    """
    bench = Bench(37, 37 * 27)
    for channel in range(37):
        bench.fill(channel, 27)
    bench.partition.flush_all()
    counts = [0] * 37
    for _ in range(37 * 27):
        channel, _, _ = bench.poll()
        counts[channel] += 1
        assert max(counts) - min(counts) <= 1
    assert bench.poll() is None


def test_a_channel_stands_in_line_once() -> None:
    bench = Bench(2)
    for _ in range(3):
        bench.fill(0)
        bench.partition.flush_all()
    assert bench.gate.snapshot().ready == (0,)
    assert bench.num_ready == 1


def test_the_gate_is_ready_when_a_channel_is() -> None:
    bench = Bench(2)
    assert not bench.gate.is_ready
    bench.fill(1)
    assert not bench.gate.is_ready  # not announced yet
    bench.partition.flush_all()
    assert bench.gate.is_ready
    assert (bench.poll(), bench.gate.is_ready) == ((1, "buffer", False), False)


def test_a_barrier_stops_its_channel_until_it_is_resumed() -> None:
    bench = Bench(2)
    bench.partition.broadcast_event(CheckpointBarrier(1, 0))
    bench.fill(0, 2)
    assert [bench.poll(), bench.poll(), bench.poll()] == [
        (0, "CheckpointBarrier", True),
        (1, "CheckpointBarrier", False),
        None,
    ]
    bench.gate.channels[0].resume()
    assert bench.poll() == (0, "buffer", False)


def test_a_released_gate_reads_nothing() -> None:
    bench = Bench(1)
    bench.fill(0)
    bench.partition.flush_all()
    bench.gate.release()
    assert bench.poll() is None
    assert bench.gate.snapshot().channels[0].is_released


def test_the_snapshot_names_the_producer_and_what_waits() -> None:
    bench = Bench(2)
    bench.fill(1, 3)
    shot = bench.gate.snapshot()
    assert (shot.name, shot.ready, shot.num_ended) == ("sink-0", (1,), 0)
    channels = [(channel.producer, channel.num_available) for channel in shot.channels]
    assert channels == [("map-0[0]", 0), ("map-0[1]", 3)]


def test_the_end_of_one_channel_is_not_the_end_of_the_gate() -> None:
    bench = Bench(2)
    bench.partition.subpartitions[1].finish()
    arrived = bench.gate.poll_next()
    assert (arrived.channel_index, arrived.event) == (1, EndOfPartition())
    assert (bench.gate.is_finished, bench.gate.snapshot().num_ended) == (False, 1)


def test_an_event_of_a_restore_that_a_peer_sends_by_itself_changes_nothing() -> None:
    """It is what ends recovered bytes, and here are none: any peer may send it, and no channel begins anew."""
    bench = Bench(2)
    bench.partition.broadcast_event(EndOfChannelState())
    bench.fill(1)
    bench.partition.subpartitions[1].flush()
    polled = [bench.poll() for _ in range(3)]
    assert sorted(each[:2] for each in polled if each) == [
        (0, "EndOfChannelState"),
        (1, "EndOfChannelState"),
        (1, "buffer"),
    ]
