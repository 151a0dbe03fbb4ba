"""Seams: where exercises meet the engine, and the engine without what a learner writes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from course.curriculum.folders import folder, folders, table
from course.curriculum.source_lines import source_lines

__all__ = [
    "Seam", "child_job", "first_line", "later_exercises", "methods_of", "parsed_module", "reference_node", "seam",
    "seams",
]  # fmt: skip

_COURSE = Path(__file__).parents[1]
_ROOT = _COURSE.parent
_NOT_OF_THE_SEAM = ("title", "flink_name", "equivalent_mutants")


@dataclass(frozen=True, slots=True)
class Seam:
    """Where an exercise meets the engine: the reference part, and what of it a learner writes, from its exercise.toml.

    Fields:
        module, part: where the reference part lives.
        kind: "class" or "function".
        member: what a class must have to be taken for the part, or the function's usual name.
        methods: the methods a learner writes; everything else of the reference part is left out.
        name: what the part is called in the stub.
        imports: the import lines of the stub.
        notes: promises that the stub's docstring adds to the reference part's own.
        driver: the file of course/checks that runs a case against a part; "" if its folder has its own, `driver.py`.
        base: the protocol the stub derives from, if any.
        swap: how it goes into the running job, a kind of `course/swap/kinds.py`; "" if it cannot.
        extends: the stub derives from the part itself, which keeps all but these methods.
        hides: then, other methods of the part that would be the answer under another name.
        hides_too: functions that are kept from the learner's code as well, with their module.
        describes: the notes are the whole docstring of the stub.
        needs: later exercises whose parts a check of this one runs on, so they are not taken away.
    """

    exercise: str
    module: str
    part: str
    kind: str
    member: str
    methods: tuple[str, ...]
    name: str
    imports: tuple[str, ...]
    notes: tuple[str, ...]
    driver: str = ""
    base: str = ""
    swap: str = ""
    extends: bool = False
    hides: tuple[str, ...] = ()
    hides_too: tuple[str, ...] = ()
    describes: bool = False
    needs: tuple[str, ...] = ()


@cache
def seams() -> dict[str, Seam]:
    """All seams by exercise id."""
    return {exercise: _seam(exercise, table(exercise, "exercise.toml")) for exercise in folders()}


def _seam(exercise: str, row: dict[str, Any]) -> Seam:
    mine = {name: value for name, value in row.items() if name not in _NOT_OF_THE_SEAM}
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in mine.items()}
    return Seam(exercise, **fields)


def seam(exercise: str) -> Seam:
    """The seam of one exercise.

    Raises:
        KeyError: there is no such exercise.
    """
    return seams()[exercise]


@cache
def _module_file(name: str) -> Path:
    # `find_spec` would import the packages it is in, and they half of the engine.
    file = _ROOT.joinpath(*name.split(".")).with_suffix(".py")
    assert file.is_file(), f"there is no module {name}; correct its exercise.toml"
    return file


@cache
def parsed_module(name: str) -> tuple[str, ast.Module]:
    """The source of a module, and what Python reads in it."""
    source = _module_file(name).read_text(encoding="utf-8")
    return source, ast.parse(source)


def reference_node(wanted: Seam) -> ast.ClassDef | ast.FunctionDef:
    """The class or function that is the reference part."""
    return _named_node(wanted.module, wanted.part)


def _named_node(module: str, name: str) -> ast.ClassDef | ast.FunctionDef:
    for node in parsed_module(module)[1].body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
    raise AssertionError(f"{module} has no {name}; correct its exercise.toml")


def methods_of(node: ast.ClassDef | ast.FunctionDef, names: Iterable[str]) -> list[ast.FunctionDef]:
    """The methods with these names, in their order in the class."""
    return [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in names]


def first_line(node: ast.ClassDef | ast.FunctionDef) -> int:
    """The first line of a definition, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def later_exercises(exercise: str) -> list[str]:
    """This exercise and all that come after it: none may need what only a later one teaches."""
    return [each for each in seams() if _place(each) >= _place(exercise)]


def _place(exercise: str) -> tuple[int, ...]:
    return tuple(int(number) for number in exercise.split("."))


def stripped_modules(exercise: str) -> dict[str, str]:
    """The sources of the modules with parts of this exercise and later ones, with a stand-in for each part."""
    found: dict[str, list[Seam]] = {}
    hidden: dict[str, set[str]] = {}
    for each in map(seam, later_exercises(exercise)):
        if each.exercise in seam(exercise).needs:
            continue
        found.setdefault(each.module, []).append(each)
        for module, _, name in (name.rpartition(".") for name in each.hides_too):
            hidden.setdefault(module, set()).add(name)
    modules = {**found, **hidden}
    return {module: _stripped(module, found.get(module, ()), hidden.get(module, ())) for module in modules}


def _stripped(module: str, found: Iterable[Seam], hidden: Iterable[str] = ()) -> str:
    lines = source_lines(parsed_module(module)[0])
    gone: dict[int, tuple[ast.ClassDef | ast.FunctionDef, str]] = {}
    for name in sorted(hidden):
        gone[_named_node(module, name).lineno] = _named_node(module, name), f'{name} = _reference_part("{name}")'
    for each in found:
        node = reference_node(each)
        if not each.extends:
            gone[node.lineno] = node, f'{each.part} = _reference_part("{each.part}")'
            continue
        for method in methods_of(node, {*each.methods, *each.hides}):
            stand_in = f'_reference_method("{each.part}.{method.name}")'
            if any(ast.unparse(decorator) == "property" for decorator in method.decorator_list):
                stand_in = f"property({stand_in})"
            gone[method.lineno] = method, f"    {method.name} = {stand_in}"
    for _, (node, line) in sorted(gone.items(), reverse=True):
        lines[first_line(node) - 1 : node.end_lineno] = [line]
    return "\n".join(lines) + "\n"


def _driver(wanted: Seam) -> Path:
    return _COURSE / "checks" / wanted.driver if wanted.driver else folder(wanted.exercise) / "driver.py"


def _imported_by_harness(exercise: str) -> list[str]:
    """The engine's modules that a rule's harness wants; they are loaded before the time of a case runs."""
    harness = folder(exercise) / "harness.py"
    nodes = ast.walk(ast.parse(harness.read_text(encoding="utf-8"))) if harness.is_file() else ()
    named = [each.module for each in nodes if isinstance(each, ast.ImportFrom) and each.module]
    return sorted(each for each in named if each.startswith("refimpl"))


def child_job(exercise: str) -> dict[str, Any]:
    """What a child must know of an exercise: no answers, and no reference part."""
    wanted = seam(exercise)
    engine = _ROOT / "refimpl"
    modules = stripped_modules(exercise)
    denied = [str(_COURSE), str(engine / "shortcuts")]  # a shortcut does what a part does, in another way
    for file in map(_module_file, modules):
        # Those that other Pythons compiled, and the one that ours may compile at any time.
        compiled = [*map(str, (file.parent / "__pycache__").glob(f"{file.stem}.*")), cache_from_source(str(file))]
        denied += [str(file), *compiled]
    return {
        "exercise": exercise,
        "kind": wanted.kind,
        "member": wanted.member,
        "part": wanted.part,
        "methods": list(wanted.methods),
        "driver": _driver(wanted).read_text(encoding="utf-8"),
        "loads": _imported_by_harness(exercise),
        "modules": modules,
        "engine_root": str(_ROOT),
        "engine": str(engine),
        "denied": denied,
    }
