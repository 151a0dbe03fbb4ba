"""The names of files in a store. All of one job begin with its id, those of one checkpoint with its number.

Whatever concerns one job sees the store as `JobStore`: the keys there, and in manifests, are without the job's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from urllib.parse import quote

from refimpl.state.store import SnapshotStore

__all__ = [
    "JobStore",
    "checkpoint_folder",
    "checkpoint_id_of",
    "claim_key",
    "claimed_epoch",
    "manifest_key",
    "plain_name",
    "restored_key",
    "savepoint_folder",
    "state_key",
]

_MAX_NAME = 100


class JobStore(SnapshotStore):
    """What one job has in a store."""

    def __init__(self, store: SnapshotStore, job: str) -> None:
        self.job = job
        self._store = store
        self._folder = f"{plain_name(job)}/"

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        self._store.put(self._folder + key, parts, replace=replace)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        return self._store.get(self._folder + key, start, length)

    def size(self, key: str) -> int:
        return self._store.size(self._folder + key)

    def list(self, prefix: str) -> Sequence[str]:
        return [key.removeprefix(self._folder) for key in self._store.list(self._folder + prefix)]

    def delete(self, keys: Iterable[str]) -> None:
        self._store.delete([self._folder + key for key in keys])


def claim_key(epoch: int) -> str:
    """What the leader of `epoch` puts before it looks at anything."""
    return f"leader-{epoch}.claim"


def restored_key(epoch: int) -> str:
    """Where the leader of `epoch` says which checkpoint it went on from."""
    return f"leader-{epoch}.restored"


def claimed_epoch(key: str, what: str = "claim") -> int | None:
    """Whose claim (or `restored`) a file is; `None` if it is none."""
    found = re.fullmatch(rf"leader-(\d+)\.{what}", key, re.ASCII)
    return int(found[1]) if found else None


def checkpoint_folder(checkpoint_id: int) -> str:
    """What the keys of one checkpoint begin with."""
    return f"chk-{checkpoint_id}/"


def savepoint_folder(name: str) -> str:
    """What the keys of one savepoint begin with."""
    return f"sp-{plain_name(name)}/"


def checkpoint_id_of(key: str) -> int | None:
    """The checkpoint in whose folder a file lies; `None` if in none."""
    found = re.match(r"chk-(\d+)/", key, re.ASCII)
    return int(found[1]) if found else None


def manifest_key(folder: str) -> str:
    """The manifest of a checkpoint or savepoint: it is there last, and without it the others are nothing."""
    return f"{folder}_metadata"


def state_key(folder: str, vertex: str, subtask: int, attempt: int) -> str:
    """The state file of one subtask. An attempt has a number that no other of the job has had, under any leader."""
    return f"{folder}{plain_name(vertex)}-{subtask}-{attempt}.state"


def plain_name(name: str) -> str:
    """A name as every store can keep it: what is odd with percent signs, what is long cut, with a hash."""
    plain = quote(name, safe="", errors="surrogatepass")
    if plain.startswith("."):
        plain = "%2E" + plain[1:]
    if len(plain) > _MAX_NAME:
        plain = f"{plain[: _MAX_NAME - 13]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return plain
