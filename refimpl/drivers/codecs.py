"""Codes for compressed buffers, which are pyarrow's: LZ4 without a frame, and Zstandard."""

from __future__ import annotations

from refimpl.batch_options import Compression
from refimpl.errors import ConfigError
from refimpl.records.compression import BlockCodec

__all__ = ["ArrowCodec", "codec_of"]

_NAMES = {Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd"}


class ArrowCodec:
    """One of pyarrow's codes, `name` as it is called there.

    Its LZ4 does not say when fewer bytes come out than were asked for: what is missing then is any bytes.

    Raises:
        ImportError: there is no pyarrow.
    """

    def __init__(self, name: str) -> None:
        import pyarrow

        self.name = name
        self._codec = pyarrow.Codec(name)

    def compress(self, data: memoryview) -> bytes:
        return bytes(self._codec.compress(data, asbytes=True))

    def decompress(self, data: memoryview, num_bytes: int) -> bytes:
        """The `num_bytes` bytes that were compressed.

        Raises:
            ValueError: this is nothing that was compressed.
        """
        try:
            return bytes(self._codec.decompress(data, decompressed_size=num_bytes, asbytes=True))
        except OSError as error:  # pyarrow's word for it
            raise ValueError(str(error)) from error


def codec_of(compression: Compression) -> BlockCodec | None:
    """The code of an option, or `None` for none.

    Raises:
        ConfigError: there is no pyarrow.
    """
    if compression is Compression.NONE:
        return None
    try:
        return ArrowCodec(_NAMES[compression])
    except ImportError as error:
        raise ConfigError("compression", compression, "none without pyarrow: pip install pyarrow") from error
