"""A temporary file for one record that is too long to gather in memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from pathlib import Path

from refimpl.errors import SpillError

__all__ = ["SpillFile"]


class SpillFile:
    """Takes the bytes of one record of `record_bytes` bytes, then shows them as memory.

    The file has no name from its first byte on, so nothing stays behind when the process is killed.

    Raises (all methods):
        SpillError: the directory cannot be written, or has too little room.

    Flink:   SpanningWrapper.createSpillingChannel (runtime.io.network.api.serialization), 1.11.4
    Differs: unlinked at once; Flink deletes the file when the record has been read.
    """

    def __init__(self, record_bytes: int, directory: str) -> None:
        self._record_bytes = record_bytes
        self._directory = directory
        try:
            num_free = shutil.disk_usage(directory).free
            if num_free < record_bytes:
                raise SpillError(record_bytes, directory, f"has only {num_free} B free")
            descriptor, path = tempfile.mkstemp(suffix=".inputchannel", dir=directory)
            Path(path).unlink()
        except OSError as error:
            raise SpillError(record_bytes, directory, f"refused: {error.strerror}") from error
        self._file = os.fdopen(descriptor, "w+b", buffering=0)

    def write(self, chunk: memoryview) -> None:
        """Append `chunk`."""
        try:
            while chunk:
                chunk = chunk[self._file.write(chunk) :]
        except OSError as error:
            self.close()
            reason = f"refused to take more: {error.strerror}"
            raise SpillError(self._record_bytes, self._directory, reason) from error

    def read_all(self) -> memoryview:
        """The whole record, mapped into memory page by page as it is read."""
        return memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))

    def close(self) -> None:
        """Give the file up; memory handed out stays valid."""
        self._file.close()
