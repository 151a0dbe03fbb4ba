"""Whether there is a compiled engine, and whether it belongs to the source that is here.

A build carries what it was made of: the text of the source, how it was prepared, the Python and the mypyc. If one of
these is another one now, the build is stale, and nobody uses it.
"""

from __future__ import annotations

import hashlib
import json
import sysconfig
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from course.places import build_folder

__all__ = ["RECORD", "Standing", "compiled_folder", "engine_source", "ingredients", "standing"]

RECORD = "built.json"
"""The file of a build that says what it was made of. It is written last: without it there is no build."""

_RECIPE = "[prw]*.py"
"""The modules that say how the copy is made: `prepare`, `recipe` and `worker`."""

_WORDS = {
    "source": "the engine's source has changed since",
    "recipe": "it was prepared in another way than now",
    "python": "it is for another Python",
    "mypyc": "it was made by another mypyc",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in `folder`: `is_there`, and if so `stale`, why it cannot be used, or nothing.

    `made` is what its record says.
    """

    folder: Path
    is_there: bool
    stale: str
    made: dict[str, Any]

    @property
    def is_fresh(self) -> bool:
        return self.is_there and not self.stale


def compiled_folder() -> Path:
    """The folder that holds the compiled `refimpl`."""
    return build_folder() / "compiled"


def engine_source() -> Path:
    """The folder of the source of `refimpl`, beside this package; it is not imported."""
    return Path(__file__).resolve().parents[2] / "refimpl"


def ingredients() -> dict[str, str]:
    """What a build made now would be made of; without mypy here, nothing is said of it."""
    made = {
        "source": _digest(engine_source(), "**/*.py"),
        "recipe": _digest(Path(__file__).parent, _RECIPE),
        "python": str(sysconfig.get_config_var("SOABI")),
    }
    if util.find_spec("mypyc") is not None:
        made["mypyc"] = metadata.version("mypy")
    return made


def standing() -> Standing:
    """Look at the compiled engine: hundredths of a second, as the source is read to be compared."""
    folder = compiled_folder()
    try:
        made = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Standing(folder, is_there=False, stale="", made={})
    if not isinstance(made, dict):
        made = {}
    stale = next((_WORDS[name] for name, value in ingredients().items() if made.get(name) != value), "")
    return Standing(folder, is_there=True, stale=stale, made=made)


def _digest(folder: Path, pattern: str) -> str:
    """SHA-256 of the names and texts of these modules of a package."""
    total = hashlib.sha256()
    for path in sorted(folder.glob(pattern)):
        text = path.read_bytes()
        total.update(f"{path.relative_to(folder).as_posix()} {len(text)}\n".encode() + text)
    return total.hexdigest()
