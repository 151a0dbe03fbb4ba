"""From the reference part to the stub a learner starts from, and to the solution.

A stub is the reference part's signature and docstring with another body, so the two cannot drift; a solution is the
reference part's own source, made to stand alone in a cell.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

from course.curriculum.languages import ENGLISH, languages
from course.curriculum.seams import first_line, methods_of, parsed_module, reference_node, seam
from course.curriculum.source_lines import source_lines
from course.curriculum.stub_texts import docstring_lines, docstrings, stub_texts, with_docstrings

__all__ = ["in_english", "is_untouched", "reference_source", "solution", "standing_alone", "stub"]

_MOST_COLUMNS = 120


def reference_source(exercise: str) -> str:
    """The reference part as it stands in its module."""
    wanted = seam(exercise)
    source = parsed_module(wanted.module)[0]
    node = reference_node(wanted)
    lines = source_lines(source)
    if not wanted.extends:
        if isinstance(node, ast.ClassDef) and (needless := _needless(node, wanted.methods)):
            return _without(node, needless, lines)
        text = ast.get_source_segment(source, node)
        assert text is not None, "a parsed node has a source"
        return text
    assert isinstance(node, ast.ClassDef), "only a class can be extended"
    unreached = {each.name for each in _needless(node, wanted.methods)}
    written = methods_of(node, {*wanted.methods, *wanted.hides} - unreached)
    methods = [lines[first_line(each) - 1 : each.end_lineno] for each in written]
    return f"class {wanted.name}({wanted.part}):\n" + "\n\n".join("\n".join(each) for each in methods)


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
        gone |= set(range(first_line(each), (each.end_lineno or 0) + 1))
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
    return docstring_lines([*kept, "", *more] if more else kept, indent)


def _signature(node: ast.FunctionDef, name: str | None = None, indent: str = "") -> str:
    """The line with `def`, or three where it would be too long."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    name, arguments = name or node.name, ast.unparse(node.args)
    line = f"{indent}def {name}({arguments}){returns}:"
    return line if len(line) <= _MOST_COLUMNS else f"{indent}def {name}(\n{indent}    {arguments}\n{indent}){returns}:"


def stub(exercise: str, language: str = ENGLISH) -> str:
    """The cell a learner starts from: imports, signature, docstring in a language, `raise NotImplementedError`."""
    return with_docstrings(_stub(exercise), stub_texts(exercise, language))


def is_untouched(exercise: str, source: str) -> bool:
    """Whether a source is, letter for letter, the stub in one of the languages."""
    return any(source == stub(exercise, each) for each in languages())


def in_english(exercise: str, source: str) -> str:
    """A learner's source with the stub's docstrings in English, where it has those of another language."""
    try:
        theirs = docstrings(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source  # nobody can say where a docstring is
    english = docstrings(_stub(exercise))
    ours = [docstrings(stub(exercise, each)) for each in languages()]
    same = {name for name, text in theirs.items() if any(text == each.get(name) for each in ours)}
    return with_docstrings(source, {name: english[name] for name in same})


def _stub(exercise: str) -> str:
    wanted = seam(exercise)
    node = reference_node(wanted)
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
    for method in methods_of(node, wanted.methods):
        lines += ["", *(f"    @{ast.unparse(each)}" for each in method.decorator_list)]
        lines += [_signature(method, indent="    "), *_docstring_lines(method, (), "        "), f"        {empty}"]
    return "\n".join(lines) + "\n"


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _needed(tree: ast.Module, names: set[str]) -> set[str]:
    """`names`, and what the constants among them are made from."""
    for node in reversed(tree.body):  # a constant is made from those above it
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _assigned(node) & names:
            names = names | _names_in(node.value)
    return names


def standing_alone(exercise: str, part_source: str) -> str:
    """`part_source` with what it needs of its module in front: imports and small constants."""
    wanted = seam(exercise)
    source, tree = parsed_module(wanted.module)
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
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _assigned(node) & needed:
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
