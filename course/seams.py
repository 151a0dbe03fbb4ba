"""Seams: from the reference part to the stub, the solution and the module without it.

A stub is the reference part's signature and docstring with another body, so the two cannot drift;
a solution is the reference part's own source, made to stand alone in a cell.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from course.exercises import folder, folders, table
from course.source_lines import source_lines

__all__ = ["Seam", "child_job", "later_exercises", "seam", "seams", "solution", "stub"]

_COURSE = Path(__file__).parent
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
        swap: how it goes into the running job, a kind of `course/swap/into_job.py`; "" if it cannot.
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
def _parsed(name: str) -> tuple[str, ast.Module]:
    source = _module_file(name).read_text(encoding="utf-8")
    return source, ast.parse(source)


def _reference_node(wanted: Seam) -> ast.ClassDef | ast.FunctionDef:
    return _named_node(wanted.module, wanted.part)


def _named_node(module: str, name: str) -> ast.ClassDef | ast.FunctionDef:
    for node in _parsed(module)[1].body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
    raise AssertionError(f"{module} has no {name}; correct its exercise.toml")


def reference_source(exercise: str) -> str:
    """The reference part as it stands in its module."""
    wanted = seam(exercise)
    source = _parsed(wanted.module)[0]
    node = _reference_node(wanted)
    lines = source_lines(source)
    if not wanted.extends:
        if isinstance(node, ast.ClassDef) and (needless := _needless(node, wanted.methods)):
            return _without(node, needless, lines)
        text = ast.get_source_segment(source, node)
        assert text is not None, "a parsed node has a source"
        return text
    methods = [lines[_first_line(each) - 1 : each.end_lineno] for each in _methods_of(node, wanted.methods)]
    return f"class {wanted.name}({wanted.part}):\n" + "\n\n".join("\n".join(each) for each in methods)


def _methods_of(node: ast.ClassDef | ast.FunctionDef, names: Iterable[str]) -> list[ast.FunctionDef]:
    """The methods with these names, in their order in the class."""
    return [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in names]


def _first_line(node: ast.ClassDef | ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _needless(node: ast.ClassDef, methods: Iterable[str]) -> list[ast.FunctionDef]:
    """The functions of a class that neither these methods nor Python itself come to through `self`."""
    own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    waiting = [name for name in own if name in set(methods) or name.startswith("__")]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in own and name not in reached:
            reached.add(name)
            read = (each for each in ast.walk(own[name]) if isinstance(each, ast.Attribute))
            waiting += [each.attr for each in read if isinstance(each.value, ast.Name) and each.value.id == "self"]
    return [each for name, each in own.items() if name not in reached]


def _without(node: ast.ClassDef, left_out: Iterable[ast.FunctionDef], lines: list[str]) -> str:
    """A class without some of its functions, and without the comments that stand alone between functions."""
    last = node.end_lineno or 0
    gone = {number for number in range(node.lineno, last) if lines[number - 1].startswith("    # -- ")}
    for each in left_out:
        gone |= set(range(_first_line(each), (each.end_lineno or 0) + 1))
    kept: list[str] = []
    for number in range(node.lineno, last + 1):
        line = lines[number - 1]
        if number not in gone and (line.strip() or (kept and kept[-1].strip())):
            kept.append(line)
    return "\n".join(kept).rstrip()


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
    base = wanted.part if wanted.extends else wanted.base
    lines.append(f"class {wanted.name}({base}):" if base else f"class {wanted.name}:")
    if wanted.describes:
        lines += [f'    """{wanted.notes[0]}', *(f"    {line}".rstrip() for line in wanted.notes[1:]), '    """']
    else:
        lines += _docstring_lines(node, wanted.notes, "    ")
    for method in _methods_of(node, wanted.methods):
        lines += ["", *(f"    @{ast.unparse(each)}" for each in method.decorator_list)]
        lines += [f"    {_signature(method)}", *_docstring_lines(method, (), "        "), f"        {empty}"]
    return "\n".join(lines) + "\n"


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _assigned(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def _needed(tree: ast.Module, names: set[str]) -> set[str]:
    """`names`, and what the constants among them are made from."""
    for node in reversed(tree.body):  # a constant is made from those above it
        if isinstance(node, ast.Assign) and _assigned(node) & names:
            names = names | _names_in(node.value)
    return names


def standing_alone(exercise: str, part_source: str) -> str:
    """`part_source` with what it needs of its module in front: imports and small constants."""
    wanted = seam(exercise)
    source, tree = _parsed(wanted.module)
    needed = _needed(tree, _names_in(ast.parse(part_source)))
    written = set() if wanted.extends else {wanted.part}
    imports: list[str] = []
    constants: list[str] = []
    local: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            used = [alias.name for alias in node.names if (alias.asname or alias.name) in needed]
            imports += [f"from {node.module} import {', '.join(used)}"] if used else []
        elif isinstance(node, ast.Import):
            imports += [f"import {alias.name}" for alias in node.names if alias.name in needed]
        elif isinstance(node, ast.Assign) and _assigned(node) & needed:
            constants.append(ast.get_source_segment(source, node) or "")
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in needed - written:
            local.append(node.name)
    if local:
        imports.append(f"from {wanted.module} import {', '.join(sorted(local))}")
    own = sorted(line for line in imports if line.split()[1].partition(".")[0] not in sys.stdlib_module_names)
    standard = [line for line in imports if line not in own]
    blocks = [block for block in (standard, own, constants) if block]
    head = "\n\n".join("\n".join(block) for block in blocks).splitlines()
    return "\n".join([*head, *(["", ""] if head else []), part_source]) + "\n"


def solution(exercise: str) -> str:
    """A cell that holds the reference part: what a solved notebook has in place of the stub."""
    return standing_alone(exercise, f'@L.exercise("{exercise}")\n{reference_source(exercise)}')


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
    lines = source_lines(_parsed(module)[0])
    gone: dict[int, tuple[ast.ClassDef | ast.FunctionDef, str]] = {}
    for name in sorted(hidden):
        gone[_named_node(module, name).lineno] = _named_node(module, name), f'{name} = _reference_part("{name}")'
    for each in found:
        node = _reference_node(each)
        if not each.extends:
            gone[node.lineno] = node, f'{each.part} = _reference_part("{each.part}")'
            continue
        for method in _methods_of(node, {*each.methods, *each.hides}):
            stand_in = f'_reference_method("{each.part}.{method.name}")'
            if any(ast.unparse(decorator) == "property" for decorator in method.decorator_list):
                stand_in = f"property({stand_in})"
            gone[method.lineno] = method, f"    {method.name} = {stand_in}"
    for _, (node, line) in sorted(gone.items(), reverse=True):
        lines[_first_line(node) - 1 : node.end_lineno] = [line]
    return "\n".join(lines) + "\n"


def _driver(wanted: Seam) -> Path:
    return _COURSE / "checks" / wanted.driver if wanted.driver else folder(wanted.exercise) / "driver.py"


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
        "modules": modules,
        "engine_root": str(_ROOT),
        "engine": str(engine),
        "denied": denied,
    }
