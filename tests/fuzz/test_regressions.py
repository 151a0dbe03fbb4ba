"""What the fuzz has found, each as small as it could be made."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from refimpl.config import FlinkVersion
from refimpl.errors import RemoteProtocolError
from refimpl.exchange import BufferResponse, encode, throwable_length
from refimpl.memory import DataType
from tests.fuzz.consumer_end import ConsumerEnd, receiver
from tests.fuzz.inputs import CONSUMER, PRODUCER, REQUESTS, RESPONSES, Input
from tests.fuzz.world import play

STREAM = b"\xac\xed\x00\x05"
NAMELESS_CLASS = b"\x72\x00\x00" + bytes(8) + b"\x02\x00\x00"

ARRAY_OF = b"\x75\x72\x00\x02[%b" + NAMELESS_CLASS[3:] + b"\x78\x70"


def event_in_pieces(*sizes: int) -> bytes:
    response = BufferResponse(receiver(0), 0, 0, DataType.EVENT, bytes(sum(sizes)), partial_sizes=sizes)
    return encode(response, FlinkVersion.V2_2)


@pytest.mark.parametrize("last", [(CONSUMER, "release", 0), (CONSUMER, "take", 0)])
@pytest.mark.parametrize("sizes", [(0, 4), (0, 0), (0, 1, 0, 3)])
def test_an_event_whose_first_piece_is_empty_can_be_given_back(sizes: tuple[int, ...], last: tuple) -> None:
    """Pieces that began at byte 0 shared one reference: `release` raised a LocalUsageError."""
    steps = ((CONSUMER, "ask", 0), (CONSUMER, "answer"), (CONSUMER, "receive", event_in_pieces(*sizes)))
    play(Input(CONSUMER, FlinkVersion.V2_2, 0, (*steps, *[last] * len(sizes))))


def test_each_piece_of_an_event_costs_what_an_event_costs() -> None:
    """Only the first was counted when it came, so that 1024 pieces went over any limit."""
    end = ConsumerEnd(Input(CONSUMER, FlinkVersion.V2_2, 0, ()).setup)
    end.ask()
    end.receive(event_in_pieces(4, *[0] * 14))
    assert end.channels[0].error is None
    end = ConsumerEnd(Input(CONSUMER, FlinkVersion.V2_2, 0, ()).setup)
    end.ask()
    end.receive(event_in_pieces(4, *[0] * 15))
    assert "max_event_bytes is 1024" in str(end.channels[0].error)


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_consumer_with_the_least_max_frame_bytes_can_read_our_own_errors(version: FlinkVersion) -> None:
    """A PartitionNotFoundException has up to 2 kB: the connection failed, and with it every channel."""
    refused = ((CONSUMER, "ask", 1), (CONSUMER, "answer"), (REQUESTS, "deliver", 10_000))
    told = ((PRODUCER, "send", 10_000), (PRODUCER, "sent"), (RESPONSES, "deliver", 10_000))
    play(Input("both", version, 0, refused + told))


def test_a_class_that_is_not_complete_is_nobodys_parent() -> None:
    """Through such a parent a chain of ancestors grew without end, and the time to walk it with its square."""

    def reference(number: int) -> bytes:
        return b"\x71" + struct.pack(">i", 0x7E0000 + number)

    num_rounds = 500
    data = STREAM + ARRAY_OF % b"L" + struct.pack(">i", num_rounds)
    longest = b"\x70"
    for number in range(2, 2 * num_rounds + 2, 2):
        child = NAMELESS_CLASS + b"\x78" + reference(number)
        data += NAMELESS_CLASS + child + b"\x78" + longest
        longest = reference(number + 1)
    with pytest.raises(RemoteProtocolError, match="no end of ancestors"):
        throwable_length(memoryview(data))


def test_an_array_of_numbers_is_passed_over() -> None:
    """Each byte became an object: 42 bytes of memory for each one on the wire."""
    data = STREAM + ARRAY_OF % b"B" + struct.pack(">i", 100_000) + bytes(100_000)
    tracemalloc.start()
    assert throwable_length(memoryview(data)) == len(data)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 20_000
