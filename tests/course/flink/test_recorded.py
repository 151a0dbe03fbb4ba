"""What a real Flink said once keeps Flink's rules when it is said again."""

from __future__ import annotations

import socket

import pytest

from course.flink.recorded import RecordedFlink, conversation
from refimpl.config import Config
from refimpl.exchange import (
    AddCredit,
    BufferReceived,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    FrameDecoder,
    PartitionRequest,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    encode,
    read_java_error,
)
from refimpl.memory import DataType, heap_buffer

RECEIVER, OTHER = b"\xa0" * 16, b"\xb0" * 16
SECONDS = 10.0


class Consumer:
    """Says messages, and reads what comes until there is so much of it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.decoder = FrameDecoder(self, Config().frame_limit_bytes)
        self.seen: list[object] = []

    def request_buffer(self, response, size):
        buffer = heap_buffer(bytes(size), response.data_type)
        buffer.size = 0
        return buffer

    def say(self, *messages) -> None:
        self.socket.sendall(b"".join(map(encode, messages)))

    def read(self, count: int) -> list[object]:
        """The next `count` messages; fewer if the other end closed."""
        while len(self.seen) < count and (data := self.socket.recv(4096)):
            self.seen += self.decoder.receive(data)
        now, self.seen = self.seen[:count], self.seen[count:]
        return now


@pytest.fixture
def flink():
    with RecordedFlink() as recorded:
        yield recorded


@pytest.fixture
def consumer(flink):
    consumer = Consumer(flink.port)
    with consumer.socket:
        yield consumer


def request(number=0, *, receiver=RECEIVER, credit=1, producer=None):
    channel = conversation()["channels"][number]
    raw = bytes.fromhex(channel["partition_id"])
    id_ = producer or bytes.fromhex(channel["producer_id"])
    partition = ResultPartitionId(raw[:16], int.from_bytes(raw[16:]), ProducerId(id_))
    return PartitionRequest(partition, 0, 0, receiver, credit)


def kinds(messages):
    assert all(isinstance(each, BufferReceived) for each in messages), messages
    return [each.response.data_type for each in messages]


def test_data_goes_out_for_credit_and_to_whom_it_was_asked_for(consumer):
    consumer.say(request(credit=2), CancelPartitionRequest(OTHER))
    first = consumer.read(2)
    assert [each.response.sequence_number for each in first] == [0, 1]
    assert {each.response.receiver for each in first} == {RECEIVER}
    consumer.say(request(1, receiver=OTHER, credit=1))  # nothing of the first comes before the second
    assert consumer.read(1)[0].response.receiver == OTHER
    consumer.say(AddCredit(1, RECEIVER))
    assert consumer.read(1)[0].response.sequence_number == 2


def test_nothing_goes_out_behind_a_barrier_until_it_is_told_to_go_on(consumer):
    consumer.say(request(credit=1_000))
    seen = []
    while DataType.ALIGNED_BARRIER not in (seen := seen + kinds(consumer.read(1))):
        pass
    consumer.say(request(1, receiver=OTHER, credit=1))
    assert consumer.read(1)[0].response.receiver == OTHER, "something came from behind the barrier"
    consumer.say(ResumeConsumption(RECEIVER))
    assert consumer.read(1)[0].response.sequence_number == len(seen)


def test_a_partition_that_is_not_there_is_answered_as_flink_answers(consumer):
    consumer.say(request(producer=b"\xee" * 16))
    (answer,) = consumer.read(1)
    assert isinstance(answer, ErrorResponse)
    assert answer.receiver == RECEIVER
    assert read_java_error(answer.error).is_not_found


def test_bytes_that_are_no_frames_end_the_connection_and_another_may_come(flink, consumer):
    consumer.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert consumer.read(1) == []
    again = Consumer(flink.port)
    with again.socket:
        again.say(request(credit=1))
        assert len(again.read(1)) == 1
    assert len(flink.refused) == 1
    assert "magic" in flink.refused[0] or "frame" in flink.refused[0]


def test_whoever_closes_is_let_go(flink, consumer):
    consumer.say(request(credit=1))
    consumer.read(1)
    consumer.say(CloseRequest())
    assert consumer.read(1) == []
    assert flink.refused == []
