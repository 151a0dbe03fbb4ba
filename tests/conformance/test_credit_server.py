"""The producer's end of a connection, step by step as `PartitionRequestQueue` of Flink 1.11.4 did.

Everything is real: a `PipelinedSubpartition` for each subpartition, the consumer's messages as bytes into
`receive_data`, the answers decoded from the bytes of `data_to_send`. The bytes that arrive must be those written.
"""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    PartitionRequest,
    ProducerConnection,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    encode,
    read_java_error,
)
from refimpl.memory import Buffer, BufferBuilder, BufferConsumer, MemorySegment
from refimpl.producer import PipelinedSubpartition, PipelinedSubpartitionView
from refimpl.records import Alignment, CheckpointBarrier, event_to_buffer
from tests.support.raw_frames import frames_in

TOPIC = "credit"
BY_VERSION = False
SIDE = "server"

PARTITION = ResultPartitionId(b"\x11" * 16, 0, ProducerId(b"\x33" * 16))
UNKNOWN = ResultPartitionId(b"\x99" * 16, 0, ProducerId(b"\x33" * 16))


class Script:
    """A producer's end, its subpartitions, and what the script has open in each."""

    def __init__(self, case: dict) -> None:
        self.segment_size = case["segment_size"]
        count = case["subpartition_count"]
        self.subpartitions = [PipelinedSubpartition(index) for index in range(count)]
        self.builders: list[BufferBuilder | None] = [None] * count
        self.written = [bytearray() for _ in range(count)]
        self.delivered: dict[bytes, bytearray] = {}
        self.read_by: dict[bytes, int] = {}
        self.connection = ProducerConnection(self, Config(segment_size_bytes=self.segment_size))
        self.num_out = 0

    def find(self, partition: ResultPartitionId, subpartition: int) -> PipelinedSubpartitionView | None:
        return self.subpartitions[subpartition].view if partition == PARTITION else None

    def recycle_segment(self, _segment: MemorySegment) -> None:
        self.num_out -= 1

    # -- what is done --------------------------------------------------------------------------------

    def do(self, step: dict) -> None:
        index = step.get("subpartition", -1)
        match step["op"]:
            case "setup":
                pass
            case "open_buffer":
                self.open_buffer(index)
            case "write":
                self.write(index, step["size"])
            case "finish_buffer":
                self.builders[index].finish()
                self.builders[index] = None
            case "flush":
                self.subpartitions[index].flush()
            case "barrier":
                alignment = Alignment.ALIGNED if step["exactly_once"] else Alignment.AT_LEAST_ONCE
                barrier = event_to_buffer(CheckpointBarrier(1, 2, alignment=alignment))
                self.subpartitions[index].add(BufferConsumer.of_buffer(barrier))
            case "end_of_partition":
                self.subpartitions[index].finish()
            case "receive_raw_bytes":
                self.receive(bytes.fromhex(step["hex"]))
            case _:
                self.receive(encode(self.message(step)))

    def open_buffer(self, index: int) -> None:
        self.num_out += 1
        self.builders[index] = BufferBuilder(Buffer(MemorySegment.allocate(self.segment_size), self))
        self.subpartitions[index].add(self.builders[index].create_consumer())

    def write(self, index: int, size: int) -> None:
        first = len(self.written[index])
        data = bytes((first + position) * 7 % 256 for position in range(size))
        assert self.builders[index].append_and_commit(data) == size
        self.written[index] += data

    def message(self, step: dict) -> Message:
        receiver = step.get("reader", "a receiver nobody knows").encode().ljust(16, b".")[:16]
        match step["op"]:
            case "partition_request":
                self.read_by[receiver] = step["subpartition"]
                self.delivered[receiver] = bytearray()
                return PartitionRequest(PARTITION, *[step["subpartition"]] * 2, receiver, step["credit"])
            case "partition_request_unknown_partition":
                return PartitionRequest(UNKNOWN, *[step["subpartition"]] * 2, receiver, step["credit"])
            case "add_credit" | "add_credit_unknown_reader":
                return AddCredit(step["credit"], receiver)
            case "resume":
                return ResumeConsumption(receiver)
            case "cancel":
                return CancelPartitionRequest(receiver)
            case "close":
                return CloseRequest()
        pytest.skip(f"operation {step['op']} is not described in the format")

    def receive(self, data: bytes) -> None:
        try:
            self.connection.receive_data(data)
        except RemoteProtocolError:
            assert self.connection.is_closed

    # -- what came of it -----------------------------------------------------------------------------

    def sent(self) -> list[dict]:
        data = b"".join(self.connection.data_to_send())
        self.connection.data_sent()
        return [self.described(message) for message in frames_in(data)]

    def described(self, message: Message) -> dict:
        if isinstance(message, ErrorResponse):
            error = read_java_error(message.error)
            reader = None if message.receiver is None else name_of(message.receiver)
            return {
                "msg": "ErrorResponse",
                "fatal": message.receiver is None,
                "reader": reader,
                "exception_class": error.class_name,
                "message": error.message,
            }
        assert isinstance(message, BufferResponse)
        if message.data_type.is_buffer:
            self.delivered[message.receiver] += message.payload
        return {
            "msg": "BufferResponse",
            "reader": name_of(message.receiver),
            "sequence_number": message.sequence_number,
            "backlog": message.backlog,
            "data_type_code": message.data_type.code(Config().flink_version),
            "size": len(message.payload),
        }

    def readers(self, names: list[str]) -> dict:
        ours = {name_of(receiver): reader for receiver, reader in self.connection.snapshot().readers.items()}
        assert ours.keys() <= set(names)
        return {
            name: {
                "credit": ours[name].credit,
                "enqueued": ours[name].is_enqueued,
                "last_sequence_number": ours[name].last_sequence_number,
            }
            if name in ours
            else None
            for name in names
        }

    def state(self) -> list[dict]:
        return [
            {"backlog": each.count_backlog(), "queued": each.num_queued, "released": each.is_released}
            for each in self.subpartitions
        ]

    def end(self) -> None:
        """What was delivered is what was written, from its start; and nothing is left behind."""
        for receiver, index in self.read_by.items():
            assert self.written[index].startswith(self.delivered[receiver])
        self.connection.connection_lost()
        for builder, subpartition in zip(self.builders, self.subpartitions, strict=True):
            if builder is not None:
                builder.finish()
            subpartition.release()
        assert self.num_out == 0


def name_of(receiver: bytes) -> str:
    return receiver.rstrip(b".").decode()


def check_sent(sent: list[dict], expected: list[dict], what: str) -> None:
    assert len(sent) == len(expected), f"{what}: {sent}"
    for ours, theirs in zip(sent, expected, strict=True):
        theirs = dict(theirs)
        start = theirs.pop("message_start", None)
        if start is not None:
            # Where Netty shows one of its own objects, only the words before it are Flink's.
            assert ours.pop("message").startswith(start.split("Unpooled")[0]), what
        assert ours == theirs, what


def test_a_connection_serves_its_readers_as_flink_does(case: dict) -> None:
    script = Script(case)
    for number, step in enumerate(case["steps"]):
        what = f"step {number}: {step['op']} {step.get('reader', step.get('subpartition', ''))}"
        script.do(step)
        check_sent(script.sent(), step["sent"], what)
        assert script.readers(list(step["readers"])) == step["readers"], what
        assert script.state() == step["subpartitions"], what
        assert script.connection.is_closed is not step["connection_open"], what
    script.end()
