"""A compressed buffer: the code of a library, and before what it makes two lengths to be checked.

    block: compressed length 4 | raw length 4 | compressed bytes      both lengths little-endian

No code of its own is here: whoever runs a job brings one.
"""

from __future__ import annotations

import struct
from typing import Protocol

from refimpl.errors import RemoteProtocolError

__all__ = ["BLOCK_HEADER_BYTES", "BlockCodec", "compressed_block", "raw_of_block"]

_HEADER = struct.Struct("<ii")
BLOCK_HEADER_BYTES = _HEADER.size


class BlockCodec(Protocol):
    """A code for one block of bytes; it keeps nothing from one to the next.

    Flink:   BlockCompressionFactory, Lz4BlockCompressionFactory (runtime.io.compression), 1.11.4
    """

    name: str

    def compress(self, data: memoryview) -> bytes: ...

    def decompress(self, data: memoryview, num_bytes: int) -> bytes:
        """The `num_bytes` bytes that were compressed.

        Raises:
            ValueError: this is nothing that was compressed, or not from so many bytes.
        """


def compressed_block(codec: BlockCodec, data: memoryview) -> bytes | None:
    """The block of some bytes, or `None` where it would not be smaller than they are.

    Flink:   BufferCompressor.compress (runtime.io.network.buffer), Lz4BlockCompressor, 1.11.4
    """
    if len(data) <= BLOCK_HEADER_BYTES:
        return None
    compressed = codec.compress(data)
    if len(compressed) + BLOCK_HEADER_BYTES >= len(data):
        return None
    return _HEADER.pack(len(compressed), len(data)) + compressed


def raw_of_block(codec: BlockCodec, block: memoryview, most_bytes: int) -> bytes:
    """The bytes a block was made of. What it says of their number is checked before any memory is taken.

    Raises:
        RemoteProtocolError: it is no such block, or says to be of more than `most_bytes` bytes.

    Flink:   BufferDecompressor.decompress (runtime.io.network.buffer), Lz4BlockDecompressor, 1.11.4
    """
    if len(block) < BLOCK_HEADER_BYTES:
        raise RemoteProtocolError(f"a compressed buffer of {len(block)} B is too short for its two lengths")
    num_compressed, num_raw = _HEADER.unpack_from(block)
    if num_compressed != len(block) - BLOCK_HEADER_BYTES:
        raise RemoteProtocolError(
            f"a compressed buffer says that {num_compressed} B follow its lengths, and "
            f"{len(block) - BLOCK_HEADER_BYTES} do"
        )
    if not 0 < num_raw <= most_bytes:
        raise RemoteProtocolError(f"a compressed buffer says to be of {num_raw} B, where {most_bytes} are the most")
    try:
        raw = codec.decompress(block[BLOCK_HEADER_BYTES:], num_raw)
    except ValueError as error:
        raise RemoteProtocolError(f"a buffer cannot be decompressed by {codec.name}: {error}") from error
    if len(raw) != num_raw:
        raise RemoteProtocolError(f"a compressed buffer says to be of {num_raw} B, and is of {len(raw)}")
    return raw
