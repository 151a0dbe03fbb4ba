"""Whether a checkpoint is as it was written: its manifest, then each of its files, a section at a time."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from refimpl.errors import CorruptFileError, NoSuchKeyError
from refimpl.state.layout import checkpoint_id_of
from refimpl.state.manifest import Manifest, StateFile
from refimpl.state.sections import read_sections, read_table
from refimpl.state.store import SnapshotStore

__all__ = ["problems_of", "read_manifest"]


def read_manifest(store: SnapshotStore, key: str) -> Manifest:
    """The manifest under `key`.

    Raises:
        CorruptFileError: it is missing, damaged, of another format, or not of the checkpoint in whose folder it lies.
        StoreError: the store did not answer, which says nothing about the manifest.
    """
    try:
        raw = store.get(key)
    except NoSuchKeyError as error:
        raise CorruptFileError(key, error.reason) from None
    manifest = Manifest.from_bytes(raw, key)
    expected = checkpoint_id_of(key)
    if expected is not None and manifest.checkpoint_id != expected:
        raise CorruptFileError(key, f"is the manifest of checkpoint {manifest.checkpoint_id}")
    return manifest


def problems_of(store: SnapshotStore, manifest: Manifest) -> Iterator[CorruptFileError]:
    """What is wrong with the files of a checkpoint, one by one; nothing if they are sound.

    Raises:
        StoreError: the store did not answer, which says nothing about the files.
    """
    for _, file in sorted(manifest.files().items()):
        try:
            _check(store, file)
        except CorruptFileError as error:
            yield error


def _check(store: SnapshotStore, file: StateFile) -> None:
    try:
        size = store.size(file.key)
        raw = store.get(file.key) if size == file.size else b""
    except NoSuchKeyError as error:
        raise CorruptFileError(file.key, error.reason) from None
    if size != file.size:
        difference = f"short by {file.size - size}" if size < file.size else f"too long by {size - file.size}"
        raise CorruptFileError(file.key, f"{difference} bytes")

    def read(start: int, length: int) -> bytes:
        return raw[start : start + length]

    read_sections(read, read_table(read, size, file.key), file.key)
    if sha256(raw).hexdigest() != file.sha256:
        raise CorruptFileError(file.key, "is another file than the manifest speaks of: SHA-256")
