"""Credit as the consumer gives it, step by step as the gate, channels and client handler of Flink 1.11.4 did.

Bytes go in and bytes come out; only the numbers beside them are read from our objects.
"""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.consumer import InputGate, RemoteInputChannel
from refimpl.errors import SluiceError
from refimpl.exchange import (
    AddCredit,
    BufferReceived,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ConsumerConnection,
    FrameDecoder,
    Message,
    PartitionRequest,
    ProducerId,
    ResultPartitionId,
    ResumeConsumption,
    encode,
)
from refimpl.memory import Buffer, BufferSlice, DataType, LocalBufferPool, NetworkBufferPool
from refimpl.records import Alignment, CheckpointBarrier, EndOfPartition, event_to_buffer

TOPIC = "credit"
SIDE = "client"
BY_VERSION = False

EVENTS = {
    "barrier": CheckpointBarrier(1, 0),
    "barrier_at_least_once": CheckpointBarrier(1, 0, alignment=Alignment.AT_LEAST_ONCE),
    "end_of_partition": EndOfPartition(),
}
FLINK_NAMES = {EndOfPartition: "EndOfPartitionEvent"}


class NoBuffers:
    """What a consumer sends has no payload."""

    def request_buffer(self, response: BufferResponse, size: int) -> Buffer | None:
        raise AssertionError(f"the consumer sent {response} with {size} B")


class Script:
    """A gate with remote channels on one connection, and the buffers its task holds."""

    def __init__(self, case: dict) -> None:
        num_channels, num_exclusive = case["channels"], case["exclusive_per_channel"]
        longest = max([64, *(step.get("size") or 0 for step in case["steps"])])
        config = Config(segment_size_bytes=longest)
        pool = NetworkBufferPool(num_channels * num_exclusive + case["floating_max"] + 1, longest)
        self.floating = LocalBufferPool(pool, min(1, case["floating_max"]), case["floating_max"])
        self.connection = ConsumerConnection(config)
        self.channels = []
        for index in range(num_channels):
            exclusive = pool.request_unpooled(num_exclusive, f"channel {index}")
            assert exclusive is not None
            receiver = (index + 1).to_bytes(16, "big")
            self.channels.append(
                RemoteInputChannel(index, receiver, f"map-{index}", exclusive, pool, self.floating, config)
            )
        self.gate = InputGate("sink-0", self.channels)
        self.held: list[BufferSlice] = []
        self.sent_bytes = FrameDecoder(NoBuffers(), config.max_frame_bytes)

    def do(self, step: dict) -> dict | None:
        """One operation; what a `poll` took."""
        match step["op"]:
            case "setup":
                pass
            case "request":
                self.gate.open()
                for index, channel in enumerate(self.channels):
                    partition = ResultPartitionId(bytes(16), index, ProducerId(bytes(16)))
                    self.connection.request(channel, partition, 0)
            case "receive_buffer":
                self.receive(step, DataType.DATA, bytes(step["size"]))
            case "receive_event":
                event = event_to_buffer(EVENTS[step["event"]])
                self.receive(step, event.data_type, bytes(event.data))
            case "poll":
                return self.poll(step)
            case "recycle_oldest":
                self.held.pop(0).recycle()
            case "resume":
                self.channels[step["channel"]].resume()
            case _:
                pytest.skip(f"operation {step['op']} is not described in the format")
        return None

    def receive(self, step: dict, kind: DataType, payload: bytes) -> None:
        receiver = self.channels[step["channel"]].receiver
        message = BufferResponse(receiver, step["sequence_number"], step["backlog"], kind, payload)
        self.connection.receive_data(encode(message))

    def poll(self, step: dict) -> dict | None:
        try:
            arrived = self.gate.poll_next()
        except SluiceError:
            assert "error" in step
            return step.get("result")
        if arrived is None:
            return None
        kind, size = "buffer", None
        if arrived.buffer is None:
            kind = FLINK_NAMES.get(type(arrived.event), type(arrived.event).__name__)
        else:
            self.held.append(arrived.buffer)
            size = arrived.buffer.size
        return {
            "channel": arrived.channel_index,
            "kind": kind,
            "size": size,
            "more_available": arrived.is_more_available,
        }

    def sent(self) -> list[dict]:
        """Everything that goes out now, in the words of the vectors."""
        return [self.shown(message) for message in self.sent_bytes.receive(self.connection.data_to_send())]

    def shown(self, message: Message | BufferReceived) -> dict:
        name = {"msg": type(message).__name__}
        if isinstance(message, CloseRequest):
            return name
        index = [channel.receiver for channel in self.channels].index(message.receiver)
        match message:
            case PartitionRequest():
                assert message.partition.number == index
                return {**name, "channel": index, "subpartition": message.first, "credit": message.credit}
            case AddCredit():
                return {**name, "channel": index, "credit": message.credit}
            case ResumeConsumption() | CancelPartitionRequest():
                return {**name, "channel": index}
        raise AssertionError(f"a consumer does not send {message}")

    def state(self) -> list[dict]:
        shots = [(channel.snapshot().buffers, channel.snapshot()) for channel in self.channels]
        return [
            {
                "available": buffers.num_available,
                "exclusive_available": buffers.num_exclusive_available,
                "floating_available": buffers.num_floating_available,
                "required": buffers.num_required,
                "waiting_for_floating": buffers.is_waiting_for_floating,
                "unannounced_credit": buffers.num_unannounced,
                "queued": channel.num_available,
            }
            for buffers, channel in shots
        ]


def by_channel(sent: list[dict]) -> list[dict]:
    """Frames of different channels have no order among themselves."""
    return sorted(sent, key=lambda message: message.get("channel", -1))


def test_the_consumer_gives_credit_as_flink_does(case: dict) -> None:
    script = Script(case)
    for number, step in enumerate(case["steps"]):
        what = f"step {number}: {step}"
        assert script.do(step) == step.get("result"), what
        assert by_channel(script.sent()) == by_channel(step["sent"]), what
        assert script.state() == step["channels"], what
        assert script.floating.size == step["floating_pool_size"], what
        assert script.floating.snapshot().num_in_use == step["floating_in_use"], what
        assert len(script.held) == step["held_by_task"], what
        if not step["op"].startswith("receive"):
            continue
        error = script.channels[step["channel"]].error
        assert (error is not None) == ("error" in step), what
        if error is not None:
            # `class: sentence.` in Flink; ours may go on after the sentence, with numbers.
            assert step["error"].split(": ", 1)[1].rstrip(".") in str(error), what
