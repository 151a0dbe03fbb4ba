"""The docstrings of stubs in other languages: `exercises/eNN_N_name/stub.toml` in the folder of the language.

    SpanningSerializer = '''
    …'''
    reset = "…"

are the docstrings of the class (or the function) and of its methods, by name. Everything else of a stub is code, and
the same in all languages; a docstring that is not there is said in English.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from course.curriculum.folders import folder
from course.curriculum.languages import folders_of
from course.curriculum.source_lines import source_lines

__all__ = ["STUB_TEXTS", "docstring_lines", "docstrings", "stub_texts", "with_docstrings"]

STUB_TEXTS = "stub.toml"


def docstring_lines(lines: list[str], indent: str) -> list[str]:
    """These lines as a docstring; nothing for none."""
    if len(lines) <= 1:
        return [f'{indent}"""{line}"""' for line in lines]
    body = [f"{indent}{line}".rstrip() for line in lines[1:]]
    return [f'{indent}"""{lines[0]}', *body, f'{indent}"""']


def docstrings(source: str) -> dict[str, str]:
    """The docstrings in a source, by the name of what they describe."""
    return {node.name: ast.get_docstring(node) or "" for node, _ in _described(source)}


def with_docstrings(source: str, texts: Mapping[str, str]) -> str:
    """The source with these docstrings in place of its own, by name; the others stay."""
    lines = source_lines(source)
    for node, docstring in reversed([*_described(source)]):
        if (text := texts.get(node.name)) is not None:
            written = docstring_lines(text.strip("\n").split("\n"), " " * docstring.col_offset)
            lines[docstring.lineno - 1 : docstring.end_lineno] = written
    return "\n".join(lines) + ("\n" if source.endswith("\n") else "")


def _described(source: str) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef, ast.stmt]]:
    """What has a docstring, and the docstring, in the order of their lines."""
    found = [
        (node, node.body[0])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
    ]
    yield from sorted(found, key=lambda each: each[1].lineno)


def stub_texts(exercise: str, language: str) -> Mapping[str, str]:
    """The docstrings of the stub of an exercise in a language, by name; none in English."""
    return _of_folders(folder(exercise).name, folders_of(language))


@cache
def _of_folders(name: str, folders: tuple[Path, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for file in (place / "exercises" / name / STUB_TEXTS for place in folders):
        if file.is_file():
            found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found
