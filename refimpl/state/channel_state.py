"""What was in flight of the channels of a subtask, as bytes of a section and back.

Each entry says which channel of how many it is, and what that channel is called on both sides: bytes that are put into
another channel would be records of another key, or of another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refimpl.errors import CorruptFileError, RemoteProtocolError, RestoreRefusedError
from refimpl.records.types import STRING, read_varint, write_varint

__all__ = ["ChannelEntry", "InFlightData"]


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    """The bytes of channel `index` of `num_channels`; `name` says in words what is read or written there."""

    name: str
    num_channels: int
    index: int
    data: bytes


@dataclass(frozen=True, slots=True)
class InFlightData:
    """What was in flight on one side of a subtask; channels without any are left out.

    Flink:   ChannelStateSerializerImpl, InputChannelStateHandle, ResultSubpartitionStateHandle
             (runtime.checkpoint.channel, runtime.state), 1.11.4
    """

    entries: tuple[ChannelEntry, ...]

    @property
    def num_bytes(self) -> int:
        """What was in flight, without what says where."""
        return sum(len(entry.data) for entry in self.entries)

    @staticmethod
    def of(names: Sequence[str], data: Iterable[bytes]) -> InFlightData:
        """The state of channels with these names, in their order."""
        pairs = enumerate(zip(names, data, strict=True))
        return InFlightData(tuple(ChannelEntry(name, len(names), index, raw) for index, (name, raw) in pairs if raw))

    def for_channels(self, names: Sequence[str], operator: str) -> list[tuple[int, bytes]]:
        """The bytes of each of these channels that has some, by its number.

        Raises:
            RestoreRefusedError: the channels are others now, or more, or fewer; the operator is named.
        """
        found = []
        for entry in self.entries:
            if entry.num_channels != len(names):
                raise RestoreRefusedError(
                    f"the operator {operator!r} has state of what was in flight on {entry.num_channels} channels, and "
                    f"has {len(names)} now: an unaligned checkpoint cannot be rescaled; take a savepoint for that"
                )
            if names[entry.index] != entry.name:
                raise RestoreRefusedError(
                    f"the operator {operator!r} has state of what was in flight on the channel {entry.name}, and that "
                    f"is {names[entry.index]} now"
                )
            found.append((entry.index, entry.data))
        return found

    def to_bytes(self) -> bytes:
        """The bytes of a section."""
        target = bytearray()
        write_varint(len(self.entries), target)
        for entry in self.entries:
            STRING.serialize(entry.name, target)
            for number in (entry.num_channels, entry.index, len(entry.data)):
                write_varint(number, target)
            target += entry.data
        return bytes(target)

    @staticmethod
    def from_bytes(raw: bytes, file: str) -> InFlightData:
        """What `to_bytes` has written.

        Raises:
            CorruptFileError: it did not write this; `file` is named.
        """
        source, entries = memoryview(raw), []
        try:
            count, position = read_varint(source, 0)
            for _ in range(count):
                name, position = STRING.deserialize(source, position)
                num_channels, position = read_varint(source, position)
                index, position = read_varint(source, position)
                length, position = read_varint(source, position)
                data, position = bytes(source[position : position + length]), position + length
                if index >= num_channels or position > len(source):
                    raise CorruptFileError(file, f"what was in flight on {name!r} is not whole")
                entries.append(ChannelEntry(str(name), num_channels, index, data))
        except RemoteProtocolError as error:
            raise CorruptFileError(file, f"what was in flight cannot be read: {error}") from None
        if position != len(source):
            raise CorruptFileError(file, f"{len(source) - position} bytes are left over behind what was in flight")
        return InFlightData(tuple(entries))
