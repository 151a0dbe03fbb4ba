"""Checkpoints in local files: what a put has said to be there is there after the power has failed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from refimpl.errors import KeyExistsError, LocalUsageError, NoSuchKeyError, StoreError
from refimpl.state.store import SnapshotStore, check_key

__all__ = ["FileStore"]

_F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: `fsync` alone leaves the bytes in the disk's cache
_TEMPORARY = re.compile(r"\.tmp-(\d+)-[0-9a-f]+", re.ASCII)
_MAX_TRIES = 20


class FileStore(SnapshotStore):
    """Files under one folder, keys as paths in it.

    A put writes a temporary file beside the target, syncs it, links it to its name, which fails if there is one (or
    renames it, to replace one), and syncs the folder and each folder it has made. `epoch` is that of the leader who
    opens the store: temporary files of lower ones are of runs that are dead, and are removed. With `fsync=False`
    nobody waits for the disk, and only a crash of the machine can tell.

    Raises:
        StoreError: the folder cannot be made, or the disk refuses.

    Flink:   FsCheckpointStreamFactory, FsCheckpointStorage (runtime.state.filesystem), 1.11.4
    Differs: syncs; Flink leaves the bytes of a local file to the system.
    """

    def __init__(self, folder: Path | str, *, epoch: int = 0, fsync: bool = True) -> None:
        self.folder = Path(folder).absolute()
        self.epoch = epoch
        self.fsync = fsync
        with _named("", self.folder):
            self._make(self.folder)
            self._sweep(self.folder, lambda epoch: epoch < self.epoch)

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        path = self._path(key)
        with _named(key, path):
            if not replace and path.exists():
                raise KeyExistsError(key)
            temporary = self._write(path, parts)
            try:
                if replace:
                    temporary.replace(path)
                else:
                    os.link(temporary, path)
            except FileExistsError:
                raise KeyExistsError(key) from None
            finally:
                temporary.unlink(missing_ok=True)
            self._sync_folder(path.parent)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        path = self._path(key)
        with _named(key, path), path.open("rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def size(self, key: str) -> int:
        path = self._path(key)
        with _named(key, path):
            return path.stat().st_size

    def list(self, prefix: str) -> Sequence[str]:
        with _named(prefix, self.folder):
            return sorted(key for key in self._keys(prefix) if key.startswith(prefix))

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = self._path(key)
            with _named(key, path), suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()
                self._sync_folder(path.parent)
                self._leave(path.parent)

    def sweep(self, folder: str) -> None:
        """Remove the temporary files below a folder of the store: nobody who writes there is alive, or may.

        One that is being written all the same makes its put fail.
        """
        with _named(folder, self.folder):
            self._sweep(self._path(folder), lambda _epoch: True)

    # -- files and folders -------------------------------------------------------------------------

    def _path(self, key: str) -> Path:
        check_key(key)
        return self.folder / key

    def _keys(self, prefix: str) -> Iterator[str]:
        start = self.folder / prefix.rpartition("/")[0]
        if not start.resolve().is_relative_to(self.folder.resolve()):
            raise LocalUsageError(f"{prefix!r} leads out of the store")
        for folder, _folders, names in os.walk(start, onerror=_raise_unless_gone):
            for name in names:
                if not name.startswith("."):
                    yield (Path(folder) / name).relative_to(self.folder).as_posix()

    def _write(self, path: Path, parts: Iterable[bytes]) -> Path:
        temporary = path.with_name(f".tmp-{self.epoch}-{secrets.token_hex(8)}")
        with self._opened(temporary) as file:
            try:
                with os.fdopen(file, "wb") as target:
                    target.writelines(parts)
                    target.flush()
                    self._sync(target.fileno())
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return temporary

    @contextmanager
    def _opened(self, temporary: Path) -> Iterator[int]:
        """A new file; its folder may vanish in between, with the last file that somebody deletes there."""
        for is_last in [False] * _MAX_TRIES + [True]:
            self._make(temporary.parent)
            try:
                file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                if is_last:
                    raise
            else:
                yield file
                return

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it; an entry is durable once the folder it stands in is synced."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        self._sync_folder(folder.parent)

    def _leave(self, folder: Path) -> None:
        """Remove folders that have become empty."""
        while folder != self.folder:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _sweep(self, below: Path, is_dead: Callable[[int], bool]) -> None:
        """Remove temporary files whose epoch is dead, and folders that have become empty by that."""
        for folder, _folders, names in os.walk(below, topdown=False, onerror=_raise_unless_gone):
            temporary = {name: int(found[1]) for name in names if (found := _TEMPORARY.fullmatch(name))}
            dead = [name for name, epoch in temporary.items() if is_dead(epoch)]
            for name in dead:
                (Path(folder) / name).unlink(missing_ok=True)
            if dead:
                self._leave(Path(folder))

    def _sync(self, file: int) -> None:
        if not self.fsync:
            return
        if _F_FULLFSYNC is not None:
            with suppress(OSError):  # not on every file system; then what all have must do
                fcntl.fcntl(file, _F_FULLFSYNC)
                return
        os.fsync(file)

    def _sync_folder(self, folder: Path) -> None:
        if not self.fsync:
            return
        try:
            file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return  # removed meanwhile, with all that was in it
        try:
            self._sync(file)
        finally:
            os.close(file)


@contextmanager
def _named(key: str, path: Path) -> Iterator[None]:
    """Whatever the system says, said of a key and a path."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NoSuchKeyError(key, f"missing, there is no file {path}") from None
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP):
            raise StoreError(key, f"{path}: {error.strerror}; a store needs a file system with hard links") from error
        raise StoreError(key, f"{path}: {error.strerror or error}") from error


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
