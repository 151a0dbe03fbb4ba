"""A channel that begins with what a checkpoint has of it: in which order its bytes come, and what overtakes them."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.consumer import InputCapture, InputGate, LocalInputChannel
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ResultPartition
from refimpl.records import Alignment, CheckpointBarrier, EndOfChannelState

BARRIER = CheckpointBarrier(3, 0, alignment=Alignment.UNALIGNED)


class World:
    """A gate with one channel of this process, which has twelve bytes of a checkpoint, in buffers of four."""

    def __init__(self) -> None:
        pool = LocalBufferPool(NetworkBufferPool(8, 4), 1, 4, "map-0", 1)
        self.partition = ResultPartition("map-0", 1, pool, Config(segment_size_bytes=16))
        self.capture = InputCapture(1, lambda: None)
        channel = LocalInputChannel(0, self.partition.create_view(0))
        channel.capture = self.capture.channels[0]
        self.gate = InputGate("sink-0", [channel], most_bytes=4)
        self.gate.recover(0, b"one-two-six-")
        self.gate.open()

    def write(self, data: bytes) -> None:
        builder = self.partition.request_builder(0)
        assert builder is not None
        self.partition.add(builder.create_consumer(), 0)
        builder.append_and_commit(data)
        builder.finish()
        self.partition.subpartitions[0].flush()

    def poll(self) -> bytes | str | None:
        arrived = self.gate.poll_next()
        if arrived is None or arrived.buffer is None:
            return None if arrived is None else type(arrived.event).__name__
        data = bytes(arrived.buffer.data)
        arrived.buffer.recycle()
        return data


@pytest.mark.parametrize("num_before", [0, 2, 3])
def test_what_is_recovered_comes_first_in_buffers_of_the_usual_size(num_before: int) -> None:
    """Whenever the producer writes: a task may take a snapshot between any two of them."""
    world = World()
    polled = [world.poll() for _ in range(num_before)]
    world.write(b"new-")
    polled += [world.poll() for _ in range(5 - num_before)]
    assert polled == [b"one-", b"two-", b"six-", EndOfChannelState.__name__, b"new-"]
    assert world.poll() is None


def test_a_barrier_overtakes_what_is_recovered_and_that_is_captured() -> None:
    world = World()
    assert world.poll() == b"one-"
    world.write(b"new-")
    assert world.partition.overtake(BARRIER) == [b"new-"]
    assert list(world.capture.arrived) == [0], "it need not wait until all that is recovered was processed"
    assert world.gate.poll_priority(0) == BARRIER
    world.capture.channels[0].note_barrier(3)
    world.capture.begin(3)
    world.gate.channels[0].begin_capture(3)
    assert [world.poll() for _ in range(4)] == [b"two-", b"six-", EndOfChannelState.__name__, b"new-"]
    world.capture.note_delivered(3)
    assert world.capture.take(3) == [b"two-six-"], "what the producer has copied is none of it"
