"""Both ends of a connection, without credits or with them, small enough to be jammed, and a wire that holds little."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import numpy as np

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import ConnectedChannel, InputGate, NetworkInput
from refimpl.drivers.makers import makers_of
from refimpl.exchange import (
    BufferResponse,
    ConsumerConnection,
    Message,
    ResultPartitionId,
    encode,
)
from refimpl.memory import BufferSlice, DataType, LocalBufferPool, NetworkBufferPool
from refimpl.producer import ForwardSelector, PipelinedSubpartitionView, RecordWriter, ResultPartition
from refimpl.records import (
    ANY,
    CheckpointBarrier,
    Event,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    event_to_bytes,
)
from tests.support.consumer_rig import partition, receiver
from tests.support.raw_frames import frames_in

SEGMENT = 32
NO_CREDIT = Config(segment_size_bytes=SEGMENT, buffer_timeout_ms=-1, credit_based=False)
CREDIT = Config(segment_size_bytes=SEGMENT, buffer_timeout_ms=-1)


class Consumer:
    """A connection for `num_gates` gates with `num_channels` channels each; each gate has `num_buffers` buffers.

    With credits two of them are each channel's own, and the others float. What `config.shortcuts` asks for is made.
    """

    def __init__(self, num_gates: int = 1, num_channels: int = 1, num_buffers: int = 2, config: Config = NO_CREDIT):
        self.config = config
        self.makers = makers_of(config, default=False)
        self.connection = self.makers.consumer_connection(config, "to tm-1")
        self.home = NetworkBufferPool(num_gates * num_buffers, config.segment_size_bytes, config.flink_version)
        num_own = 2 if config.credit_based else 0
        num_shared = num_buffers - num_channels * num_own
        self.channels: list[ConnectedChannel] = []
        self.gates: list[InputGate] = []
        self.pools: list[LocalBufferPool] = []
        own = [self.home.request_unpooled(num_own, "own") if num_own else [] for _ in range(num_gates * num_channels)]
        for gate in range(num_gates):
            pool = LocalBufferPool(self.home, num_shared, num_shared, f"gate-{gate}")
            channels = [
                self.make_channel(index, gate * num_channels + index, pool, own.pop()) for index in range(num_channels)
            ]
            self.pools.append(pool)
            self.channels += channels
            self.gates.append(self.makers.gate(f"sink-{gate}", channels, config.flink_version))
            self.gates[-1].open()
        for index, channel in enumerate(self.channels):
            self.connection.request(channel, partition(index), 0)
        self.requests = self.connection.data_to_send()

    def make_channel(self, index: int, number: int, pool: LocalBufferPool, own: list) -> ConnectedChannel:
        name = f"map-{number}[0]"
        return self.makers.remote_channel(index, receiver(number), name, own, self.home, pool, self.config, None, None)

    def say(self, *messages: Message) -> None:
        self.connection.receive_data(b"".join(encode(message) for message in messages))

    def sent(self) -> list[Message]:
        return frames_in(self.connection.data_to_send())

    def polled(self, gate: int = 0) -> BufferSlice | Event:
        """What the gate gives now, not given back."""
        taken = self.gates[gate].poll_next()
        assert taken is not None
        return taken.buffer if taken.buffer is not None else taken.event

    def read(self, gate: int = 0) -> bytes:
        """What the gate gives now, given back."""
        buffer = self.polled(gate)
        data = bytes(buffer.data)
        buffer.recycle()
        return data

    def close(self) -> None:
        """End the connection and release everything; all segments must be at home then."""
        self.connection.receive_end()
        for gate in self.gates:
            gate.release()
        for pool in self.pools:
            pool.destroy()
        assert self.home.num_free == len(self.home.segments)


def data(channel: int, sequence_number: int, payload: bytes) -> BufferResponse:
    return BufferResponse(receiver(channel), sequence_number, 0, DataType.DATA, payload)


def event(channel: int, sequence_number: int, what: Event) -> BufferResponse:
    kind = DataType.ALIGNED_BARRIER if isinstance(what, CheckpointBarrier) else DataType.EVENT
    return BufferResponse(receiver(channel), sequence_number, 0, kind, event_to_bytes(what))


def is_reading(connection: ConsumerConnection) -> bool:
    """Whether a driver is to read from the transport."""
    return connection.pause is None


def can_resume(connection: ConsumerConnection) -> bool:
    """Whether a driver that does not read can go on."""
    return connection.pause is not None and connection.pause.is_over


def jammed(config: Config = NO_CREDIT) -> tuple[Consumer, BufferSlice]:
    """Two gates of one buffer: the first is full with what is returned, its next data is staged, the other's behind."""
    consumer = Consumer(num_gates=2, num_buffers=1, config=config)
    consumer.say(data(0, 0, b"a0"), data(0, 1, b"a1"), data(1, 0, b"b0"))
    buffer = consumer.polled(0)
    assert (buffer.data, is_reading(consumer.connection)) == (b"a0", False)
    return consumer, buffer


