"""Whatever comes over a connection: nothing is raised, nothing is lost, and memory has a bound."""

from __future__ import annotations

import contextlib
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.config import FlinkVersion
from refimpl.errors import RemoteProtocolError, SluiceError
from refimpl.exchange import (
    BacklogAnnouncement,
    BufferResponse,
    CloseRequest,
    ErrorResponse,
    FrameDecoder,
    Message,
    encode,
)
from refimpl.memory import DataType
from tests.support.consumer_rig import SEGMENT_SIZE, Bench, HeapBuffers, java_error, receiver

NOT_FOUND = "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException"
MAX_FRAME = 1_024

KINDS = {
    version: [kind for kind in DataType if kind.code(version) is not None and kind is not DataType.NONE]
    for version in FlinkVersion
}
INTS = st.one_of(st.integers(-2, 6), st.sampled_from([2**31 - 1, -(2**31)]))


@st.composite
def messages(draw: st.DrawFn, version: FlinkVersion) -> list[Message]:
    """What a producer might say to channels 0 and 1, and to nobody, mostly in order."""
    said: list[Message] = []
    expected = [0, 0, 0]
    for _ in range(draw(st.integers(0, 25))):
        message = draw(one_message(version))
        if isinstance(message, BufferResponse):
            channel = message.receiver[-1] - 1
            if draw(st.integers(0, 20)):
                message = message._replace(sequence_number=expected[channel])
            expected[channel] += max(1, len(message.partial_sizes))
        said.append(message)
    return said


@st.composite
def one_message(draw: st.DrawFn, version: FlinkVersion) -> Message:
    to = receiver(draw(st.integers(0, 2)))
    what = draw(st.integers(0, 29))
    if what == 0:
        name = draw(st.sampled_from([NOT_FOUND, "java.lang.Error"]))
        return ErrorResponse(java_error(name, "a message"), draw(st.sampled_from([to, to, to, None])))
    if what == 1:
        return CloseRequest() if version is FlinkVersion.V1_11 else BacklogAnnouncement(draw(st.integers(1, 9)), to)
    payload = draw(st.one_of(st.binary(max_size=SEGMENT_SIZE), st.just(bytes(SEGMENT_SIZE + 1))))
    pieces: tuple[int, ...] = ()
    if version is FlinkVersion.V2_2 and draw(st.booleans()):
        pieces = (1,) * len(payload)
    kind = draw(st.sampled_from([DataType.DATA, DataType.DATA, *KINDS[version]]))
    return BufferResponse(to, draw(INTS), draw(INTS), kind, payload, draw(st.integers(0, 29)) == 0, 0, pieces)


def spoiled(stream: bytes, rng: random.Random) -> bytes:
    """The stream with a few bytes changed, or cut, or repeated."""
    data = bytearray(stream)
    for _ in range(rng.randrange(4)):
        if data:
            data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(data[: rng.randrange(len(data) + 1)]) + stream if rng.random() < 0.2 else bytes(data)


def chunks(stream: bytes, rng: random.Random) -> list[bytes]:
    found = []
    while stream:
        size = rng.choice([1, 2, 3, 9, 30, 100, len(stream)])
        found.append(stream[:size])
        stream = stream[size:]
    return found


def poll(bench: Bench, held: list) -> None:
    """The task takes one, unless the channel has failed or what came is no event."""
    with contextlib.suppress(SluiceError):
        arrived = bench.gate.poll_next()
        if arrived is not None and arrived.buffer is not None:
            held.append(arrived.buffer)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_stream_breaks_the_connection_or_loses_a_segment(draw: st.DataObject) -> None:
    version = draw.draw(st.sampled_from(FlinkVersion))
    said = draw.draw(messages(version))
    rng = random.Random(draw.draw(st.integers(0, 2**32), label="seed"))
    bench = Bench(num_channels=2, flink_version=version, max_frame_bytes=MAX_FRAME, max_event_bytes=1_024).request()
    stream = b"".join(encode(message, version) for message in said)
    if draw.draw(st.booleans()):
        stream = spoiled(stream, rng)
    held: list = []
    for piece in chunks(stream, rng):
        bench.connection.receive_data(piece)
        bench.check(*held)
        action = rng.randrange(6)
        if action == 0:
            poll(bench, held)
        elif action == 1 and held:
            held.pop(rng.randrange(len(held))).recycle()
        elif action == 2:
            bench.sent()
        elif action == 3 and rng.random() < 0.2:
            rng.choice(bench.channels).release()
        elif action == 4:
            bench.connection.next_deadline(rng.random())
            bench.connection.on_timeout(rng.random() * 1e6)
        bench.check(*held)
    bench.connection.receive_end()
    assert bench.connection.is_closed
    for buffer in held:
        buffer.recycle()
    for channel in bench.channels:
        channel.release()
    bench.sent()
    assert bench.pool.num_free + bench.floating.num_requested == bench.num_segments
    assert bench.floating.snapshot().num_in_use == 0


@given(st.binary(max_size=300), st.sampled_from(FlinkVersion), st.integers(0, 2**32))
def test_bytes_that_mean_nothing_raise_one_kind_of_error(noise: bytes, version: FlinkVersion, seed: int) -> None:
    """With a right header in front, so that they are not all refused for their magic."""
    rng = random.Random(seed)
    header = (9 + len(noise)).to_bytes(4, "big") + bytes.fromhex("badc0ffe") + bytes((rng.randrange(12),))
    decoder = FrameDecoder(HeapBuffers(), MAX_FRAME, version)
    with contextlib.suppress(RemoteProtocolError):
        for piece in chunks(header + noise, rng):
            list(decoder.receive(piece))


@pytest.mark.slow
def test_a_flood_of_anything_costs_no_more_than_the_configuration_grants() -> None:
    """Nobody polls, nobody recycles, nothing goes out: a megabyte comes in, and a fraction of it stays."""
    bench = Bench(num_channels=2, max_frame_bytes=MAX_FRAME, max_event_bytes=2_048).request()
    floods = [
        encode(BufferResponse(receiver(0), number, 7, DataType.DATA, bytes(SEGMENT_SIZE))) for number in range(6_000)
    ]
    floods += [encode(BufferResponse(receiver(1), number, 0, DataType.EVENT, b"1234")) for number in range(6_000)]
    floods += [encode(BufferResponse(receiver(7), number, 0, DataType.DATA, bytes(200))) for number in range(3_000)]
    floods += [encode(ErrorResponse(java_error(NOT_FOUND, "no"), receiver(1)))] * 1_000
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for flood in floods:
        bench.connection.receive_data(flood)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert sum(map(len, floods)) > 1_000_000
    assert grown < 50_000
    assert not bench.connection.is_closed
    bench.check()
