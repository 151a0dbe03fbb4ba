"""What can be said of a source without running it."""

from __future__ import annotations

import ast

from course.curriculum.seams import seam

__all__ = ["is_stub", "loop_around", "names_defined", "parsed"]


def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a source; None if Python cannot read it."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_defined(tree: ast.Module) -> set[str]:
    """The names a module has when it has been run; those inside of functions and classes are not its own."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(node)
    return found


def is_stub(exercise_id: str, source: str) -> bool:
    """Whether every method (or the function) of the seam still does nothing but raise."""
    tree = parsed(source)
    if tree is None:
        return False
    wanted = seam(exercise_id)
    names = set(wanted.methods) or {wanted.name}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in names]
    return bool(found) and all(_only_raises(node, exercise_id) for node in found)


def _only_raises(node: ast.FunctionDef, exercise_id: str) -> bool:
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    return ast.unparse(body[0].exc) in (
        f"NotImplementedError({exercise_id!r})",
        "NotImplementedError",
        "NotImplementedError()",
    )


def loop_around(source: str, line: int | None) -> int | None:
    """The first line of the innermost loop around a line: where the clock rang inside it is chance."""
    tree = parsed(source)
    if tree is None:
        return line
    loops = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.While)
        and line is not None
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(loops, default=line)
