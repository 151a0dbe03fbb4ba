"""What dead attempts have left in a store: states that no manifest names, and files that were never finished.

Rule of this file: what a manifest names stays, whoever has put it; and while one manifest cannot be read, everything
does. So it does not matter who leads, or how a put of the last manifest went.
"""

from __future__ import annotations

import re

from refimpl.drivers.file_store import FileStore
from refimpl.errors import CorruptFileError
from refimpl.state.layout import JobStore, plain_name
from refimpl.state.recovery import manifest_keys
from refimpl.state.soundness import read_manifest
from refimpl.state.store import SnapshotStore

__all__ = ["remove_checkpoints_of", "remove_leftovers_of"]

_STATE = re.compile(r"chk-\d+/.+-\d+-(\d+)\.state", re.ASCII)


def remove_checkpoints_of(store: SnapshotStore, job: str) -> None:
    """Remove all checkpoints of `job`, which has finished for ever, and what is left of others; savepoints stay.

    Raises:
        StoreError: the store did not answer.
    """
    if isinstance(store, FileStore):
        store.sweep(plain_name(job))
    own = JobStore(store, job)
    keys = own.list("chk-")
    own.delete(sorted(keys, key=lambda key: not key.endswith("/_metadata")))  # no manifest names what is gone


def remove_leftovers_of(store: SnapshotStore, job: str, epoch: int) -> list[str]:
    """Remove what attempts of the leader of `epoch` have left for `job`; none of them is at work any more. The keys.

    Raises:
        StoreError: the store did not answer; what is left stays until the next time.
    """
    if isinstance(store, FileStore):
        store.sweep(plain_name(job))
    own = JobStore(store, job)
    keys = own.list("")
    named: set[str] = set()
    for key in manifest_keys(keys):
        try:
            named.update(read_manifest(own, key).files())
        except CorruptFileError:
            return []
    epochs = {key: int(found[1]) >> 16 for key in keys if (found := _STATE.fullmatch(key))}
    left = [key for key, each in epochs.items() if each == epoch and key not in named]
    own.delete(left)
    return left
