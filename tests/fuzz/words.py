"""Frames and fields, as they should be and as they should not: what both ends' words are made of.

Everything is packed by hand here. `refimpl`'s own `encode` refuses to write what an attacker writes.
"""

from __future__ import annotations

import struct
from random import Random

from refimpl.config import FlinkVersion
from refimpl.exchange import MAGIC
from tests.fuzz.consumer_end import receiver
from tests.fuzz.inputs import NUM_CHANNELS

__all__ = ["Words", "frame", "hostile_int", "no_frame"]

_NOT_SMALL = (
    9, 15, 16, 17, 29, 64, 127, 128, 255, 256, 1_023, 1_024, 1_025, 0x7FFF, 0x8000, 0xFFFF, 10**6, 2**24, 2**31 - 10,
    2**31 - 1, -1, -2, -9, -(2**31),
)  # fmt: skip


def hostile_int(rng: Random) -> int:
    """A number that somebody may have thought impossible; it fits four bytes with a sign."""
    return rng.randrange(6) if rng.random() < 0.3 else rng.choice(_NOT_SMALL)


def frame(frame_id: int, body: bytes, length: int | None = None, magic: int = MAGIC) -> bytes:
    return struct.pack(">iIB", 9 + len(body) if length is None else length, magic, frame_id) + body


def no_frame(rng: Random, body: bytes) -> bytes:
    """A frame that is wrong from its first bytes on."""
    kind = rng.randrange(5)
    if kind == 0:
        return frame(rng.randrange(256), body)
    if kind == 1:
        return frame(rng.choice((0, 1, 3, rng.randrange(12))), body, rng.choice((hostile_int(rng), 60_000, 10**6)))
    if kind == 2:
        return frame(rng.randrange(12), body, 9 + len(body) + rng.choice((-17, -2, -1, 1, 2, 17)))
    if kind == 3:
        return frame(rng.randrange(12), body, magic=MAGIC ^ 1 << rng.randrange(32))
    return rng.randbytes(rng.randrange(1, 60))


class Words:
    """Says what one end says to one other; `wildness` is how often a field is not what it should be."""

    def __init__(self, rng: Random, version: FlinkVersion, wildness: float) -> None:
        self.rng = rng
        self.is_2 = version is not FlinkVersion.V1_11
        self._version = version
        self._wildness = wildness

    def _or_wild(self, usual: int) -> int:
        return hostile_int(self.rng) if self.rng.random() < self._wildness else usual

    def _someone(self) -> bytes:
        return receiver(self.rng.randrange(NUM_CHANNELS + (self.rng.random() < self._wildness + 0.02)))

    def _int(self, usual: int) -> bytes:
        return struct.pack(">i", self._or_wild(usual))

    def _finished(self, frame_id: int, body: bytes) -> bytes:
        """The frame, or now and then another one with the same body."""
        rng = self.rng
        if rng.random() >= self._wildness:
            return frame(frame_id, body)
        kind = rng.randrange(10)
        if kind < 2:
            return frame(frame_id, body[: rng.randrange(len(body) + 1)])
        if kind < 3:
            return frame(frame_id, body + rng.randbytes(1 + rng.randrange(9)))
        return no_frame(rng, body) if kind < 6 else frame(frame_id, body)
