"""Checkpoints in an object store, or whatever fsspec knows: s3, gcs, abfs, hdfs are its packages and not our code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from refimpl.errors import ConfigError, KeyExistsError, NoSuchKeyError, StoreError
from refimpl.state.store import SnapshotStore, check_key

__all__ = ["CREATE_IF_ABSENT", "ObjectStore"]

CREATE_IF_ABSENT = frozenset({"abfs", "abfss", "az", "gcs", "gs", "memory", "s3", "s3a"})
"""Back ends whose `pipe_file(mode="create")` is one call, answered by the store itself: of two, one is refused."""

_LOCAL = frozenset({"file", "local"})


class ObjectStore(SnapshotStore):
    """Objects under a URL such as `s3://bucket/checkpoints`; `options` are those of the back end.

    Where two could create one object, as with fsspec's own look before it writes, two leaders could overwrite each
    other: such a back end is refused, unless `read_only` says that nothing will be put.

    Raises:
        ConfigError: a back end that cannot be a leader's store, or fsspec's local files, which are not synced.
        StoreError: there is no such back end, or its package is not installed.
    """

    def __init__(self, url: str, *, read_only: bool = False, **options: Any) -> None:
        import fsspec

        protocol = fsspec.utils.get_protocol(url)
        if protocol in _LOCAL:
            raise ConfigError("url", url, "local files are kept by FileStore, which waits for the disk")
        if not read_only and protocol not in CREATE_IF_ABSENT:
            raise ConfigError(
                "url", url, f"two leaders could write one file of {protocol}; use one of {sorted(CREATE_IF_ABSENT)}"
            )
        try:
            self._files, root = fsspec.core.url_to_fs(url, **options)
        except (ImportError, ValueError) as error:
            raise StoreError(url, str(error)) from error
        self.url = url
        self._is_read_only = read_only
        self._root = root.rstrip("/") + "/"

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        check_key(key)
        if self._is_read_only:
            raise StoreError(key, f"{self.url} was opened to be read")
        raw = b"".join(parts)
        try:
            self._files.pipe_file(self._root + key, raw, mode="overwrite" if replace else "create")
        except FileExistsError:
            raise KeyExistsError(key) from None
        except Exception as error:
            raise StoreError(key, f"{self.url}: {error}") from error

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        check_key(key)
        size = self.size(key)  # what begins behind the end is an error in some back ends, and not in others
        end = size if length is None else min(size, start + length)
        if start >= end:
            return b""
        return bytes(self._asked(key, lambda: self._files.cat_file(self._root + key, start=start, end=end)))

    def size(self, key: str) -> int:
        check_key(key)
        found = self._asked(key, lambda: self._files.info(self._root + key))
        if found["type"] != "file":
            raise NoSuchKeyError(key)
        return int(found["size"])

    def list(self, prefix: str) -> Sequence[str]:
        folder = self._root + prefix.rpartition("/")[0]
        self._files.invalidate_cache()
        found = self._asked(prefix, lambda: self._files.find(folder), missing=[])
        keys = (path[path.index(self._root.lstrip("/")) :].removeprefix(self._root.lstrip("/")) for path in found)
        return sorted(key for key in keys if key.startswith(prefix))

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            check_key(key)
            self._asked(key, lambda path=self._root + key: self._files.rm_file(path), missing=None)

    def _asked(self, key: str, call: Any, **instead: Any) -> Any:
        """What the back end answers; `missing` if there is no such object."""
        try:
            return call()
        except FileNotFoundError:
            if instead:
                return instead["missing"]
            raise NoSuchKeyError(key) from None
        except Exception as error:
            raise StoreError(key, f"{self.url}: {error}") from error
