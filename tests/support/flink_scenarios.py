"""Scenarios of Flink's own unit tests, by number: which of our tests says in its docstring that it repeats one.

    Flink: `RecordWriterTest#testBroadcastEventNoRecords` (P40).

The numbers are those of the table in `peer/README.md`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
LABEL = re.compile(r"\((P\d+(?:, P\d+)*)\)")


def numbers_in(docstring: str | None) -> list[int]:
    """The scenarios a docstring names, in its order."""
    return [int(number[1:]) for label in LABEL.findall(docstring or "") for number in label.split(", ")]


def labelled() -> dict[int, list[tuple[str, str]]]:
    """Number of a scenario → the tests that repeat it, each as its file below `tests` and its name."""
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if not LABEL.search(text):
            continue
        for function in ast.parse(text).body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                for number in dict.fromkeys(numbers_in(ast.get_docstring(function))):
                    found[number].append((path.relative_to(TESTS).as_posix(), function.name))
    return found
