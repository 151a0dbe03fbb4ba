"""Who is there in one run: one end alone with bytes for a partner, or both ends with a wire each way.

As long as nobody tampers with the wires, more must be true than that nothing breaks: credit is neither made nor lost
on the way, what is read is what was written, and when all is delivered nothing is left unread.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable

from refimpl.consumer import BufferManager
from refimpl.errors import PartitionNotFoundError, RemoteTransportError
from refimpl.exchange import AddCredit, BufferResponse, Message, PartitionRequest
from tests.fuzz.consumer_end import ConsumerEnd
from tests.fuzz.inputs import CONSUMER, PRODUCER, REQUESTS, RESPONSES, Input, Step
from tests.fuzz.oracles import Frame
from tests.fuzz.producer_end import ProducerEnd

__all__ = ["NUM_DAMAGES", "Wire", "World", "damaged", "play"]

NUM_DAMAGES = 7
ENOUGH_TO_WEIGH = 4_000
STEPS_AFTER_THE_END = 8  # that nothing happens any more is soon seen


def damaged(data: bytes, kind: int, position: int, value: int) -> bytes:
    """`data` with one thing done to it near `position`: there are `NUM_DAMAGES` kinds."""
    if not data:
        return data
    position %= len(data)
    before, byte, behind = data[:position], data[position], data[position + 1 :]
    end = position + 1 + value % 64
    return (
        before + bytes((byte ^ 1 << value % 8,)) + behind,
        before + bytes((value % 256,)) + behind,
        before + bytes((value % 256,)) + data[position:],
        before + data[end:],
        data[:end] + data[position:],
        before,
        data[position:] + before,
    )[kind % NUM_DAMAGES]


class Wire:
    """Bytes on their way in one direction; steps deliver them, damage them, or put others among them."""

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self.is_honest = True
        self._receive = receive
        self._bytes = b""
        self._frames: deque[tuple[int, Message]] = deque()  # where each ends, counted from the first byte ever
        self._num_put = 0
        self._num_delivered = 0
        self._last_end = 0

    @property
    def is_between_frames(self) -> bool:
        """Whether no frame has been delivered in part."""
        return self._num_delivered == self._last_end

    @property
    def messages(self) -> list[Message]:
        """What has not been delivered to its end."""
        return [message for _, message in self._frames]

    @property
    def held(self) -> bytes:
        return self._bytes

    @property
    def num_bytes(self) -> int:
        return len(self._bytes)

    def put(self, frames: list[Frame]) -> None:
        """An end's transport has written `frames`, which are taken off its hands."""
        for frame in frames:
            self._bytes += frame.data
            self._num_put += len(frame.data)
            self._frames.append((self._num_put, frame.message))
        frames.clear()

    def deliver(self, num_bytes: int) -> None:
        data, self._bytes = self._bytes[:num_bytes], self._bytes[num_bytes:]
        self._num_delivered += len(data)
        while self._frames and self._frames[0][0] <= self._num_delivered:
            self._last_end = self._frames.popleft()[0]
        self._receive(data)

    def damage(self, kind: int, position: int, value: int) -> None:
        self.is_honest = self.is_honest and not self._bytes
        self._bytes = damaged(self._bytes, kind, position, value)

    def insert(self, data: bytes) -> None:
        self.is_honest = False
        self._bytes += data


class World:
    """The ends that `given` asks for. A broken law is an `AssertionError`, any other exception a fault as well."""

    def __init__(self, given: Input) -> None:
        setup = given.setup
        self._num_bytes = given.num_bytes
        self.producer = None if given.world == CONSUMER else ProducerEnd(setup)
        self.consumer = None if given.world == PRODUCER else ConsumerEnd(setup)
        self._parts: dict[str, object] = {PRODUCER: self.producer, CONSUMER: self.consumer}
        self._both: _BothEnds | None = None
        if self.producer is not None and self.consumer is not None:
            self._both = _BothEnds(self.producer, self.consumer)
            self._parts |= {REQUESTS: self._both.requests, RESPONSES: self._both.responses}
        self._said = hashlib.blake2b(digest_size=8)

    def do(self, step: Step) -> None:
        """Somebody does something; then the laws are checked."""
        who, what, *arguments = step
        getattr(self._parts[str(who)], str(what))(*arguments)
        if self.consumer is not None:
            self.consumer.go_on()
        if self._both is not None:
            self._both.carry()
        # A wire delivers to an end, and nobody else has been touched.
        end = self.producer if who in (PRODUCER, REQUESTS) else self.consumer
        assert end is not None, f"nobody is there to {what!r}"
        end.check()
        for frame in end.outgoing:
            self._said.update(frame.data)
        end.outgoing.clear()

    @property
    def is_over(self) -> bool:
        """Whether no end reads or says anything any more."""
        ends = (self.producer, self.consumer)
        return all(end is None or end.connection.is_closed for end in ends)

    def verdict(self) -> str:
        """What has come of it, in words: the same for the same input whoever plays it, so that two can be compared."""
        words = [self._said.hexdigest()]
        if self._both is not None:
            words += [wire.held.hex() for wire in (self._both.requests, self._both.responses)]
        if self.producer is not None:
            words += [repr(self.producer.connection.snapshot()), *(each.hex() for each in self.producer.written)]
        if self.consumer is not None:
            words += [repr(self.consumer.connection), *(each.hex() for each in self.consumer.read)]
            errors = [self.consumer.connection.error, *(channel.error for channel in self.consumer.channels)]
            words += [f"{type(error).__name__}: {error}" for error in errors]
        return "\n".join(words)

    def finish(self) -> None:
        """Weigh what is held, unless so little has come that it cannot be too much, and end everything."""
        ends = [end for end in (self.producer, self.consumer) if end is not None]
        if self._both is not None or self._num_bytes > ENOUGH_TO_WEIGH:
            for end in ends:
                end.check_memory()
        if self._both is not None:
            self._both.settle()
        for end in ends:
            end.finish()


