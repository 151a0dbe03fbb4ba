"""Where checkpoints are kept: five calls, shaped like an object store, so that one can be put in.

There is no rename, no append and no directory; nothing above this line may use one. A key is a path of names with
slashes between. Nothing in the core calls a store on its own: a driver does, outside of the tasks' exclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from refimpl.errors import KeyExistsError, LocalUsageError, NoSuchKeyError, StoreError

__all__ = ["Fault", "FaultKind", "MemoryStore", "SnapshotStore", "check_key"]

_MAX_NAME_BYTES = 200  # a file system has 255, and a temporary file needs some


class SnapshotStore(Protocol):
    """Files by key, each written once, whole or not at all.

    Flink:   CheckpointStorage, CheckpointStreamFactory (runtime.state), 1.11.4
    Differs: Flink writes streams into a file system with directories and rename.
    """

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        """Write the parts, one behind the other. Durable, and visible to all as a whole, when this returns.

        Raises:
            KeyExistsError: there is a file of this key, and `replace` is false.
            StoreError: it failed, or nobody knows: the file may be there, whole, or may not.
        """

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start` on, at most `length`; fewer if the file ends before.

        Raises:
            NoSuchKeyError: there is no such file.
        """

    def size(self, key: str) -> int:
        """How many bytes the file has.

        Raises:
            NoSuchKeyError: there is no such file.
        """

    def list(self, prefix: str) -> Sequence[str]:
        """The keys that begin with `prefix`, sorted: each whose put has returned, and no part of one that has not."""

    def delete(self, keys: Iterable[str]) -> None:
        """Forget these files, in this order; one that is missing is fine."""


def check_key(key: str) -> None:
    """Refuse what cannot be a key everywhere, or leads out of the store.

    Raises:
        LocalUsageError: a name is empty, begins with a dot, is too long, or has a backslash or a control character.
    """
    for name in key.split("/"):
        if not name or name.startswith(".") or len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
            raise LocalUsageError(f"the key {key!r} has the name {name[:40]!r}, which no file may have")
        if "\\" in name or not name.isprintable():
            raise LocalUsageError(f"the key {key!r} has a character that no file may have")


class FaultKind(Enum):
    """What a store can do to whoever calls it."""

    FAIL = "fails, nothing done"
    LOSE_ANSWER = "does it, and fails"
    NO_SPACE = "no space left"
    SLOW = "takes its time"
    TRUNCATE = "loses the end of what was written, and says nothing"
    FLIP = "writes one bit wrong, and says nothing"


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong once: at the `number`th call of `call`, from 1, whose key has `within` in it.

    `amount` is the delay in ms, the bytes that are lost, or the byte that is written wrong (from the end if negative).
    """

    kind: FaultKind
    call: str = "put"
    within: str = ""
    number: int = 1
    amount: int = 1

    def harm(self, raw: bytes) -> bytes:
        """What arrives of what was to be written."""
        if self.kind is FaultKind.TRUNCATE:
            return raw[: max(0, len(raw) - self.amount)]
        if self.kind is FaultKind.FLIP and raw:
            changed = bytearray(raw)
            changed[self.amount % len(raw)] ^= 1
            return bytes(changed)
        return raw


class MemoryStore:
    """Files in a dict, and a plan of what goes wrong. `calls` lists what was asked, as `put KEY`.

    `wait` is called with the ms that a slow call takes: a driver lets its clock go on, or holds the answer back.
    """

    def __init__(self, faults: Iterable[Fault] = (), wait: Callable[[int], None] = lambda _ms: None) -> None:
        self.files: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.faults = [*faults]
        self._seen: dict[Fault, int] = {}
        self._wait = wait

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        check_key(key)
        fault = self._begin("put", key)
        raw = b"".join(parts)
        if key in self.files and not replace:
            raise KeyExistsError(key)
        self.files[key] = raw if fault is None else fault.harm(raw)
        self._end(fault, key)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        fault = self._begin("get", key)
        raw = self._found(key)
        self._end(fault, key)
        found = raw[start:] if length is None else raw[start : start + length]
        return found if fault is None else fault.harm(found)

    def size(self, key: str) -> int:
        fault = self._begin("size", key)
        raw = self._found(key)
        self._end(fault, key)
        return len(raw)

    def list(self, prefix: str) -> Sequence[str]:
        fault = self._begin("list", prefix)
        found = sorted(key for key in list(self.files) if key.startswith(prefix))  # another thread may put one
        self._end(fault, prefix)
        return found

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            fault = self._begin("delete", key)
            self.files.pop(key, None)
            self._end(fault, key)

    def _found(self, key: str) -> bytes:
        if key not in self.files:
            raise NoSuchKeyError(key)
        return self.files[key]

    def _begin(self, call: str, key: str) -> Fault | None:
        self.calls.append(f"{call} {key}")
        fault = self._due(call, key)
        if fault is not None and fault.kind is FaultKind.SLOW:
            self._wait(fault.amount)
        elif fault is not None and fault.kind in (FaultKind.FAIL, FaultKind.NO_SPACE):
            raise StoreError(key, "no space left" if fault.kind is FaultKind.NO_SPACE else f"{call} failed, as planned")
        return fault

    def _end(self, fault: Fault | None, key: str) -> None:
        if fault is not None and fault.kind is FaultKind.LOSE_ANSWER:
            raise StoreError(key, "no answer, as planned")

    def _due(self, call: str, key: str) -> Fault | None:
        """The planned fault that this call is the one for; each one is counted."""
        due = None
        for fault in self.faults:
            if fault.call == call and fault.within in key:
                self._seen[fault] = self._seen.get(fault, 0) + 1
                if self._seen[fault] == fault.number:
                    due = fault
        return due
