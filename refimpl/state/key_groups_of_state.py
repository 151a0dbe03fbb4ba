"""State as bytes, one piece for each key group, and back: what lets a job go on at another parallelism.

Only a snapshot asks for the key groups. While records come, state is one dict: a hash as Java computes it, for each
record, would cost more than the record.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from refimpl.errors import CorruptFileError, LocalUsageError, RemoteProtocolError, shown
from refimpl.producer.key_groups import key_group_of
from refimpl.records.types import STRING, TypeSerializer, read_varint, write_varint

__all__ = ["KeyGroupedBytes", "partitioned", "read_pieces", "read_types", "write_pieces", "write_types"]

_RANGE = struct.Struct(">HH")


@dataclass(frozen=True, slots=True)
class KeyGroupedBytes:
    """The entries of one named state, apart for each key group of a contiguous range.

    `types` are the names of the serializers, that of the key first. An entry says by itself where it ends: the pieces
    of one key group that come of several places are put together by writing one behind the other.

    Flink:   KeyGroupPartitioner, KeyGroupRangeOffsets (runtime.state), 1.11.4
    """

    types: tuple[str, ...]
    key_groups: range
    groups: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        """The types, the first key group, where each ends, and the pieces."""
        target = bytearray()
        write_types(self.types, target)
        target += _RANGE.pack(self.key_groups.start, len(self.key_groups))
        return write_pieces(self.groups, target)

    @staticmethod
    def from_bytes(raw: bytes, file: str) -> KeyGroupedBytes:
        """What `to_bytes` wrote.

        Raises:
            CorruptFileError: these bytes are none of it; `file` is named.
        """
        source = memoryview(raw)
        try:
            types, position = read_types(source, 0)
            start, count = _RANGE.unpack_from(source, position)
            groups = read_pieces(source, position + _RANGE.size)
        except (RemoteProtocolError, struct.error) as error:
            raise CorruptFileError(file, f"no state by key group: {error}") from None
        if len(groups) != count:
            raise CorruptFileError(file, f"pieces for {len(groups)} key groups, not for {count}")
        return KeyGroupedBytes(types, range(start, start + count), groups)

    def within(self, key_groups: range) -> KeyGroupedBytes:
        """What belongs to these key groups."""
        start, stop = max(key_groups.start, self.key_groups.start), min(key_groups.stop, self.key_groups.stop)
        kept = range(start, max(start, stop))
        first = start - self.key_groups.start
        return KeyGroupedBytes(self.types, kept, self.groups[first : first + len(kept)] if kept else ())


def partitioned(
    entries: Iterable[tuple[Hashable, bytes | bytearray]],
    key_groups: range,
    max_parallelism: int,
    key_type: TypeSerializer,
) -> tuple[bytes, ...]:
    """The entries of keys, already bytes, one behind the other for each key group.

    Raises:
        LocalUsageError: a key belongs to none of these key groups, so the record was not sent here by its key.
    """
    targets = [bytearray() for _ in key_groups]
    group_of: dict[Hashable, bytearray] = {}  # what a table knows a key by: one hash for each key, not for each entry
    for key, entry in entries:
        known = (type(key), key)
        target = group_of.get(known) if type(key) in (int, str, bytes) else None
        if target is None:
            key_group = key_group_of(key, max_parallelism, key_type)
            if key_group not in key_groups:
                raise LocalUsageError(
                    f"the key {shown(key)} is of key group {key_group}, which is not in {key_groups} of this subtask: "
                    f"was its record sent here by another key?"
                )
            target = group_of[known] = targets[key_group - key_groups.start]
        target += entry
    return tuple(map(bytes, targets))


# -- pieces, and the names of types ----------------------------------------------------------------


def write_types(types: Sequence[str], target: bytearray) -> None:
    """Append the names of serializers, and how many there are."""
    write_varint(len(types), target)
    for name in types:
        STRING.serialize(name, target)


def read_types(source: memoryview, position: int) -> tuple[tuple[str, ...], int]:
    """The names that `write_types` wrote at `position`, and the position after them."""
    count, position = read_varint(source, position)
    types = []
    for _ in range(count):
        name, position = STRING.deserialize(source, position)
        types.append(str(name))
    return tuple(types), position


def write_pieces(pieces: Sequence[bytes], head: bytearray) -> bytes:
    """The head, an index of where each piece ends, and the pieces: large ones are copied once."""
    write_varint(len(pieces), head)
    end = 0
    for piece in pieces:
        end += len(piece)
        head += end.to_bytes(8, "big")
    return b"".join((head, *pieces))


def read_pieces(source: memoryview, position: int) -> tuple[bytes, ...]:
    """The pieces that `write_pieces` wrote at `position`; they reach to the end.

    Raises:
        RemoteProtocolError: they do not.
    """
    count, position = read_varint(source, position)
    start = position + 8 * count
    if start > len(source):
        raise RemoteProtocolError(f"an index of {count} pieces is longer than what there is")
    ends = struct.unpack_from(f">{count}Q", source, position)
    if list(ends) != sorted(ends) or start + (ends[-1] if ends else 0) != len(source):
        raise RemoteProtocolError("the index does not fit what it is an index of")
    return tuple(_cut(source, start, ends))


def _cut(source: memoryview, start: int, ends: Sequence[int]) -> Iterator[bytes]:
    before = 0
    for end in ends:
        yield bytes(source[start + before : start + end])
        before = end
