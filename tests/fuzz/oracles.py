"""What must be true whatever comes: every segment in one place, memory within its bounds, credit kept."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Protocol

from refimpl.config import Config, FlinkVersion
from refimpl.exchange import (
    HEADER_BYTES,
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    ErrorResponse,
    Message,
    PartitionRequest,
    decode,
)
from refimpl.memory import Buffer, BufferSlice, LocalBufferPool, NetworkBufferPool

__all__ = [
    "Frame",
    "Ledger",
    "after",
    "check_places",
    "check_references",
    "frames_in",
    "held_bytes",
    "numbered",
    "pieces_of",
]

ERROR_RESPONSE = 1


# -- segments --------------------------------------------------------------------------------------


def check_places(pool: NetworkBufferPool, *places: Iterable[int]) -> None:
    """Each segment of `pool` is named exactly once in all `places` together."""
    found = [segment for place in places for segment in place]
    num_segments = len(pool.segments)
    assert len(found) == num_segments == len(set(found)), f"of {num_segments} segments, these are held: {sorted(found)}"


def check_references(lent: Iterable[Buffer], held: Iterable[Buffer | BufferSlice]) -> None:
    """Each lent buffer has as many references as there are holders."""
    num_holders: dict[int, int] = {}
    for buffer in held:
        whole = id(buffer.parent if isinstance(buffer, BufferSlice) else buffer)
        num_holders[whole] = num_holders.get(whole, 0) + 1
    for each in lent:
        found = num_holders.get(id(each), 0)
        assert each.num_references == found, f"{each} has {found} holders"


# -- memory ----------------------------------------------------------------------------------------

# Not held by an object that refers to them: code, what is shared, and the stack an error remembers.
_SHARED = (
    type, ModuleType, FunctionType, BuiltinFunctionType, TracebackType, FrameType, Enum, Config, NetworkBufferPool,
    LocalBufferPool,
)  # fmt: skip


def held_bytes(root: object, *foreign: object) -> int:
    """The memory that `root` alone keeps alive, in bytes, as Python counts it; `foreign` and beyond is others'.

    This follows references instead of asking each container for its length. So a container that a change adds to
    `root` is weighed too.
    """
    seen = set(map(id, foreign))
    num_bytes = 0
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, _SHARED):
            continue
        seen.add(id(found))
        num_bytes += sys.getsizeof(found)
        waiting += gc.get_referents(found)
    return num_bytes


# -- frames and credit -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes of one frame, and what they say."""

    data: bytes
    message: Message


def frames_in(data: bytes, version: FlinkVersion) -> list[Frame]:
    """The frames that one of our ends has written."""
    found = []
    while data:
        length = int.from_bytes(data[:4], "big")
        found.append(Frame(data[:length], _message(data[:length], version)))
        data = data[length:]
    return found


def _message(frame: bytes, version: FlinkVersion) -> Message:
    """What a frame says; an error with all that follows it, since to read one takes long."""
    frame_id, body = frame[HEADER_BYTES - 1], memoryview(frame)[HEADER_BYTES:]
    return ErrorResponse(bytes(body)) if frame_id == ERROR_RESPONSE else decode(frame_id, body, version)


def numbered(frame: bytes, position: int, count: int) -> Iterator[bytes]:
    """`frame`, `count` times: the number in four bytes at `position` goes up by one each time."""
    first = int.from_bytes(frame[position : position + 4], "big")
    for number in range(first, first + count):
        yield frame[:position] + (number % 2**32).to_bytes(4, "big") + frame[position + 4 :]


@dataclass(slots=True)
class _Account:
    credit: int
    next_sequence_number: int = 0


class Ledger:
    """What a producer may send, counted a second time from what it was told and what it sent.

    A reader opens with the first request for a subpartition that `exists`. A data buffer costs `price`.
    """

    def __init__(self, exists: Callable[[PartitionRequest], bool], price: int) -> None:
        self._exists = exists
        self._price = price
        self._taken: set[int] = set()
        self._accounts: dict[bytes, _Account] = {}

    def hear(self, message: Message) -> None:
        """The consumer says `message`."""
        match message:
            case PartitionRequest():
                is_free = message.receiver not in self._accounts and message.first not in self._taken
                if is_free and message.first == message.last and self._exists(message):
                    self._taken.add(message.first)
                    self._accounts[message.receiver] = _Account(message.credit)
            case AddCredit() if message.receiver in self._accounts:
                self._accounts[message.receiver].credit += message.credit
            case CancelPartitionRequest():
                self._accounts.pop(message.receiver, None)
            case CloseRequest():
                self.close()

    def close(self) -> None:
        """Nobody is owed anything, so that whatever is sent from now on is for nobody."""
        self._accounts.clear()

    def send(self, message: BufferResponse) -> None:
        """The producer sends `message`: it has the credit, and counts without a gap."""
        account = self._accounts.get(message.receiver)
        assert account is not None, f"{message} is for nobody"
        assert message.sequence_number == account.next_sequence_number, f"{message} is not {account}"
        assert message.backlog >= 0, f"{message} has a backlog below 0"
        account.next_sequence_number += 1
        account.credit -= self._price * message.data_type.is_buffer
        assert account.credit >= 0, f"{message} was sent without credit"

    def check(self, credit: dict[bytes, int]) -> None:
        """The producer's own count of `credit` by receiver is this one."""
        counted = {receiver: account.credit for receiver, account in self._accounts.items()}
        assert credit == counted, f"the producer has {credit}, it was given {counted}"


def pieces_of(data: bytes, piece_bytes: int) -> Iterator[bytes]:
    """`data` as a transport cuts it."""
    for start in range(0, len(data), piece_bytes):
        yield data[start : start + piece_bytes]


# -- time ------------------------------------------------------------------------------------------


class _Timed(Protocol):
    def next_deadline(self, now_ms: float) -> float | None: ...

    def on_timeout(self, now_ms: float) -> None: ...


def after(end: _Timed, now_ms: float, num_ms: int) -> float:
    """The time `num_ms` later, when a driver has done what was due: nothing may be due still."""
    deadline_ms = end.next_deadline(now_ms)
    assert deadline_ms is None or deadline_ms >= now_ms, f"{deadline_ms} is over at {now_ms}"
    now_ms += num_ms
    end.on_timeout(now_ms)
    deadline_ms = end.next_deadline(now_ms)
    assert deadline_ms is None or deadline_ms > now_ms, f"{deadline_ms} is still due at {now_ms}"
    return now_ms
