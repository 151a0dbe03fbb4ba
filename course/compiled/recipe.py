"""What of the engine is compiled, and what is not and why.

The modules of `PACKAGES` are compiled, those of `INTERPRETED` are not. `prepare` says how the copy differs from the
source, which is the book and stays as it is.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["INTERPRETED", "PACKAGES", "modules"]

PACKAGES = ("memory", "records", "producer", "consumer", "shortcuts")
"""Packages of `refimpl` whose modules are compiled: those that touch each record or each buffer."""

_ENUM = "members of an enum get attributes of their own in `__init__`, which mypyc does not know"
_TWO_BASES = "classes with two bases of ours, each with attributes, which a compiled class cannot have"
_OF_TASK = "its classes inherit from some of `task`, which is not compiled"
_STEPS = "works on whole columns in numpy: there is nothing to win"

INTERPRETED = {
    "memory/data_type.py": _ENUM,
    "producer/partition_type.py": _ENUM,
    "records/any_type.py": "its depth is bounded by Python's own stack, which compiled code does not use",
    "records/serialization_result.py": _ENUM,
    "shortcuts/chain.py": _OF_TASK,
    "shortcuts/channels.py": _TWO_BASES,
    "shortcuts/frames.py": _TWO_BASES,
    "shortcuts/makers.py": "only names classes, which are asked for of the class itself",
    "shortcuts/task.py": "replaces a method of its base class by a function",
    "shortcuts/operators.py": _STEPS,
    "shortcuts/tables.py": _STEPS,
    "shortcuts/turns.py": _OF_TASK,
    "shortcuts/windows.py": _STEPS,
}
"""Modules of these packages that stay as they are, with the reason."""


def modules(engine: Path) -> list[Path]:
    """The modules to compile, relative to the folder of `refimpl`, in an order that does not change."""
    found = [path.relative_to(engine) for package in PACKAGES for path in sorted((engine / package).rglob("*.py"))]
    return [path for path in found if path.name != "__init__.py" and path.as_posix() not in INTERPRETED]