class Producer:
    """One partition for each of `num_partitions` tasks, each with `num_buffers` buffers, and a connection to them."""

    def __init__(self, num_partitions: int = 1, num_buffers: int = 8, config: Config = NO_CREDIT):
        self.config = config
        self.home = NetworkBufferPool(num_partitions * num_buffers, config.segment_size_bytes, config.flink_version)
        self.elements = StreamElementSerializer(ANY)
        self.partitions = [
            ResultPartition(
                f"map-{index}", 1, LocalBufferPool(self.home, num_buffers, num_buffers, f"map-{index}", 1), config
            )
            for index in range(num_partitions)
        ]
        self.writers = [RecordWriter(each, ForwardSelector(), self.elements) for each in self.partitions]
        self.connection = makers_of(config, default=False).producer_connection(self, config, "to tm-2", None)

    def find(self, wanted: ResultPartitionId, _index: int) -> PipelinedSubpartitionView | None:
        return self.partitions[wanted.number].create_view(0)

    def fill(self, *payloads: bytes) -> None:
        """Whole buffers for the first partition."""
        for payload in payloads:
            builder = self.partitions[0].request_builder(0)
            self.partitions[0].add(builder.create_consumer(), 0)
            builder.append_and_commit(payload)
            builder.finish()
        self.partitions[0].flush_all()

    def tell(self, *messages: Message) -> None:
        self.connection.receive_data(b"".join(map(encode, messages)))

    def handed_out(self) -> int:
        """Bytes of what is handed out now."""
        return sum(map(len, self.connection.data_to_send()))

    def close(self) -> None:
        self.connection.connection_lost()
        for writer, each in zip(self.writers, self.partitions, strict=True):
            writer.close()
            each.release()
        assert self.home.num_free == len(self.home.segments)


FRAME = len(encode(data(0, 0, bytes(SEGMENT))))


class World:
    """As many tasks that write as channels that read, one connection between them, and a wire that holds little.

    `unwritten` is what the producer has handed out; the wire takes of it what it has room for.
    """

    def __init__(
        self, config: Config, num_gates: int = 4, num_channels: int = 1, num_buffers: int = 4, capacity: int = 400
    ) -> None:
        self.producer = Producer(num_gates * num_channels, 4, config)
        self.consumer = Consumer(num_gates, num_channels, num_buffers, config)
        self.inputs = [
            NetworkInput(gate, self.producer.elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(config))
            for gate in self.consumer.gates
        ]
        self.left: list[deque[StreamRecord]] = [deque() for _ in self.producer.writers]
        self.capacity = capacity
        self.unwritten: deque[memoryview] = deque()
        self.responses = bytearray()
        self.requests = bytearray(self.consumer.requests)
        self.records: list[tuple[int, ...]] = []
        self.num_buffers_read = [0] * num_gates

    # -- what can happen -----------------------------------------------------------------------------

    def write(self, task: int, num_records: int = 1) -> None:
        writer, left = self.producer.writers[task], self.left[task]
        while num_records and writer.resume() and left and writer.is_available:
            writer.emit(left.popleft())
            num_records -= 1
        if writer.resume() and not left and not writer.partition.is_finished:
            writer.finish()

    def send(self, max_bytes: int = 2**31 - 1) -> bool:
        """Hand out what may be, and put on the wire what it has room for; whether that is anything."""
        self.unwritten.extend(map(memoryview, self.producer.connection.data_to_send(max_bytes)))
        num_bytes = 0
        while self.unwritten and (room := self.capacity - len(self.responses)):
            piece = self.unwritten.popleft()
            self.responses += piece[:room]
            num_bytes += len(piece[:room])
            if room < len(piece):
                self.unwritten.appendleft(piece[room:])
        self.producer.connection.data_sent(num_bytes)
        return num_bytes > 0

    def resume(self) -> bool:
        """Read on what is staged, if that can be; whether it can."""
        may_go_on = can_resume(self.consumer.connection)
        if may_go_on:
            self.consumer.connection.receive_data(b"")
        return may_go_on

    def deliver(self, num_bytes: int) -> bool:
        """Take bytes from the wire, if they are read; whether there are any."""
        if not is_reading(self.consumer.connection):
            return False
        piece = bytes(self.responses[:num_bytes])
        del self.responses[:num_bytes]
        self.consumer.connection.receive_data(piece)
        return bool(piece)

    def answer(self) -> None:
        self.requests += self.consumer.connection.data_to_send()
        self.producer.connection.receive_data(self.requests)
        self.requests.clear()

    def read(self, gate: int, also_recycle: bool = True) -> None:
        """The task of `gate` takes one buffer or event, and what it holds goes home."""
        source = self.inputs[gate]
        self.num_buffers_read[gate] += source.take()
        while (element := source.next_element()) is not None:
            assert isinstance(element, StreamRecord)
            self.records.append(element.value)
        if also_recycle:
            source.recycle()

    # -- runs ----------------------------------------------------------------------------------------

    def play(self, num_rounds: int, slow: Collection[int] = ()) -> list[int]:
        """So many rounds, in each of which bytes go as far as they can, and then each task reads one buffer.

        The slow tasks do that in every hundredth round. Returns how many buffers each task has read.
        """
        for number in range(num_rounds):
            for task, left in enumerate(self.left):
                left.extend(StreamRecord((task, number, each), 0) for each in range(20 - len(left)))
                self.write(task, 20)
            is_moving = True
            while is_moving:
                self.answer()
                is_moving = self.send() | self.resume() | self.deliver(self.capacity)
            for gate in range(len(self.inputs)):
                if gate not in slow or number % 100 == 0:
                    self.read(gate)
        return self.num_buffers_read

    def close(self) -> None:
        for source in self.inputs:
            source.close()
        self.consumer.close()
        self.unwritten.clear()
        self.producer.close()


