"""Leases in a store that all processes of a cluster share: who leads what, and a sign that it still lives.

    leases/NAME/EPOCH    one leadership: a hash of the rest in hex, a line end, the `Lease` in JSON

Rules of this file:
- A leadership is claimed by making the file of its epoch, which only one can. Who has it writes that file and no other.
- So what a leader that was overtaken still writes changes nothing, and the newest file is the book of addresses too.
- The newest file is never deleted as long as anybody may want to lead under its name: epochs only grow.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.rpc.json_form import JsonForm
from refimpl.errors import CorruptFileError, KeyExistsError, NoSuchKeyError, RemoteProtocolError
from refimpl.state.store import SnapshotStore

__all__ = ["Lease", "LeaseFolder"]

_FOLDER = "leases/"
_NUM_DIGITS = 20
_NUM_KEPT = 2  # the newest, and the one before it, for whoever wants to know whom it has followed


@dataclass(frozen=True, slots=True)
class Lease:
    """The leadership over `name` that `address` has under `token`.

    `beat` rises with each renewal; who sees no other for `timeout_ms` may claim the next epoch. `is_published` says
    that it has begun, and others may speak to it; `is_released`, that it has ended.
    """

    name: str
    token: FencingToken
    address: str
    timeout_ms: int
    beat: int = 0
    is_published: bool = False
    is_released: bool = False


class LeaseFolder:
    """The leases in `store`, which has to make a file only if there is none, as all of ours do.

    Flink:   ZooKeeperLeaderElectionDriver, ZooKeeperLeaderRetrievalDriver (runtime.leaderelection), 1.11.4
    Differs: files and a time-out; there ZooKeeper's sessions and ephemeral nodes.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._form = JsonForm(Lease)

    def names(self) -> list[str]:
        """All that somebody has led."""
        return sorted({unquote(key.split("/")[1]) for key in self._store.list(_FOLDER)})

    def newest_epoch(self, name: str) -> int:
        """The epoch of the newest leadership, whatever is in its file; 0 if there was none.

        Raises:
            StoreError: the store does not say.
        """
        return max((_epoch_of(key) for key in self._keys(name)), default=0)

    def newest(self, name: str) -> Lease | None:
        """The newest leadership, if there was any.

        Raises:
            CorruptFileError: its file is not as it was written, so nobody knows who leads.
            StoreError: the store does not say.
        """
        while (epoch := self.newest_epoch(name)) > 0:
            try:
                raw = self._store.get(_key(name, epoch))
            except NoSuchKeyError:
                continue  # a newer one has come, and this one was deleted
            lease = self._read(_key(name, epoch), raw)
            if lease.name != name or lease.token.epoch != epoch:
                raise _corrupt(_key(name, epoch), f"it is of epoch {lease.token.epoch} of {lease.name}")
            return lease
        return None

    def claim(self, lease: Lease) -> bool:
        """Begin a leadership, of an epoch that nobody has had; false if somebody was quicker.

        Raises:
            StoreError: it failed, or nobody knows.
        """
        try:
            self._store.put(_key(lease.name, lease.token.epoch), self._written(lease))
        except KeyExistsError:
            return False
        keys = self._keys(lease.name)
        if max(map(_epoch_of, keys)) != lease.token.epoch:
            return False  # this epoch was long over, and its file deleted
        self._store.delete(keys[:-_NUM_KEPT])
        return True

    def renew(self, lease: Lease) -> None:
        """Write a leadership anew; for nobody but who has claimed it.

        Raises:
            StoreError: it failed, or nobody knows.
        """
        self._store.put(_key(lease.name, lease.token.epoch), self._written(lease), replace=True)

    def overrule(self, name: str) -> None:
        """Let others lead, whatever the newest file says; for a person who knows that no process still leads.

        Raises:
            StoreError: it failed, or nobody knows.
        """
        token = FencingToken(self.newest_epoch(name) + 1)
        self.claim(Lease(name, token, "", timeout_ms=1, is_released=True))

    def forget(self, name: str) -> None:
        """Delete all of a name that nobody will ever lead again."""
        self._store.delete(self._keys(name))

    def _keys(self, name: str) -> list[str]:
        """The keys of all leaderships that are kept, the oldest first."""
        keys = self._store.list(_key(name, 0).rpartition("/")[0] + "/")
        return sorted([key for key in keys if _epoch_of(key) > 0], key=_epoch_of)

    def _written(self, lease: Lease) -> Iterable[bytes]:
        body = self._form.write(lease)
        return [hashlib.sha256(body).hexdigest().encode(), b"\n", body]

    def _read(self, key: str, raw: bytes) -> Lease:
        digest, _line_end, body = raw.partition(b"\n")
        if not hmac.compare_digest(digest, hashlib.sha256(body).hexdigest().encode()):
            raise _corrupt(key, "its content does not have its hash")
        try:
            lease: Lease = self._form.read(body)
        except RemoteProtocolError as error:
            raise _corrupt(key, str(error)) from error
        return lease


def _key(name: str, epoch: int) -> str:
    return f"{_FOLDER}{quote(name, safe='').replace('.', '%2E')}/{epoch:0{_NUM_DIGITS}}"


def _epoch_of(key: str) -> int:
    """The epoch in a key; -1 in one that is none of ours."""
    digits = key.rpartition("/")[2]
    return int(digits) if len(digits) == _NUM_DIGITS and digits.isdecimal() and digits.isascii() else -1


def _corrupt(key: str, why: str) -> CorruptFileError:
    """Who holds it heals it with its next renewal; if nobody does, somebody has to say so."""
    return CorruptFileError(
        key, f"{why}; its leader may still lead: if that process has ended, LeaseFolder.overrule lets others lead"
    )
