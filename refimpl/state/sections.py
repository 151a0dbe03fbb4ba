"""The state file: what one subtask had at a checkpoint, in sections, each of which can be read and checked alone.

    magic, format number | section … section | table | trailer

The table says of each section whose it is, what it is, where it lies and its checksum; the trailer says where the
table is, and its checksum. Sections lie one behind the other from the head to the table, so that there is no byte which
nothing checks. All numbers are big-endian. A section may be packed by zlib: the table says so, and the checksum is of
what is stored.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from zlib import crc32

from refimpl.errors import CorruptFileError, LocalUsageError, RemoteProtocolError
from refimpl.records.types import STRING, read_varint, write_varint

__all__ = ["STATE_FORMAT", "Section", "SectionEntry", "SectionKind", "read_sections", "read_table", "state_file"]

STATE_FORMAT = 1
"""The number of the format that is written; readers refuse a higher one."""

_MAGIC = b"SluiceSt"
_HEAD = struct.Struct(">8sH")
_ENTRY = struct.Struct(">HBQQQI")
_TRAILER = struct.Struct(">QII8s")
_OPTIONAL = 1
_ZLIB = "zlib"
_FAST = 1  # zlib's level: state is packed while a task stands still


class SectionKind(Enum):
    """What a section holds. `KEYED` and `TIMERS` are by key group, the two lists have an index of their elements."""

    KEYED = 1
    TIMERS = 2
    SPLIT = 3
    UNION = 4
    BROADCAST = 5
    SOURCE_POSITION = 6
    TRANSACTION = 7
    INPUT_IN_FLIGHT = 8
    OUTPUT_IN_FLIGHT = 9


@dataclass(frozen=True, slots=True)
class Section:
    """The bytes of one state of one operator, which is named by its uid. Who does not know one that is `optional`
    may leave it out.

    `types`, `num_elements` and `channel_bytes` are for the manifest: what the bytes were written with, how many
    elements a list has, and how many bytes were in flight.
    """

    operator: str
    name: str
    kind: SectionKind
    raw: bytes
    optional: bool = False
    types: tuple[str, ...] = ("bytes",)
    num_elements: int | None = None
    channel_bytes: int = 0

    def __str__(self) -> str:
        return _named(self.operator, self.name)


@dataclass(frozen=True, slots=True)
class SectionEntry:
    """A line of the table. `kind` is `None` if this engine does not know it; `codec` is empty if nothing was packed."""

    operator: str
    name: str
    kind: SectionKind | None
    optional: bool
    offset: int
    stored_length: int
    raw_length: int
    codec: str
    crc32: int

    def __str__(self) -> str:
        return _named(self.operator, self.name)


def state_file(sections: Iterable[Section], *, is_packed: bool = False) -> list[bytes]:
    """The parts of a state file with these sections; with `is_packed` each that becomes smaller by that is packed.

    Raises:
        LocalUsageError: two sections are of one operator, kind and name.
    """
    parts = [_HEAD.pack(_MAGIC, STATE_FORMAT)]
    table = bytearray()
    offset = len(parts[0])
    known = set[tuple[str, str, SectionKind]]()
    for section in sections:
        identity = section.operator, section.name, section.kind
        if identity in known:
            raise LocalUsageError(f"two sections are {section.kind.name.lower()}, {section}")
        known.add(identity)
        stored, codec = _packed(section.raw) if is_packed else (section.raw, "")
        flags = _OPTIONAL if section.optional else 0
        for text in (section.operator, section.name, codec):
            STRING.serialize(text, table)
        table += _ENTRY.pack(section.kind.value, flags, offset, len(stored), len(section.raw), crc32(stored))
        parts.append(stored)
        offset += len(stored)
    head = bytearray()
    write_varint(len(known), head)
    raw = bytes(head + table)
    return [*parts, raw, _TRAILER.pack(offset, len(raw), crc32(raw), _MAGIC)]


def read_table(read: Callable[[int, int], bytes], size: int, file: str) -> tuple[SectionEntry, ...]:
    """The table of a state file of `size` bytes; `read(start, length)` gives some of them.

    Raises:
        CorruptFileError: it is none, is damaged, or is of a later format; `file` is named.
    """
    least = _HEAD.size + _TRAILER.size
    if size < least:
        raise CorruptFileError(file, f"{size} bytes are no state file, which has at least {least}")
    head, tail = read(0, _HEAD.size), read(size - _TRAILER.size, _TRAILER.size)
    if len(head) < _HEAD.size or len(tail) < _TRAILER.size:
        raise CorruptFileError(file, f"shorter than the {size} bytes it should have")
    magic, number = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise CorruptFileError(file, f"begins with {magic!r}: no state file")
    if number > STATE_FORMAT:
        raise CorruptFileError(file, f"is of state format {number}, and this engine reads formats up to {STATE_FORMAT}")
    if number != STATE_FORMAT:
        raise CorruptFileError(file, f"there is no state format {number}")
    offset, length, crc, magic = _TRAILER.unpack(tail)
    if magic != _MAGIC:
        raise CorruptFileError(file, "has no trailer: its end is missing or damaged")
    if offset + length + _TRAILER.size != size:
        raise CorruptFileError(file, f"the trailer speaks of {offset + length + _TRAILER.size} bytes, there are {size}")
    raw = read(offset, length)
    if crc32(raw) != crc:
        raise CorruptFileError(file, "table of sections: checksum")
    try:
        entries = _entries(memoryview(raw))
    except (RemoteProtocolError, struct.error) as error:
        raise CorruptFileError(file, f"table of sections: {error}") from None
    _check_tiling(entries, offset, file)
    return entries


def read_sections(
    read: Callable[[int, int], bytes],
    entries: Iterable[SectionEntry],
    file: str,
) -> tuple[Section, ...]:
    """The sections of these lines of the table; unknown ones that are optional are left out.

    Raises:
        CorruptFileError: the bytes of one are damaged, or nothing here can read it; `file` is named.
    """
    sections = []
    for entry in entries:
        raw = read(entry.offset, entry.stored_length)
        if len(raw) < entry.stored_length:
            raise CorruptFileError(file, f"{entry}: short by {entry.stored_length - len(raw)} bytes")
        if crc32(raw) != entry.crc32:
            raise CorruptFileError(file, f"{entry}: checksum")
        if entry.kind is None and entry.optional:
            continue
        if entry.kind is None:
            raise CorruptFileError(file, f"{entry} is of a kind that this engine does not know")
        sections.append(Section(entry.operator, entry.name, entry.kind, _unpacked(entry, raw, file), entry.optional))
    return tuple(sections)


def _packed(raw: bytes) -> tuple[bytes, str]:
    """What to store, and the codec; the bytes as they are if they would not become fewer."""
    packed = zlib.compress(raw, _FAST)
    return (packed, _ZLIB) if len(packed) < len(raw) else (raw, "")


def _unpacked(entry: SectionEntry, stored: bytes, file: str) -> bytes:
    """The bytes of a section; never more than the table says there are.

    Raises:
        CorruptFileError: they are packed in a way that nothing here knows, or are not what the table says.
    """
    if not entry.codec and entry.raw_length == entry.stored_length:
        return stored
    if entry.codec != _ZLIB:
        raise CorruptFileError(file, f"{entry} is packed with {entry.codec or '?'}, which this engine does not have")
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(stored, entry.raw_length + 1)
    except zlib.error as error:
        raise CorruptFileError(file, f"{entry}: {error}") from None
    if len(raw) != entry.raw_length or not unpacking.eof or unpacking.unused_data:
        raise CorruptFileError(file, f"{entry} does not unpack to the {entry.raw_length} bytes that it had")
    return raw


def _entries(source: memoryview) -> tuple[SectionEntry, ...]:
    count, position = read_varint(source, 0)
    entries = []
    for _ in range(count):
        texts = []
        for _ in range(3):
            text, position = STRING.deserialize(source, position)
            texts.append(str(text))
        kind, flags, offset, stored, raw, crc = _ENTRY.unpack_from(source, position)
        position += _ENTRY.size
        known = SectionKind(kind) if kind in {each.value for each in SectionKind} else None
        operator, name, codec = texts
        entries.append(SectionEntry(operator, name, known, bool(flags & _OPTIONAL), offset, stored, raw, codec, crc))
    if position != len(source):
        raise RemoteProtocolError(f"{len(source) - position} bytes are left over")
    return tuple(entries)


def _check_tiling(entries: Sequence[SectionEntry], end: int, file: str) -> None:
    position = _HEAD.size
    for entry in entries:
        if entry.offset != position:
            raise CorruptFileError(file, f"{entry} begins at byte {entry.offset}, and not at {position}")
        position += entry.stored_length
    if position != end:
        raise CorruptFileError(file, f"the sections end at byte {position}, the table begins at {end}")


def _named(operator: str, name: str) -> str:
    return f"section {name!r} of operator {operator!r}"