class _BothEnds:
    """Both ends and the wires between them, and what must be true while these are honest."""

    def __init__(self, producer: ProducerEnd, consumer: ConsumerEnd) -> None:
        self.producer = producer
        self.consumer = consumer
        self.requests = Wire(producer.receive)
        self.responses = Wire(consumer.receive)

    @property
    def is_whole(self) -> bool:
        """Whether the ends hear each other, and all that they say."""
        is_cut = self.consumer.is_cut or self.producer.is_lost
        return self.requests.is_honest and self.responses.is_honest and not is_cut

    @property
    def is_open(self) -> bool:
        return not (self.producer.connection.is_closed or self.consumer.connection.is_closed)

    def carry(self) -> None:
        """What the transports have written is on its way."""
        self.requests.put(self.consumer.outgoing)
        self.responses.put(self.producer.outgoing)
        if not self.is_whole:
            return
        assert self.consumer.connection.error is None, f"{self.consumer.connection.error} between honest ends"
        self._check_data()
        is_credit_based = isinstance(self.consumer.channels[0].buffers, BufferManager)
        if is_credit_based and self.is_open and self.requests.is_between_frames and self.responses.is_between_frames:
            self._check_credit()

    def _check_data(self) -> None:
        for index, channel in enumerate(self.consumer.channels):
            read, written = self.consumer.read[index], self.producer.written[index]
            assert read == written[: len(read)], f"{channel} reads {read.hex()}, {written.hex()} was written"
            is_there = self._can_be_read(index)
            assert channel.error is None or not is_there, f"{channel} failed with {channel.error!r}"
            assert isinstance(channel.error, PartitionNotFoundError | RemoteTransportError | None)

    def _can_be_read(self, index: int) -> bool:
        return index in self.consumer.found and self.producer.partition.subpartitions[index].failure_cause is None

    def _check_credit(self) -> None:
        """What a consumer has promised is on its way, at the producer, or data on the way back."""
        found: Counter[bytes] = Counter()
        for reader in self.producer.connection.snapshot().readers.values():
            found[reader.receiver] = reader.credit
        for request in self.requests.messages:
            if isinstance(request, AddCredit | PartitionRequest):
                found[request.receiver] += request.credit
        for response in [*self.responses.messages, *self.producer.unconfirmed]:
            if isinstance(response, BufferResponse):
                found[response.receiver] += response.data_type.is_buffer
        for channel in self.consumer.channels:
            if not channel.is_released:
                # A request that has not left yet brings the first credit, and one that was refused took it back.
                expected = found.get(channel.receiver, channel.initial_credit)
                assert channel.buffers.credit.num_promised == expected, f"{channel}: {expected} can be found"

    def settle(self) -> None:
        """Let everything arrive and be read: nothing may be stuck."""
        if not self.is_whole or not self.is_open:
            return
        self.producer.end()
        has_moved = True
        while has_moved:
            has_moved = self._go_round()
        for index in self.consumer.found - self.consumer.given_up:
            if self._can_be_read(index):
                read, written = self.consumer.read[index], self.producer.written[index]
                assert read == written, f"{len(read)} of {len(written)} B were read from {index}, and nothing moves"

    def _go_round(self) -> bool:
        """Everybody does once what can be done; false if nothing could."""
        self.producer.send(2**31 - 1)
        self.producer.sent()
        self.carry()
        has_moved = self.responses.num_bytes > 0
        self.responses.deliver(self.responses.num_bytes)
        while self.consumer.gate.is_ready:
            self.consumer.poll()
            has_moved = True
        self.consumer.recycle_all()
        for index, channel in enumerate(self.consumer.channels):
            self.consumer.resume(index)
            if channel.error is not None:
                channel.release()  # without credits its neighbours need the buffers of what nobody reads any more
        has_moved |= self.consumer.go_on()
        self.consumer.answer()
        self.carry()
        has_moved |= self.requests.num_bytes > 0
        self.requests.deliver(self.requests.num_bytes)
        return has_moved


def play(given: Input) -> str:
    """Do the steps of an input, and check the laws after each; what it raises is a fault and says in which step.

    Returns what came of it, as `World.verdict` says it.
    """
    world = World(given)
    num_left = STEPS_AFTER_THE_END
    for number, step in enumerate(given.steps):
        num_left -= world.is_over
        if num_left < 0:
            break
        try:
            world.do(step)
        except Exception as error:
            error.add_note(f"in step {number}: {step}")
            raise
    verdict = world.verdict()
    world.finish()
    return verdict