class Schedule:
    """A world of any size, and a seed that says who moves next. Some task may be slow, and the driver read too much."""

    def __init__(self, seed: int, shortcuts: bool = False) -> None:
        print(f"seed {seed}")
        self.random = np.random.default_rng(seed)
        config = Config(
            segment_size_bytes=self.pick(8, 17, 32, 64),
            buffer_timeout_ms=-1,
            credit_based=False,
            shortcuts=shortcuts,
            flink_version=list(FlinkVersion)[seed % 2],
        )
        self.world = World(config, self.pick(1, 2, 3), self.pick(1, 2), self.pick(1, 2, 5), self.pick(30, 100, 1000))
        self.diligence = [self.pick(1, 0.5, 0.05) for _ in self.world.inputs]
        for task, left in enumerate(self.world.left):
            left.extend(
                StreamRecord((task, number, "x" * int(self.random.integers(0, 40))), number) for number in range(10)
            )
        self.sent = [[record.value for record in left] for left in self.world.left]
        self.num_waits = 0

    def pick(self, *choices: float) -> float:
        return choices[int(self.random.integers(len(choices)))]

    def move(self) -> None:
        world = self.world
        match int(self.random.integers(6)):
            case 0:
                task = int(self.random.integers(len(world.left)))
                world.write(task)
                if self.random.random() < 0.2:
                    world.producer.partitions[task].flush_all()
            case 1:
                world.send(int(self.random.integers(1, 300)))
            case 2:
                world.deliver(int(self.random.integers(1, 200)))
            case 3:
                if self.random.random() < 0.1 and not is_reading(world.consumer.connection):
                    world.consumer.connection.receive_data(bytes(world.responses[:7]))
                    del world.responses[:7]
                world.resume()
            case 4:
                world.answer()
            case 5:
                gate = int(self.random.integers(len(world.inputs)))
                if self.random.random() < self.diligence[gate]:
                    world.read(gate, also_recycle=self.random.random() < 0.7)
        self.num_waits += not is_reading(world.consumer.connection)

    def check(self) -> None:
        """Every buffer of every gate's pool is where somebody can find it, and water does not rise above the mark."""
        consumer = self.world.consumer
        held = [buffer for source in self.world.inputs for buffer in source.held_buffers]
        held += [buffer for channel in consumer.channels for buffer in channel.held_buffers]
        if consumer.connection.decoder.held_buffer is not None:
            held.append(consumer.connection.decoder.held_buffer)
        found = sorted(buffer.segment.id for buffer in held if buffer.is_buffer)
        assert found == sorted(segment for pool in consumer.pools for segment in pool.lent)
        config = consumer.config
        assert sum(map(len, self.world.unwritten)) <= 3 * config.segment_size_bytes + 64

    def run(self, num_moves: int) -> None:
        for _ in range(num_moves):
            self.move()
            self.check()

    def finish(self) -> None:
        """Everybody does what it can, in turn, until all is done: if something stops for ever, it shows."""
        world = self.world
        for _ in range(3_000):
            if world.consumer.connection.is_closed and world.producer.connection.is_closed:
                return
            for task in range(len(world.left)):
                world.write(task)
            world.send()
            world.resume()
            world.deliver(world.capacity)
            for gate in range(len(world.inputs)):
                world.read(gate)
            world.answer()
            self.check()
        raise AssertionError(f"nothing moves any more: {world.consumer.connection}, {world.consumer.channels}")

    def arrived(self, task: int) -> list[tuple[int, ...]]:
        return [value for value in self.world.records if value[0] == task]
