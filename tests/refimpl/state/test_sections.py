"""The state file: read from its end, a section alone; no byte of it that nothing checks."""

from __future__ import annotations

import struct
import zlib
from zlib import crc32

import pytest

from refimpl.errors import CorruptFileError, LocalUsageError
from refimpl.state import Section, SectionKind, read_sections, read_table, state_file

SECTIONS = [
    Section("count", "value", SectionKind.KEYED, b"keyed bytes"),
    Section("count", "event", SectionKind.TIMERS, b""),
    Section("source ü", "positions", SectionKind.SPLIT, b"\x00" * 20),
]
RAW = b"".join(state_file(SECTIONS))


def read_all(raw: bytes) -> tuple[Section, ...]:
    def read(start: int, length: int) -> bytes:
        return raw[start : start + length]

    return read_sections(read, read_table(read, len(raw), "a.state"), "a.state")


def changed(raw: bytes, kind: int, flags: int = 0, codec: bytes = b"\x01") -> bytes:
    """A file with one section whose line says something else, with checksums that are right."""
    body, table = raw[:10], b"\x01\x02o\x02n" + codec + struct.pack(">HBQQQI", kind, flags, 10, 0, 0, 0)
    return body + table + struct.pack(">QII8s", 10, len(table), crc32(table), b"SluiceSt")


def test_what_was_written_can_be_read() -> None:
    assert [(s.operator, s.name, s.kind, s.raw) for s in read_all(RAW)] == [
        (s.operator, s.name, s.kind, s.raw) for s in SECTIONS
    ]
    assert read_all(b"".join(state_file([]))) == ()


def test_one_section_is_read_without_the_others() -> None:
    asked = []

    def read(start: int, length: int) -> bytes:
        asked.append(length)
        return RAW[start : start + length]

    entries = read_table(read, len(RAW), "a.state")
    asked.clear()
    (found,) = read_sections(read, [entries[2]], "a.state")
    assert (str(found), found.raw, asked) == ("section 'positions' of operator 'source ü'", b"\x00" * 20, [20])


def test_a_byte_of_a_section_that_is_wrong_is_told_with_operator_and_name() -> None:
    raw = bytearray(RAW)
    raw[raw.index(b"keyed")] ^= 1
    with pytest.raises(CorruptFileError, match=r"^a\.state: section 'value' of operator 'count': checksum$"):
        read_all(bytes(raw))


def test_every_flipped_bit_is_noticed() -> None:
    for position in range(len(RAW)):
        for bit in range(8):
            raw = bytearray(RAW)
            raw[position] ^= 1 << bit
            with pytest.raises(CorruptFileError, match=r"^a\.state: "):
                read_all(bytes(raw))


def test_every_end_that_is_missing_is_noticed_and_what_is_too_much() -> None:
    for length in range(len(RAW)):
        with pytest.raises(CorruptFileError, match=r"^a\.state: "):
            read_all(RAW[:length])
    for raw in (RAW + b"\x00", b"\x00" + RAW, RAW + RAW):
        with pytest.raises(CorruptFileError, match=r"^a\.state: "):
            read_all(raw)


def test_a_later_format_is_refused_by_its_number() -> None:
    raw = RAW[:8] + b"\x00\x02" + RAW[10:]
    with pytest.raises(CorruptFileError, match="is of state format 2, and this engine reads formats up to 1"):
        read_all(raw)


def test_an_unknown_section_is_left_out_only_if_it_may_be() -> None:
    assert read_all(changed(RAW, 99, flags=1)) == ()
    with pytest.raises(
        CorruptFileError, match="section 'n' of operator 'o' is of a kind that this engine does not kno"
    ):
        read_all(changed(RAW, 99))
    with pytest.raises(CorruptFileError, match="is packed with zip, which this engine does not have"):
        read_all(changed(RAW, 1, codec=b"\x04zip"))


def test_two_sections_of_one_name_are_a_mistake() -> None:
    with pytest.raises(LocalUsageError, match="two sections are split, section 'n' of operator 'o'"):
        state_file([Section("o", "n", SectionKind.SPLIT, b"")] * 2)
    assert state_file([Section("o", "n", SectionKind.SPLIT, b""), Section("o", "n", SectionKind.UNION, b"")])


# -- packed ----------------------------------------------------------------------------------------

LONG_RAW = b"the same again and again; " * 200
PACKED = b"".join(state_file([Section("o", "long", SectionKind.KEYED, LONG_RAW), *SECTIONS[:2]], is_packed=True))


def test_a_section_that_becomes_smaller_is_packed_and_read_as_it_was() -> None:
    def read(start: int, length: int) -> bytes:
        return PACKED[start : start + length]

    long, short, empty = read_table(read, len(PACKED), "a.state")
    assert (long.codec, long.raw_length) == ("zlib", len(LONG_RAW))
    assert long.stored_length < len(LONG_RAW) // 10
    assert (short.codec, empty.codec) == ("", "")
    assert [section.raw for section in read_all(PACKED)] == [LONG_RAW, b"keyed bytes", b""]
    assert len(b"".join(state_file([Section("o", "long", SectionKind.KEYED, LONG_RAW)]))) > len(LONG_RAW)


@pytest.mark.parametrize("place", range(10, 40))
def test_a_packed_section_that_was_changed_is_a_checksum(place: int) -> None:
    raw = bytearray(PACKED)
    raw[place] ^= 1
    with pytest.raises(CorruptFileError, match="section 'long' of operator 'o': checksum"):
        read_all(bytes(raw))


def lying(stored: bytes, raw_length: int) -> bytes:
    """A file whose one packed section says of itself what it likes, with checksums that are right."""
    line = struct.pack(">HBQQQI", 1, 0, 10, len(stored), raw_length, crc32(stored))
    table = b"\x01\x02o\x02n\x05zlib" + line
    return PACKED[:10] + stored + table + struct.pack(">QII8s", 10 + len(stored), len(table), crc32(table), b"SluiceSt")


BOMB = zlib.compress(b"\0" * 10_000_000)


@pytest.mark.parametrize(
    ("stored", "raw_length", "said"),
    [
        (BOMB, 100, "does not unpack to the 100 bytes that it had"),
        (BOMB, 0, "does not unpack to the 0 bytes"),
        (zlib.compress(b"abc"), 4, "does not unpack to the 4 bytes"),
        (zlib.compress(b"abc") + b"x", 3, "does not unpack to the 3 bytes"),
        (zlib.compress(b"abc")[:-1], 3, "does not unpack to the 3 bytes"),
        (b"no zlib", 3, "incorrect header check"),
    ],
)
def test_what_is_packed_is_no_more_than_it_says(stored: bytes, raw_length: int, said: str) -> None:
    with pytest.raises(CorruptFileError, match=said):
        read_all(lying(stored, raw_length))
    assert read_all(lying(zlib.compress(b"abc"), 3))[0].raw == b"abc"
