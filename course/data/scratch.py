"""Temporary folders that do not outlive their process.

A folder carries the id of the process that made it. One that was left behind, because its process was killed, is
removed by the next process that makes one.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["make_scratch", "scratch", "spark_path"]

_NAME = re.compile(r"sluice-(\d+)-[a-z]+-")


def make_scratch(purpose: str) -> Path:
    """Make a temporary folder; the caller removes it.

    `purpose` is one lower-case word for its name. The environment variable SLUICE_SCRATCH says where such folders go;
    with a Spark cluster it must be a folder that every machine sees.

    Raises:
        OSError: the place for temporary folders cannot be written.
    """
    parent = Path(os.environ.get("SLUICE_SCRATCH") or tempfile.gettempdir())
    _remove_abandoned(parent)
    return Path(tempfile.mkdtemp(prefix=f"sluice-{os.getpid()}-{purpose}-", dir=parent))


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """Lend a temporary folder that is removed afterwards, whatever happens."""
    folder = make_scratch(purpose)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove folders of processes of this user that are gone."""
    for folder in parent.glob("sluice-*-*-*"):
        named = _NAME.match(folder.name)
        if named and folder.stat().st_uid == os.getuid() and not _is_alive(int(named.group(1))):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process_id: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def spark_path(path: Path) -> str:
    """Name a local file for Spark to read: it takes `file:` names as they are, and some characters as patterns."""
    return "file://" + re.sub(r"([\\\[\]{}*?])", r"\\\1", str(path))
