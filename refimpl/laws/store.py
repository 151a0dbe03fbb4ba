"""Store: what a manifest that counts leads to is there; and after the end, nothing but what is the user's."""

from __future__ import annotations

from refimpl.errors import CorruptFileError
from refimpl.state.layout import JobStore
from refimpl.state.manifest import CheckpointKind, Manifest
from refimpl.state.recovery import counts, manifest_keys, restored_records
from refimpl.state.soundness import read_manifest
from refimpl.state.store import MemoryStore

__all__ = ["StoreLaw"]


class StoreLaw:
    """The files of one job in a store, which is looked at from behind: no planned fault strikes here."""

    def __init__(self, store: MemoryStore, job: str) -> None:
        behind = MemoryStore()
        behind.files = store.files
        self._store = JobStore(behind, job)
        self._seen: list[str] = []
        self._manifests: dict[str, Manifest | None] = {}

    def manifests(self) -> dict[str, Manifest]:
        """Those that count now, and all savepoints, by key; what cannot be read leads to nothing."""
        keys = list(self._store.list(""))
        records = restored_records(self._store, keys)
        found = {key: self._manifest(key) for key in manifest_keys(keys)}
        return {
            key: each
            for key, each in found.items()
            if each is not None and (each.kind is CheckpointKind.SAVEPOINT or counts(each, records))
        }

    def check(self) -> None:
        """Between any two calls of the store.

        Raises:
            AssertionError: a file that is reachable is not there.
        """
        keys = list(self._store.list(""))
        if keys == self._seen:
            return
        self._seen = keys
        for key, manifest in self.manifests().items():
            missing = sorted(manifest.files().keys() - set(keys))
            assert not missing, f"{key} counts and names {', '.join(missing)}, which nobody can find"

    def check_end(self) -> None:
        """After a job has FINISHED, where no call has failed.

        Raises:
            AssertionError: something of a checkpoint was left.
        """
        left = [key for key in self._store.list("") if not key.startswith(("leader-", "sp-"))]
        assert not left, f"the job has finished, and nothing leads to {', '.join(left)}"

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file, as `SnapshotStore.get`."""
        return self._store.get(key, start, length)

    def _manifest(self, key: str) -> Manifest | None:
        if key not in self._manifests:
            try:
                self._manifests[key] = read_manifest(self._store, key)
            except CorruptFileError:
                self._manifests[key] = None
        return self._manifests[key]
