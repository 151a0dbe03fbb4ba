"""A compressed buffer: smaller or left alone, and nothing of what it says is believed before it is checked."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from refimpl.batch_options import Compression
from refimpl.drivers.codecs import codec_of
from refimpl.errors import RemoteProtocolError
from refimpl.records import BLOCK_HEADER_BYTES, BlockCodec, compressed_block, raw_of_block

SEGMENT = 32_768
CODES = [Compression.LZ4, Compression.ZSTD]


def code(compression: Compression) -> BlockCodec:
    found = codec_of(compression)
    assert found is not None
    return found


@pytest.mark.parametrize("compression", CODES)
def test_what_was_compressed_comes_back_and_is_smaller(compression: Compression) -> None:
    for seed in range(50):
        rng = random.Random(seed)
        data = bytes(rng.choices(b"abc", k=rng.randrange(200, SEGMENT)))
        block = compressed_block(code(compression), memoryview(data))
        assert block is not None, f"seed {seed}"
        assert len(block) < len(data), f"seed {seed}"
        assert struct.unpack_from("<ii", block) == (len(block) - BLOCK_HEADER_BYTES, len(data))
        assert raw_of_block(code(compression), memoryview(block), SEGMENT) == data, f"seed {seed}"


@pytest.mark.parametrize("compression", CODES)
@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)), random.Random(1).randbytes(4_000)])
def test_what_would_not_get_smaller_is_left_as_it_is(data: bytes, compression: Compression) -> None:
    """Flink: BufferCompressionTest; a buffer that does not get smaller stays uncompressed."""
    assert compressed_block(code(compression), memoryview(data)) is None


def test_without_compression_there_is_no_code() -> None:
    assert codec_of(Compression.NONE) is None


@pytest.mark.parametrize("compression", CODES)
@pytest.mark.parametrize(
    ("num_compressed", "num_raw", "why"),
    [
        (None, SEGMENT + 1, "says to be of 32769 B, where 32768 are the most"),
        (None, 2**31 - 1, "where 32768 are the most"),
        (None, 0, "says to be of 0 B"),
        (None, -1, "says to be of -1 B"),
        (7, 4_000, "says that 7 B follow"),
        (-7, 4_000, "says that -7 B follow"),
        (None, 3_999, "cannot be decompressed"),
    ],
)
def test_lengths_that_cannot_be_are_refused(
    num_compressed: int | None, num_raw: int, why: str, compression: Compression
) -> None:
    block = compressed_block(code(compression), memoryview(bytes(4_000)))
    assert block is not None
    header = struct.pack("<ii", len(block) - BLOCK_HEADER_BYTES if num_compressed is None else num_compressed, num_raw)
    with pytest.raises(RemoteProtocolError, match=why):
        raw_of_block(code(compression), memoryview(header + block[BLOCK_HEADER_BYTES:]), SEGMENT)


def test_a_length_that_is_more_than_it_was_is_refused_where_the_code_notes_it() -> None:
    found = code(Compression.ZSTD)
    block = compressed_block(found, memoryview(bytes(4_000)))
    assert block is not None
    header = struct.pack("<ii", len(block) - BLOCK_HEADER_BYTES, 4_001)
    with pytest.raises(RemoteProtocolError, match=r"decompressed|is of 4000"):
        raw_of_block(found, memoryview(header + block[BLOCK_HEADER_BYTES:]), SEGMENT)


def test_a_length_that_is_too_much_takes_no_memory() -> None:
    block = struct.pack("<ii", 100, 2**31 - 1) + bytes(100)
    found = code(Compression.LZ4)
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError, match="are the most"):
            raw_of_block(found, memoryview(block), SEGMENT)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", CODES)
def test_bytes_that_nobody_has_compressed_are_refused_or_come_to_nothing_more_than_they_may(
    compression: Compression,
) -> None:
    for seed in range(300):
        rng = random.Random(seed)
        data = rng.randbytes(rng.randrange(60))
        if len(data) >= BLOCK_HEADER_BYTES and rng.random() < 0.8:
            data = struct.pack("<ii", len(data) - BLOCK_HEADER_BYTES, rng.randrange(1, 200)) + data[BLOCK_HEADER_BYTES:]
        try:
            assert len(raw_of_block(code(compression), memoryview(data), 200)) <= 200, f"seed {seed}"
        except RemoteProtocolError:
            continue
