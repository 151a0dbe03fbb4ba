"""The one switch: which engine a process runs, the source or its compiled twin.

`choose` is called before anything of `refimpl` is imported. One process has one engine. Processes that it starts get
the same one: they import from where it does, and `SLUICE_ENGINE` says so to commands of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import machinery, util

from course.compiled.standing import Standing, standing

__all__ = ["ENGINES", "VARIABLE", "EngineUnavailable", "choose", "in_use", "wanted"]

ENGINES = ("source", "compiled")
VARIABLE = "SLUICE_ENGINE"
_ALWAYS_SOURCE = {
    "simulation": "the simulation always runs the source: each of its steps can be looked at",
    "spark": "Spark's executors get the engine as text, so a job on them runs the source",
}
_BUILD = "`make fast` builds it"
_SAMPLE = "refimpl.records.element_serializer"
"""A module that is compiled whenever any is."""


class EngineUnavailable(RuntimeError):  # noqa: N818 (a state to report)
    """The compiled engine was asked for and cannot be used; the text is one sentence that says why."""


def wanted(words: Sequence[str]) -> str | None:
    """Which engine the words of a command ask for; `None` leaves it to what is there.

    Raises:
        EngineUnavailable: they ask for a compiled one where there is only the source.
    """
    asked = _asked(words) or os.environ.get(VARIABLE) or None
    for driver, why in _ALWAYS_SOURCE.items():
        if driver in words or any(word.startswith("-") and word.endswith(f"={driver}") for word in words):
            if _asked(words) == "compiled":
                raise EngineUnavailable(f"{why}; leave out --engine")
            return "source"
    return asked


def _asked(words: Sequence[str]) -> str | None:
    """What stands behind the last `--engine`; whether it names an engine is for the parser to say."""
    asked = None
    for index, word in enumerate(words):
        if word == "--engine" and index + 1 < len(words):
            asked = words[index + 1]
        elif word.startswith("--engine="):
            asked = word.partition("=")[2]
    return asked


def choose(asked: str | None) -> str:
    """Let this process run an engine: the one asked for, else the compiled one if it belongs to the source here.

    Returns what is to be told to whoever waits, empty if there is nothing to say.

    Raises:
        EngineUnavailable: the compiled engine is asked for, and is not there, is stale, or comes too late.
    """
    if asked not in (None, *ENGINES):
        raise EngineUnavailable(f"there is no engine {asked!r}; there are {' and '.join(ENGINES)}")
    if asked == "source":
        os.environ[VARIABLE] = asked
        return ""
    if "refimpl" in sys.modules:
        if asked == "compiled" and in_use() != "compiled":
            raise EngineUnavailable("this process has loaded the source of the engine already")
        return ""
    found = standing()
    if not found.is_fresh:
        if asked == "compiled":
            raise EngineUnavailable(_why_not(found))
        return f"{_why_not(found)}; this runs the source" if found.is_there else ""
    sys.path.insert(0, str(found.folder))
    os.environ[VARIABLE] = "compiled"
    return ""


def _why_not(found: Standing) -> str:
    if not found.is_there:
        return f"there is no compiled engine; {_BUILD}"
    return f"the compiled engine is not used: {found.stale}; {_BUILD}"


def in_use() -> str:
    """Which engine this process runs: `source` or `compiled`."""
    spec = util.find_spec(_SAMPLE)
    assert spec is not None, f"{_SAMPLE} is part of the engine"
    is_compiled = str(spec.origin).endswith(tuple(machinery.EXTENSION_SUFFIXES))
    return ENGINES[is_compiled]
