"""Which checkpoints are kept, and what is deleted: whatever no manifest that is kept leads to.

Not by folder: a manifest may name files that an older checkpoint has written. Manifests go first, so that a crash in
between leaves files that belong to nothing, and never a manifest without its files.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from refimpl.errors import CorruptFileError
from refimpl.state.layout import checkpoint_id_of
from refimpl.state.recovery import Leader, counts, manifest_keys, restored_records
from refimpl.state.soundness import read_manifest

__all__ = ["Swept", "sweep"]


@dataclass(frozen=True, slots=True)
class Swept:
    """What was deleted, in this order."""

    manifests: tuple[str, ...]
    files: tuple[str, ...]


def sweep(
    leader: Leader, completed_id: int, retained: int, also: Collection[int] = (), at_work: Collection[int] = ()
) -> Swept:
    """Keep the `retained` newest checkpoints, and those in `also`, which a restore may be reading.

    What attempts with the numbers `at_work` have put stays too: their last snapshots wait for a manifest without an id.

    Called by a leader that has just completed `completed_id`: what has a larger id is still being written, by it or by
    a younger leader, and is left alone. Savepoints are the user's, with all they lead to.

    Raises:
        LeadershipLostError: somebody else leads; nothing is deleted.
        StoreError: the store did not answer; what was not deleted will be the next time.

    Flink:   StandaloneCompletedCheckpointStore, CheckpointsCleaner (runtime.checkpoint), 1.11.4
    """
    store = leader.store
    keys = store.list("")
    records = restored_records(store, keys)
    kept: dict[int, set[str]] = {}
    reachable = set[str]()
    for key in manifest_keys(keys):
        checkpoint_id = checkpoint_id_of(key)
        try:
            manifest = read_manifest(store, key)
        except CorruptFileError:
            continue  # it leads to nothing
        if checkpoint_id is None or checkpoint_id > completed_id:
            reachable |= manifest.files().keys()
        elif checkpoint_id in also or counts(manifest, records):
            kept[checkpoint_id] = set(manifest.files())
    newest = sorted(kept, reverse=True)[:retained]
    for checkpoint_id in {*newest, *also} & kept.keys():
        reachable |= kept[checkpoint_id]
    old = [key for key in keys if (number := checkpoint_id_of(key)) is not None and number <= completed_id]
    manifests = [key for key in manifest_keys(old) if checkpoint_id_of(key) not in {*newest, *also}]
    unreachable = [key for key in old if key not in reachable and key not in manifest_keys(old)]
    files = [key for key in unreachable if not key.endswith(tuple(f"-{number}.state" for number in at_work))]
    leader.check()
    store.delete(manifests)
    store.delete(files)
    return Swept(tuple(manifests), tuple(files))
