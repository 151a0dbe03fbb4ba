"""A section's Spark query as text for the reader: what it asks in words, then the query, then what it is made of.

    from course.data.sections import SECTIONS
    print(SECTIONS[5].query)

The text is the source of what runs, so the two cannot drift apart, and it needs no Spark to be shown.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["query_text"]

_OF_SPARK = frozenset({"Column", "DataFrame"})
"""Functions that give back one of these are part of a query; all others only write its answer down."""
_NOT_FOR_READERS = re.compile(r"^ *from pyspark\.sql import .*$\n?| *# noqa.*$", re.MULTILINE)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")


def query_text(ask: Callable[..., Any], given: str) -> str:
    """The words of a query's docstring, its code, that of the Spark expressions it calls, and the numbers in them.

    An expression of another module is shown, but not what that calls in turn. `given` is what it is asked of, such as
    "5000 rows of flights".
    """
    assert isinstance(ask, FunctionType), "a query is a function with a name"
    functions, numbers = [ask], {}
    for function in functions:  # grows while we walk
        if function.__module__ != ask.__module__:
            continue  # a reader may look there; what it is built of would fill a page
        for node in ast.walk(ast.parse(inspect.getsource(function))):
            named = function.__globals__.get(node.id) if isinstance(node, ast.Name) else None
            if named in functions or named is None:
                continue
            if isinstance(named, FunctionType) and named.__annotations__.get("return") in _OF_SPARK:
                functions.append(named)
            elif isinstance(node, ast.Name) and _CONSTANT.fullmatch(node.id):
                numbers[node.id] = named
    words = [f"  {line}".rstrip() for line in (inspect.getdoc(ask) or "").splitlines()]
    parts = [f"Spark is asked, of {given}:", *words, "", "\n\n".join(map(_code, functions))]
    if numbers:
        parts += ["", "    with " + ", ".join(f"{name} = {value}" for name, value in numbers.items())]
    return "\n".join(parts)


def _code(function: FunctionType) -> str:
    """The source, without its docstring, empty lines, and what only tools read."""
    lines = inspect.getsource(function).splitlines()
    tree = ast.parse("\n".join(lines)).body[0]
    assert isinstance(tree, ast.FunctionDef), "a query is a function with a name"
    if ast.get_docstring(tree) is not None:
        del lines[tree.body[0].lineno - 1 : tree.body[0].end_lineno]
    shown = _NOT_FOR_READERS.sub("", "\n".join(lines))
    return "\n".join(f"    {line}".rstrip() for line in shown.splitlines() if line.strip())
