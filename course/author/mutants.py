"""A small mutator: every single change of a part that a tired hand could make. Knows Python and no exercise."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

__all__ = ["mutants"]

_COMPARE: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq],
    ast.LtE: [ast.Lt, ast.GtE], ast.GtE: [ast.Gt, ast.LtE], ast.In: [ast.NotIn], ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Add], ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult],
    ast.Div: [ast.Mult], ast.LShift: [ast.RShift], ast.RShift: [ast.LShift], ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}  # fmt: skip
_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "big": "little", "little": "big"}


class _Mutator:
    """Finds what could stand in the place of each node of one source."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self.texts = {
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
        }
        self.members: dict[str, set[str]] = {}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr.isupper():
                self.members.setdefault(node.value.id, set()).add(node.attr)

    def alternatives(self, node: ast.AST) -> Iterator[ast.AST]:
        """Other nodes that could stand in this one's place."""
        if isinstance(node, ast.expr):
            yield from self._expressions(node)
        elif isinstance(node, ast.stmt):
            yield from self._statements(node)

    def _expressions(self, node: ast.expr) -> Iterator[ast.AST]:
        match node:
            case ast.Compare(ops=[op, *_]):
                for other in _COMPARE.get(type(op), []):
                    yield ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)
            case ast.BoolOp():
                yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            case ast.UnaryOp(op=ast.Not()):
                yield node.operand
            case ast.BinOp():
                for each in _ARITHMETIC.get(type(node.op), []):
                    yield ast.BinOp(node.left, each(), node.right)
            case ast.IfExp():
                yield node.body
                yield node.orelse
            case ast.Constant():
                yield from (ast.Constant(value) for value in self._constants(node.value))
            case ast.Attribute(value=ast.Name(id=name)) if node.attr in self.members.get(name, ()):
                for member in sorted(self.members[name] - {node.attr}):
                    yield ast.Attribute(node.value, member, node.ctx)
            case ast.Slice():
                if node.lower is not None:
                    yield ast.Slice(None, node.upper)
                if node.upper is not None:
                    yield ast.Slice(node.lower, None)
            case ast.Call():
                yield from self._calls(node)

    def _constants(self, value: object) -> Sequence[str | int]:
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, int):
            return [value + 1, value - 1]
        if isinstance(value, str) and value in self.texts:
            return [_NAMES[value]] if value in _NAMES else sorted(self.texts - {value} - set(_NAMES))
        return []

    def _calls(self, node: ast.Call) -> Iterator[ast.AST]:
        if len(node.args) > 1:
            yield ast.Call(node.func, node.args[:-1], node.keywords)
            yield ast.Call(node.func, list(reversed(node.args)), node.keywords)
        if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            yield ast.Call(ast.Name(_NAMES[node.func.id], ast.Load()), node.args, node.keywords)

    def _statements(self, node: ast.stmt) -> Iterator[ast.AST]:
        match node:
            case ast.If() | ast.While():
                for test in (ast.UnaryOp(ast.Not(), node.test), ast.Constant(True), ast.Constant(False)):
                    if not (isinstance(node, ast.While) and isinstance(test, ast.Constant) and test.value):
                        yield type(node)(test, node.body, node.orelse)
            case ast.AugAssign():
                yield ast.Assign([node.target], node.value)
                for each in _ARITHMETIC.get(type(node.op), []):
                    yield ast.AugAssign(node.target, each(), node.value)
                yield ast.Pass()
            case ast.Assign() | ast.AnnAssign() | ast.Expr() | ast.Raise() | ast.Break() | ast.Continue():
                if not _is_docstring(node):
                    yield ast.Pass()
            case ast.Return():
                yield ast.Return(ast.Constant(None))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """(what was changed, the changed source) for every single change."""
    tree = ast.parse(source)
    mutator = _Mutator(tree)
    annotations = _in_annotations(tree)
    for index, node in enumerate(list(ast.walk(tree))):
        if id(node) in annotations:
            continue
        for number, other in enumerate(mutator.alternatives(node)):
            changed = copy.deepcopy(tree)
            place = list(ast.walk(changed))[index]
            new = ast.copy_location(copy.deepcopy(other), place)
            _replace(changed, place, new)
            before = ast.unparse(node).splitlines()[0]
            after = ast.unparse(ast.fix_missing_locations(new)).splitlines()[0]
            yield f"{_function_of(tree, node)}: {before}  →  {after} #{number}", ast.unparse(changed) + "\n"


def _in_annotations(tree: ast.AST) -> set[int]:
    """The nodes of type hints, by identity: a change there changes nothing that runs."""
    hints: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hints.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            hints.append(node.annotation)
    return {id(each) for hint in hints if hint is not None for each in ast.walk(hint)}


def _function_of(tree: ast.AST, wanted: ast.AST) -> str:
    found = "module"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(each is wanted for each in ast.walk(node)):
            found = node.name
            break
    return found


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list):
                for index, each in enumerate(value):
                    if each is old:
                        value[index] = new
                        return
