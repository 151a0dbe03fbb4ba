"""Where we are, and where things are: the lessons, the learner's folder, what can be made again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = [
    "IN_A_BROWSER",
    "build_folder",
    "cache_folder",
    "home",
    "is_checkout",
    "lessons_folder",
    "not_in_a_browser",
    "own_lessons_folder",
    "state_folder",
    "work_folder",
]

IN_A_BROWSER = sys.platform == "emscripten"
"""Whether this Python is one that a browser runs: it has no threads, no processes, no sockets and no Java."""

_PACKAGE_PARENT = Path(__file__).resolve().parent.parent


def not_in_a_browser(what: str) -> str:
    """What to say of something that a browser lacks; `what` such as "threads"."""
    return f"○ This needs {what}, which a browser does not have. JupyterLab has it: get the project, then make lab"


def is_checkout() -> bool:
    """Whether this runs in a checkout; else it is an installed package, whose files belong to no learner."""
    return (_PACKAGE_PARENT / "pyproject.toml").is_file()


def home() -> Path:
    """The folder that belongs to the learner: the checkout; without one, the current folder."""
    return _PACKAGE_PARENT if is_checkout() else Path.cwd()


def build_folder() -> Path:
    """The folder of what is built of our own sources: `build` in the checkout; without one, the cache folder."""
    return _PACKAGE_PARENT / "build" if is_checkout() else cache_folder()


def lessons_folder() -> Path:
    """The folder of the published lessons: SLUICE_LESSONS, else `lessons` of the checkout or the package."""
    return _real(os.environ.get("SLUICE_LESSONS") or _PACKAGE_PARENT / "lessons")


def own_lessons_folder() -> Path:
    """The folder of lessons that a teacher has written: SLUICE_OWN_LESSONS, else `own-lessons` in `home()`."""
    return _real(os.environ.get("SLUICE_OWN_LESSONS") or home() / "own-lessons")


def work_folder() -> Path:
    """The folder of the learner's own copies of the lessons: SLUICE_WORK, else `work` in `home()`."""
    return _real(os.environ.get("SLUICE_WORK") or home() / "work")


def state_folder() -> Path:
    """The folder of progress and attempts: `.course` in the folder that holds the work folder."""
    return work_folder().parent / ".course"


def cache_folder() -> Path:
    """The folder of what can be made or fetched again: SLUICE_CACHE, else `sluice` in the user's cache folder."""
    if chosen := os.environ.get("SLUICE_CACHE"):
        return _real(Path(chosen).expanduser())
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # as the XDG specification wants it
        cache = Path.home() / ".cache"
    return cache / "sluice"


def _real(path: str | Path) -> Path:
    """Without links; a link that leads to itself stays, and says so when it is opened."""
    return Path(os.path.realpath(path))
