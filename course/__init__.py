"""Sluice: the course around the engine: command line, data, grading, lessons.

In a notebook: `from course import lesson, check, hint`. The verbs are loaded when they are first asked
for, so that the command line starts at once.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

# `progress` and `swap` are modules of this package; as verbs they are L.progress() and L.swap(...).
_VERBS = frozenset({"check", "hint", "lesson", "predict", "quiz", "receipt", "reset", "reveal", "show", "zoo"})


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        from course import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module 'course' has no attribute {name!r}")
