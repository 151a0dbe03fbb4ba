"""Seams: from the reference part to the stub, the solution and the module without it.

A stub is the reference part's signature and docstring with another body, so the two cannot drift;
a solution is the reference part's own source, made to stand alone in a cell.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["Seam", "child_job", "seam", "seams", "solution", "stripped_module", "stub"]

_COURSE = Path(__file__).parent
_ROOT = _COURSE.parent


@dataclass(frozen=True, slots=True)
class Seam:
    """Where an exercise meets the engine; the fields are those of seams.toml."""

    exercise: str
    module: str
    part: str
    kind: str
    member: str
    methods: tuple[str, ...]
    name: str
    imports: tuple[str, ...]
    notes: tuple[str, ...]
    driver: str
    base: str = ""


@cache
def seams() -> dict[str, Seam]:
    """All seams by exercise id."""
    table = tomllib.loads((_COURSE / "seams.toml").read_text(encoding="utf-8"))
    return {
        exercise: Seam(exercise, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for exercise, row in table.items()
    }


def seam(exercise: str) -> Seam:
    """The seam of one exercise.

    Raises:
        KeyError: there is no such exercise.
    """
    return seams()[exercise]


@cache
def _module_file(name: str) -> Path:
    # The parents of a module are imported to find it, the module itself is only read.
    spec = find_spec(name)
    assert spec is not None, f"there is no module {name}; correct seams.toml"
    assert spec.origin, f"{name} has no source file"
    return Path(spec.origin)


@cache
def _parsed(name: str) -> tuple[str, ast.Module]:
    source = _module_file(name).read_text(encoding="utf-8")
    return source, ast.parse(source)


def _reference_node(wanted: Seam) -> ast.ClassDef | ast.FunctionDef:
    for node in _parsed(wanted.module)[1].body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == wanted.part:
            return node
    raise AssertionError(f"{wanted.module} has no {wanted.part}; correct seams.toml")


def reference_source(exercise: str) -> str:
    """The reference part as it stands in its module."""
    wanted = seam(exercise)
    source = _parsed(wanted.module)[0]
    text = ast.get_source_segment(source, _reference_node(wanted))
    assert text is not None, "a parsed node has a source"
    return text


def _docstring_lines(node: ast.ClassDef | ast.FunctionDef, extra: Iterable[str], indent: str) -> list[str]:
    text = (ast.get_docstring(node) or "").splitlines()
    # What the part owes to Flink is told in the lesson; "Raises" is the reference part's own affair.
    kept: list[str] = []
    for line in text:
        if line.startswith(("Flink:", "Differs:", "Raises")):
            break
        kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    more = list(extra)
    lines = [*kept, "", *more] if more else kept
    if len(lines) <= 1:
        return [f'{indent}"""{lines[0] if lines else ""}"""']
    body = [f"{indent}{line}".rstrip() for line in lines[1:]]
    return [f'{indent}"""{lines[0]}', *body, f'{indent}"""']


def _signature(node: ast.FunctionDef, name: str | None = None) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {name or node.name}({ast.unparse(node.args)}){returns}:"


def stub(exercise: str) -> str:
    """The cell a learner starts from: imports, signature, docstring, `raise NotImplementedError`."""
    wanted = seam(exercise)
    node = _reference_node(wanted)
    lines = [*wanted.imports]
    if lines:
        lines += ["", ""]
    lines.append(f'@L.exercise("{exercise}")')
    empty = f'raise NotImplementedError("{exercise}")'
    if isinstance(node, ast.FunctionDef):
        signature = _signature(node, wanted.name).replace("dict[str, Any]", "dict")
        lines += [signature, *_docstring_lines(node, wanted.notes, "    "), f"    {empty}"]
        return "\n".join(lines) + "\n"
    lines.append(f"class {wanted.name}({wanted.base}):" if wanted.base else f"class {wanted.name}:")
    lines += _docstring_lines(node, wanted.notes, "    ")
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in wanted.methods:
            lines += ["", f"    {_signature(method)}", *_docstring_lines(method, (), "        "), f"        {empty}"]
    return "\n".join(lines) + "\n"


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def standing_alone(exercise: str, part_source: str) -> str:
    """`part_source` with what it needs of its module in front: imports and small constants."""
    wanted = seam(exercise)
    source, tree = _parsed(wanted.module)
    needed = _names_in(ast.parse(part_source))
    imports: list[str] = []
    constants: list[str] = []
    local: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            used = [alias.name for alias in node.names if (alias.asname or alias.name) in needed]
            imports += [f"from {node.module} import {', '.join(used)}"] if used else []
        elif isinstance(node, ast.Import):
            imports += [f"import {alias.name}" for alias in node.names if alias.name in needed]
        elif isinstance(node, ast.Assign) and {t.id for t in node.targets if isinstance(t, ast.Name)} & needed:
            constants.append(ast.get_source_segment(source, node) or "")
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in needed - {wanted.part}:
            local.append(node.name)
    if local:
        imports.append(f"from {wanted.module} import {', '.join(sorted(local))}")
    head = [*imports, *([""] if imports and constants else []), *constants]
    return "\n".join([*head, *(["", ""] if head else []), part_source]) + "\n"


def solution(exercise: str) -> str:
    """A cell that holds the reference part: what a solved notebook has in place of the stub."""
    return standing_alone(exercise, f'@L.exercise("{exercise}")\n{reference_source(exercise)}')


def stripped_module(exercise: str) -> str:
    """The source of the seam's module with a stand-in for the reference part."""
    wanted = seam(exercise)
    source, _ = _parsed(wanted.module)
    node = _reference_node(wanted)
    lines = source.splitlines()
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    lines[first - 1 : node.end_lineno] = [f'{wanted.part} = _reference_part("{wanted.part}")']
    return "\n".join(lines) + "\n"


def child_job(exercise: str) -> dict[str, Any]:
    """What a child must know of an exercise: no answers, and no reference part."""
    wanted = seam(exercise)
    engine = _ROOT / "refimpl"
    module_file = _module_file(wanted.module)
    cached = module_file.parent / "__pycache__"
    denied = [str(_COURSE), str(module_file), *(str(p) for p in cached.glob(f"{module_file.stem}.*"))]
    return {
        "exercise": exercise,
        "kind": wanted.kind,
        "member": wanted.member,
        "methods": list(wanted.methods),
        "driver": (_COURSE / "checks" / wanted.driver).read_text(encoding="utf-8"),
        "modules": {wanted.module: stripped_module(exercise)},
        "engine_root": str(_ROOT),
        "engine": str(engine),
        "denied": denied,
    }
