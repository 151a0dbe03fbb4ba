"""Temporary folders that do not outlive their process.

Their process holds a lock on them, which the system releases when the process ends, however it ends. A folder that was
left behind, because its process was killed, is removed by the next process that makes one.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["make_beside", "make_scratch", "remove_scratch", "runs_programs", "scratch", "spark_path"]

_YOUNG_SECONDS = 60.0
"""A folder younger than this is left alone: its process may not hold the lock yet."""

_locks: dict[Path, int] = {}
"""The open descriptors that hold the locks of this process's folders."""


def make_scratch(purpose: str) -> Path:
    """Make a temporary folder; it stays until `remove_scratch`, or until some process finds its own process gone.

    `purpose` is one lower-case word for its name. The environment variable SLUICE_SCRATCH says where such folders go;
    with a Spark cluster it must be a folder that every machine sees.

    Raises:
        OSError: the place for temporary folders cannot be written.
    """
    parent = Path(os.environ.get("SLUICE_SCRATCH") or tempfile.gettempdir()).absolute()
    for folder in parent.glob("sluice-*-*-*"):
        _remove_if_abandoned(folder)
    folder = Path(tempfile.mkdtemp(prefix=f"sluice-{os.getpid()}-{purpose}-", dir=parent))
    _lock(folder)
    return folder


def runs_programs(folder: Path) -> bool:
    """Whether files of this folder may be run, as the libraries that Java unpacks there have to be."""
    no_execution = getattr(os, "ST_NOEXEC", 0)  # only Linux tells
    return not os.statvfs(folder).f_flag & no_execution


def make_beside(folder: Path) -> Path:
    """Make a folder that `folder` is to become; `remove_scratch` removes it, or forgets it when it has that name.

    Those that a process which was killed has left there are removed.

    Raises:
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{glob.escape(folder.name)}-????????.*"):
        # What was replaced is kept until what replaces it is there.
        if left.suffix == ".new" or (left.suffix == ".old" and folder.exists()):
            _remove_if_abandoned(left)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".new", dir=folder.parent))
    beside.chmod(0o755)
    _lock(beside)
    return beside


def remove_scratch(folder: Path) -> None:
    """Remove a folder of `make_scratch`; one that is gone already is no error."""
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """Lend a temporary folder that is removed afterwards, whatever happens."""
    folder = make_scratch(purpose)
    try:
        yield folder
    finally:
        remove_scratch(folder)


def _lock(folder: Path) -> None:
    _locks[folder] = os.open(folder, os.O_RDONLY)
    fcntl.flock(_locks[folder], fcntl.LOCK_SH)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of ours whose process is gone."""
    try:
        if time.time() - folder.stat().st_mtime < _YOUNG_SECONDS or folder.stat().st_uid != os.getuid():
            return
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return  # gone meanwhile, or not ours
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass  # in use
    finally:
        os.close(lock)


def spark_path(path: Path) -> str:
    """Name a local file for Spark to read: it takes `file:` names as they are, and some characters as patterns."""
    return "file://" + re.sub(r"([\\\[\]{}*?])", r"\\\1", str(path))
