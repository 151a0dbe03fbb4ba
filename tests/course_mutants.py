"""A small mutator: every single change of a reference part that a tired hand could make."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

__all__ = ["mutants"]

_COMPARE = {ast.Lt: [ast.LtE, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.Eq: [ast.NotEq], ast.LtE: [ast.Lt]}
_MEMBERS = ("PARTIAL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD_MEMORY_SEGMENT_FULL", "FULL_RECORD")
_WORDS = {"big": "little", "origin": "dest", "dep_delay_minutes": "event_time_ms"}


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """Other nodes that could stand in this one's place."""
    if isinstance(node, ast.Compare):
        for other in _COMPARE.get(type(node.ops[0]), []):
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Constant) and node.value in _WORDS:
        yield ast.Constant(_WORDS[node.value])
    elif isinstance(node, ast.Attribute) and node.attr in _MEMBERS:
        for member in _MEMBERS:
            if member != node.attr:
                yield ast.Attribute(node.value, member, node.ctx)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        yield ast.If(ast.Constant(True), node.body, node.orelse)
        yield ast.If(ast.Constant(False), node.body, node.orelse)
    elif isinstance(node, ast.AugAssign):
        yield ast.Assign([node.target], node.value)
        yield ast.AugAssign(node.target, ast.Sub(), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.Assign | ast.Expr | ast.Raise) and not _is_docstring(node):
        yield ast.Pass()
    elif isinstance(node, ast.Return):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        yield ast.Call(node.func, node.args[:-1], node.keywords)
        yield ast.Call(node.func, list(reversed(node.args)), node.keywords)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max":
        yield ast.Call(ast.Name("min", ast.Load()), node.args, node.keywords)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """(what was changed, the changed source) for every single change."""
    tree = ast.parse(source)
    numbered = list(ast.walk(tree))
    for index, node in enumerate(numbered):
        for number, other in enumerate(_alternatives(node)):
            changed = copy.deepcopy(tree)
            place = list(ast.walk(changed))[index]
            new = ast.copy_location(other, place)
            _replace(changed, place, new)
            before = ast.unparse(node).splitlines()[0]
            after = ast.unparse(ast.fix_missing_locations(new)).splitlines()[0]
            where = _function_of(tree, node)
            yield f"{where}: {before}  →  {after} #{number}", ast.unparse(changed) + "\n"


def _function_of(tree: ast.AST, wanted: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(each is wanted for each in ast.walk(node)):
            return node.name
    return "module"


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
