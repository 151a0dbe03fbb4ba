"""Our producer's end and our consumer's end, over a wire that cuts anywhere, delays, and can be lost.

One seeded schedule decides who moves next. After each move the law of credit must hold: a consumer's empty buffers are
those it has not announced and those it has promised, and what it has promised is on its way, at the producer, or data
on the way back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import InputGate, NetworkInput, RemoteInputChannel
from refimpl.errors import RemoteTransportError
from refimpl.exchange import (
    AddCredit,
    BufferReceived,
    BufferResponse,
    ConsumerConnection,
    FrameDecoder,
    PartitionRequest,
    ProducerConnection,
    ResultPartitionId,
)
from refimpl.memory import Buffer, LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    KeyGroupSelector,
    PipelinedSubpartitionView,
    RecordWriter,
    ResultPartition,
    max_buffers,
    required_buffers,
)
from refimpl.records import (
    ANY,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
)
from tests.support.consumer_rig import partition, receiver


class Skipping:
    """Reads frames for the law: payloads are of no interest to it."""

    def request_buffer(self, _response: BufferResponse, _size: int) -> Buffer | None:
        return None


class Wire:
    """Bytes on their way in one direction, and the frames they are."""

    def __init__(self, version: FlinkVersion) -> None:
        self.bytes = bytearray()
        self._version = version

    def messages(self, behind: bytes = b"") -> list[object]:
        """What would arrive if nothing but `behind` followed; needs the wire to begin with a whole frame."""
        return list(FrameDecoder(Skipping(), 2**20, self._version).receive(bytes(self.bytes) + behind))


class World:
    """One partition of `num_channels` subpartitions, read over one connection; every other seed as in 2.x.

    `pieces` are what the producer has lent to its transport, which has not written them yet.
    """

    def __init__(self, seed: int, num_channels: int = 3, num_records: int = 120) -> None:
        self.random = np.random.default_rng(seed)
        segment_size = int(self.random.choice([8, 16, 29, 64]))
        version = list(FlinkVersion)[seed % 2]
        self.config = Config(segment_size_bytes=segment_size, buffer_timeout_ms=-1, flink_version=version)
        self.elements = StreamElementSerializer(ANY)
        self.home = NetworkBufferPool(max_buffers(num_channels, self.config), segment_size, version)
        pool = LocalBufferPool(
            self.home, required_buffers(num_channels), max_buffers(num_channels, self.config), "map-0", num_channels
        )
        self.partition = ResultPartition("map-0", num_channels, pool, self.config)
        self.writer = RecordWriter(self.partition, KeyGroupSelector(lambda value: value[0], 128), self.elements)
        self.producer = ProducerConnection(self, self.config)
        exclusive, floating = int(self.random.integers(1, 4)), int(self.random.integers(0, 5))
        self.away = NetworkBufferPool(num_channels * exclusive + floating, segment_size, version)
        self.floating = LocalBufferPool(self.away, 0, floating, "floating")
        self.consumer = ConsumerConnection(self.config, "to tm-1")
        self.channels = [
            RemoteInputChannel(
                0,
                receiver(index),
                f"map-0[{index}]",
                self.away.request_unpooled(exclusive, "c"),
                self.away,
                self.floating,
                self.config,
            )
            for index in range(num_channels)
        ]
        self.gates = [InputGate(f"sink-{index}", [channel], version) for index, channel in enumerate(self.channels)]
        self.inputs = [
            NetworkInput(gate, self.elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(self.config))
            for gate in self.gates
        ]
        for index, (gate, channel) in enumerate(zip(self.gates, self.channels, strict=True)):
            gate.open()
            self.consumer.request(channel, partition(0), index)
        self.requests, self.responses = Wire(version), Wire(version)
        self.pieces: list[bytes | memoryview] = []
        self.left = deque(
            StreamRecord((f"k{number % 11}", number, "x" * int(self.random.integers(0, 50))), number)
            for number in range(num_records)
        )
        self.is_finished = False
        self.has_used_floating = False
        self.results: list[tuple[int, object]] = []
        self.moves = [self.write, self.send, self.sent, self.answer, self.deliver, self.read]
        self.checks = [self.check_buffers]

    def find(self, wanted: ResultPartitionId, index: int) -> PipelinedSubpartitionView | None:
        return self.partition.create_view(index) if wanted == partition(0) else None

    # -- moves -------------------------------------------------------------------------------------

    def write(self) -> None:
        if not self.writer.resume():
            return
        if self.left and self.writer.is_available:
            self.writer.emit(self.left.popleft())
            if self.random.random() < 0.2:
                self.partition.flush_all()
        elif not self.left and not self.is_finished and not self.writer.is_blocked:
            self.is_finished = True
            self.writer.finish()

    def send(self) -> None:
        self.pieces += self.producer.data_to_send(int(self.random.integers(1, 200)))

    def sent(self) -> None:
        self.responses.bytes += b"".join(self.pieces)
        self.pieces.clear()
        self.producer.data_sent()

    def answer(self) -> None:
        self.requests.bytes += self.consumer.data_to_send()

    def deliver(self) -> None:
        for wire, take in ((self.requests, self.producer.receive_data), (self.responses, self.consumer.receive_data)):
            num_bytes = int(self.random.integers(0, 40))
            data = bytes(wire.bytes[:num_bytes])
            del wire.bytes[:num_bytes]
            take(data)

    def read(self) -> None:
        index = int(self.random.integers(len(self.inputs)))
        source = self.inputs[index]
        source.take()
        while (element := source.next_element()) is not None:
            if isinstance(element, StreamRecord):
                self.results.append((index, element.value))
        self.has_used_floating |= any(buffer.parent.recycler is self.floating for buffer in source.held_buffers)
        if self.random.random() < 0.5:  # a slow task holds what it has read
            source.recycle()

    def move(self) -> None:
        self.moves[int(self.random.integers(len(self.moves)))]()

    def run(self, is_over: Callable[[World], bool], num_moves: int = 60_000) -> None:
        for _ in range(num_moves):
            if is_over(self):
                return
            self.move()
            for check in self.checks:
                check()
        raise AssertionError(f"nothing moves any more: {self.producer}, {self.consumer}, {self.channels}")

    @property
    def is_done(self) -> bool:
        return self.consumer.is_closed and self.producer.is_closed

    def check_buffers(self) -> None:
        for channel in self.channels:
            if not channel.is_released:
                credit = channel.buffers.credit
                assert channel.buffers.num_available == credit.num_unannounced + credit.num_promised

    def check_credit(self) -> None:
        """Needs whole frames on both wires: call it when the last delivery ended with one."""
        at_producer = {reader.receiver: reader.credit for reader in self.producer.snapshot().readers.values()}
        for message in self.requests.messages():
            match message:
                case AddCredit() | PartitionRequest():
                    at_producer[message.receiver] = at_producer.get(message.receiver, 0) + message.credit
        for message in self.responses.messages(b"".join(self.pieces)):
            if isinstance(message, BufferReceived) and message.response.data_type.is_buffer:
                at_producer[message.response.receiver] += 1
        for channel in self.channels:
            if not channel.is_released:
                # A request that has not left yet brings the first credit.
                found = at_producer.get(channel.receiver, channel.initial_credit)
                assert channel.buffers.credit.num_promised == found

    def close(self) -> None:
        self.producer.connection_lost()
        for gate in self.gates:
            gate.release()
        for source in self.inputs:
            source.close()
        self.writer.close()
        self.partition.release()
        self.floating.destroy()


@pytest.mark.parametrize("seed", range(40))
def test_every_record_arrives_once_and_in_order_and_every_buffer_comes_home(seed: int) -> None:
    """Flink: `PipelinedSubpartitionTest#testConcurrentFastProduceAndSlowConsume` (P62)."""
    print(f"seed {seed}")
    world = World(seed)
    sent = list(world.left)
    world.run(lambda world: world.is_done)
    for key in {record.value[0] for record in sent}:
        arrived = [value for _, value in world.results if value[0] == key]
        assert arrived == [record.value for record in sent if record.value[0] == key]
    assert len(world.results) == len(sent)
    assert world.has_used_floating == (world.floating.num_max > 0)
    world.close()
    assert (world.home.num_free, world.away.num_free) == (len(world.home.segments), len(world.away.segments))


@pytest.mark.parametrize("seed", range(10))
def test_credit_is_never_made_or_lost(seed: int) -> None:
    print(f"seed {seed}")
    world = World(seed, num_records=40)

    def deliver_frames() -> None:
        for wire, take in (
            (world.requests, world.producer.receive_data),
            (world.responses, world.consumer.receive_data),
        ):
            if wire.bytes:
                length = int.from_bytes(wire.bytes[:4], "big")
                data = bytes(wire.bytes[:length])
                del wire.bytes[:length]
                take(data)

    world.moves[world.moves.index(world.deliver)] = deliver_frames
    world.checks.append(world.check_credit)
    world.run(lambda world: world.is_done)
    assert len(world.results) == 40
    world.close()


@pytest.mark.parametrize("seed", range(20))
def test_a_lost_connection_fails_its_channels_and_leaks_nothing(seed: int) -> None:
    print(f"seed {seed}")
    world = World(seed)
    for _ in range(int(world.random.integers(1, 1_500))):
        world.move()
    world.run(lambda world: bool(world.producer.lent_buffers))  # the transport never writes these
    open_channels = [channel for channel in world.channels if not channel.is_released]
    assert open_channels
    world.consumer.receive_end()
    assert isinstance(world.consumer.error, RemoteTransportError)
    for channel in open_channels:
        with pytest.raises(RemoteTransportError, match="unexpectedly closed"):
            channel.poll()
    world.close()
    assert (world.home.num_free, world.away.num_free) == (len(world.home.segments), len(world.away.segments))
