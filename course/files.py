"""Files that somebody names: only what is a file is read, and only as much as such a file can hold.

A pipe that nobody fills, a device without end, a file of many gigabytes: each is refused with its reason, and nobody
waits for it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["AT_ONCE", "MOST_BYTES", "read_file", "write_file"]

MOST_BYTES = 16 * 1024 * 1024
AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a pipe opens whether or not there is somebody at its other end


def read_file(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """What is in this file.

    Raises:
        OSError: it cannot be read; `strerror` says why, also of what is no file, or too large.
    """
    with open(path, "rb", opener=_opened) as file:
        raw = file.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes // 1024 // 1024} MiB", str(path))
    return raw


def _opened(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | AT_ONCE)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        is_folder = stat.S_ISDIR(mode)
        why = os.strerror(errno.EISDIR) if is_folder else "it is a device or a pipe, and no file"
        raise OSError(errno.EISDIR if is_folder else errno.EINVAL, why, path)
    return descriptor


def write_file(path: Path, raw: bytes) -> None:
    """Put this into the file, or into the pipe if somebody reads it.

    Raises:
        OSError: it cannot be written; `strerror` says why.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | AT_ONCE, 0o666), "wb") as file:
        os.set_blocking(file.fileno(), True)
        file.write(raw)
