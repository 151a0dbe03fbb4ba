"""How the copy of a module differs from the source before it is compiled.

- Each class says that interpreted classes may inherit from it, as learners' classes do. Its objects can also be
  pickled then: mypyc's own `__new__` would call `__init__`.
- Where a subclass declares an attribute again, with a narrower type, this is left out: mypyc has one type for each
  attribute. What needs the narrower type is then looked up by name when it runs, as in the source.
- What stands in a class and no method assigns is said to be the class's, so that subclasses can replace it.
- A frozen dataclass says how it is pickled: mypyc leaves out what `dataclass` has for that.
- The bounds of a slice that call something stand in a `slice`: mypyc (2.4.1) works them out, finds that what is cut is
  no list and no string, and works them out again, so that `rest[take(rest):]` takes twice.
- `raise one from other` calls `_caused(one, other)`: mypyc (2.4.1) leaves out the `from`, and with it the traceback of
  whatever a user's function raised.
- No class is an `ABC`: those that mypyc makes have no cache of their own for `isinstance`, all take that of `ABC`
  itself, and one of them is then found to be another.
- A class with two bases of ours cannot be compiled, and one whose attributes a lane reads must not be: a lane is made
  when the engine runs, so it is interpreted, and an attribute of a compiled class costs it 21 ns instead of 8. Such a
  class comes from an interpreted twin of its module, which has the source's text.

Lines keep their numbers, so that tracebacks show those of the source: what is added takes the place of a blank line,
or stands behind a line that is there, or behind the last one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["TWIN", "prepared"]

TWIN = "_interpreted"
"""How the name of an interpreted twin ends."""

_READ_BY_GENERATED = frozenset({"Lanes", "StreamRecord", "_PublishedPosition"})
_ATTRIBUTE = "@mypyc_attr(allow_interpreted_subclasses=True)"
_FUTURE = "from __future__ import annotations"
_IMPORTS = f"{_FUTURE}; from mypy_extensions import mypyc_attr; from typing import ClassVar"
_NOT_NATIVE = frozenset({"Enum", "IntEnum", "Protocol", "NamedTuple", "TypedDict"})

_PICKLED = """\
import copyreg
from dataclasses import fields as _fields_of


def _from_fields(made: object) -> tuple[object, ...]:
    return type(made), tuple([getattr(made, field.name) for field in _fields_of(made) if field.init])


"""
"""What stands behind the last line of a module with frozen dataclasses; `_from_fields` is registered for each."""

_CAUSED = """\


def _caused(error: BaseException | type[BaseException], cause: BaseException | None) -> BaseException:
    raised = error() if isinstance(error, type) else error
    raised.__cause__ = cause
    return raised
"""
"""What stands behind the last line of a module that raises an error from another."""

_Edits = dict[int, str]
"""Lines by their number from 0, as they are to be."""


def prepared(texts: Mapping[Path, str]) -> dict[Path, str]:
    """The texts of all modules to compile, by path relative to `refimpl`, as the compiler gets them.

    Twins are among them under paths of their own; they are not to be compiled.

    Raises:
        ValueError: a class stands where nothing can be added without another line.
    """
    trees = {path: ast.parse(text) for path, text in texts.items()}
    classes = {node.name: node for tree in trees.values() for node in _classes(tree)}
    of_classes = set().union(*map(_valued, classes.values())) - set().union(*map(_assigned, classes.values()))
    made: dict[Path, str] = {}
    for path, text in texts.items():
        native = [node for node in _classes(trees[path]) if _is_native(node)]
        if not native:
            made[path] = _as_it_is_meant(text)
            continue
        lines, has_twin = _as_it_is_meant(text).splitlines(), False
        for node in native:
            if len(_bases(node) & classes.keys()) > 1 or node.name in _READ_BY_GENERATED:
                edits, has_twin = _taken_from_twin(node, path), True
            else:
                edits = {
                    **_open_to_subclasses(node, lines),
                    **_without_narrowing(node, classes),
                    **_of_the_class(node, of_classes, lines),
                    **_without_abc(node, lines),
                }
            for number, line in edits.items():
                lines[number] = line
        lines[lines.index(_FUTURE)] = _IMPORTS
        frozen = [node.name for node in native if _is_dataclass(node) and "frozen=True" in _decorators(node)]
        registered = "".join(f"copyreg.pickle({name}, _from_fields)\n" for name in frozen)
        made[path] = "\n".join(lines) + "\n" + (_PICKLED + registered if frozen else "")
        if has_twin:
            made[path.with_stem(path.stem + TWIN)] = text
    return made


def _as_it_is_meant(text: str) -> str:
    """The text with what mypyc does otherwise than Python said in words that both understand alike."""
    text, num_causes = _with_causes(_with_bounds_once(text))
    return text + (_CAUSED if num_causes else "")


def _with_bounds_once(text: str) -> str:
    while calling := [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Slice) and _calls(node)]:
        node = calling[-1]  # one that has no other in it, since the walk goes inwards
        if node.lineno != node.end_lineno:
            raise ValueError(f"line {node.lineno}: a slice that calls something does not stand in one line")
        bounds = ", ".join("None" if each is None else ast.unparse(each) for each in (node.lower, node.upper))
        lines = text.encode().splitlines()
        _replace(lines, _start_of(node), _end_of(node), f"slice({bounds})")
        text = _joined(lines)
    return text


def _with_causes(text: str) -> tuple[str, int]:
    """Also how many errors are raised from another; all is put in where it stands, the last one first."""
    lines = text.encode().splitlines()
    raised = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise) and node.exc and node.cause]
    for node in sorted(raised, key=_start_of, reverse=True):
        assert node.exc is not None, "asked for above"
        assert node.cause is not None, "asked for above"
        _replace(lines, _end_of(node.cause), _end_of(node.cause), ")")
        if node.exc.end_lineno != node.cause.lineno:
            raise ValueError(f"line {node.lineno}: the cause does not stand in the line in which the error ends")
        _replace(lines, _end_of(node.exc), _start_of(node.cause), ", ")
        _replace(lines, _start_of(node.exc), _start_of(node.exc), "_caused(")
    return _joined(lines), len(raised)


_Place = tuple[int, int]
"""Line and column, from 0, the column in bytes."""


def _start_of(node: ast.expr | ast.stmt | ast.Slice) -> _Place:
    return node.lineno - 1, node.col_offset


def _end_of(node: ast.expr | ast.stmt | ast.Slice) -> _Place:
    return (node.end_lineno or node.lineno) - 1, node.end_col_offset or 0


def _replace(lines: list[bytes], start: _Place, end: _Place, words: str) -> None:
    """Put `words` in the place of what stands between two columns of a line."""
    line = lines[start[0]]
    lines[start[0]] = line[: start[1]] + words.encode() + line[end[1] :]


def _joined(lines: list[bytes]) -> str:
    return b"\n".join(lines).decode() + "\n"


def _calls(node: ast.Slice) -> bool:
    """Whether its bounds do something; a length may be asked twice."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return node.step is None and not all(isinstance(each.func, ast.Name) and each.func.id == "len" for each in calls)


def _open_to_subclasses(node: ast.ClassDef, lines: list[str]) -> _Edits:
    above = _first_line(node) - 1
    while lines[above].startswith("#"):
        above -= 1
    if lines[above]:
        raise ValueError(f"class {node.name} has no blank line before it")
    return {above: _ATTRIBUTE}


def _without_narrowing(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> _Edits:
    """Without declarations, that have no value, of attributes that an ancestor has."""
    inherited = {name for ancestor in _ancestors(node, classes) for name in _declared(ancestor) | _assigned(ancestor)}
    again = [each for each in _annotated(node) if each.value is None and _target(each) in inherited]
    return {number: "    pass" for each in again for number in _lines_of(each)}


def _of_the_class(node: ast.ClassDef, names: set[str], lines: list[str]) -> _Edits:
    """With those of its attributes that are among `names` as attributes of the class."""
    if _is_dataclass(node):
        return {}  # there a value is a default of the constructor
    edits = {}
    for each in node.body:
        line = lines[each.lineno - 1]
        if isinstance(each, ast.AnnAssign) and _target(each) in names:
            start, end = each.annotation.col_offset, each.annotation.end_col_offset
            if not line[start:].startswith("ClassVar"):
                edits[each.lineno - 1] = f"{line[:start]}ClassVar[{line[start:end]}]{line[end:]}"
        elif isinstance(each, ast.Assign) and set(_targets(each)) & names:
            end = each.targets[0].end_col_offset or 0
            edits[each.lineno - 1] = f"{line[:end]}: ClassVar{line[end:]}"
    return edits


def _without_abc(node: ast.ClassDef, lines: list[str]) -> _Edits:
    if "ABC" not in _bases(node):
        return {}
    bases = ", ".join(ast.unparse(each) for each in node.bases if ast.unparse(each) != "ABC")
    header = f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    if lines[node.lineno - 1] != f"class {node.name}({', '.join(map(ast.unparse, node.bases))}):":
        raise ValueError(f"class {node.name} does not name its bases in its first line")
    return {node.lineno - 1: header}


def _taken_from_twin(node: ast.ClassDef, path: Path) -> _Edits:
    module = ".".join(("refimpl", *path.with_suffix("").parts)) + TWIN
    edits = dict.fromkeys(range(_first_line(node), node.end_lineno or node.lineno), "")
    edits[node.lineno - 1] = f"from {module} import {node.name} as {node.name}"
    return edits


# -- what stands in a class ------------------------------------------------------------------------


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _bases(node: ast.ClassDef) -> set[str]:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return {base.id for base in bases if isinstance(base, ast.Name)}


def _is_native(node: ast.ClassDef) -> bool:
    """Whether mypyc makes the class one of its own; the rest are classes as any, from which anybody may inherit."""
    return not _bases(node) & _NOT_NATIVE


def _ancestors(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    for name in _bases(node) & classes.keys():
        yield classes[name]
        yield from _ancestors(classes[name], classes)


def _annotated(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    return (each for each in node.body if isinstance(each, ast.AnnAssign))


def _declared(node: ast.ClassDef) -> set[str]:
    return {_target(each) for each in _annotated(node)}


def _assigned(node: ast.ClassDef) -> set[str]:
    """The attributes that its methods assign, of whatever object."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in found}


def _valued(node: ast.ClassDef) -> set[str]:
    """The attributes that have a value where the class is defined; names of Python's own are left alone."""
    if _is_dataclass(node):
        return set()
    found = {_target(each) for each in _annotated(node) if each.value is not None}
    found |= {name for each in node.body if isinstance(each, ast.Assign) for name in _targets(each)}
    return {name for name in found if not name.startswith("__")}


def _is_dataclass(node: ast.ClassDef) -> bool:
    return "dataclass" in _decorators(node)


def _decorators(node: ast.ClassDef) -> str:
    return " ".join(map(ast.unparse, node.decorator_list))


def _targets(node: ast.Assign) -> list[str]:
    return [each.id for each in node.targets if isinstance(each, ast.Name)]


def _target(node: ast.AnnAssign) -> str:
    assert isinstance(node.target, ast.Name), "what stands in a class is declared by its name"
    return node.target.id


def _first_line(node: ast.ClassDef) -> int:
    """Number, from 0, of the line of the class or of its first decorator."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno - 1, node.end_lineno or node.lineno)
