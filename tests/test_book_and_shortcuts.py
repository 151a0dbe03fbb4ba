"""The book has one way, and what only saves work stands behind it: rules that a reader may rely on."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOOK = ("memory", "records", "producer", "exchange", "consumer", "task", "job")
BOOK_FILES = sorted(path for package in BOOK for path in (ROOT / "refimpl" / package).rglob("*.py"))
SHORTCUTS = "refimpl.shortcuts"
# Who may name the shortcuts: they themselves, the one place that chooses, and tests and benchmarks of them.
MAY_NAME_SHORTCUTS = ("refimpl/shortcuts/", "refimpl/drivers/makers.py", "tests/shortcuts/", "tests/bench/")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", BOOK_FILES, ids=named)
def test_the_book_knows_neither_numpy_nor_the_shortcuts(path: Path) -> None:
    for module in imports_of(tree_of(path)):
        assert not is_within(module, SHORTCUTS), f"{named(path)} imports {module}"
        assert not is_within(module, "numpy"), f"{named(path)} imports {module}"


@pytest.mark.parametrize("path", BOOK_FILES, ids=named)
def test_the_book_asks_no_part_for_its_class(path: Path) -> None:
    """`type(x) is Reference` is a switch that nobody sees: a part is asked for what it does, not for what it is."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            sides = [node.left, *node.comparators]
            asks = any(isinstance(side, ast.Call) and ast.unparse(side.func) == "type" for side in sides)
            of_numbers = any(ast.unparse(side) in ("int", "float", "bool", "str") for side in sides)
            assert not asks or of_numbers, f"{named(path)}, line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", BOOK_FILES, ids=named)
def test_no_object_of_the_book_changes_its_class(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            assert node.attr != "__class__", f"{named(path)}, line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", BOOK_FILES, ids=named)
def test_no_method_of_the_book_is_replaced_in_an_object(path: Path) -> None:
    """A call leads to the method that stands in the class: a reader, and a tool, can follow it."""
    for kind in [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]:
        methods = {each.name for each in kind.body if isinstance(each, ast.FunctionDef)}
        for node in ast.walk(kind):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                is_own = ast.unparse(node.value) == "self"
                assert not (is_own and node.attr in methods), f"{named(path)}, line {node.lineno}: {ast.unparse(node)}"


def test_the_shortcuts_are_named_in_one_place() -> None:
    """So that they can be deleted: no other file of the project would miss them."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.py"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    for name in tracked:
        path = ROOT / name
        if name.startswith(MAY_NAME_SHORTCUTS) or not path.exists():
            continue
        found = [module for module in imports_of(tree_of(path)) if is_within(module, SHORTCUTS)]
        assert not found, f"{name} imports {found}"


def run_without(module: str, code: str) -> str:
    """What `code` prints where `module` cannot be imported."""
    hidden = f"import sys\nsys.modules[{module!r}] = None\n{code}"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


SUM_ON_THREADS = """
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG

results = []
job = StreamEnvironment(Config(segment_size_bytes=64), 2)
job.from_collection(range(1000), type=LONG).rebalance().map(lambda n: n * n).sink(results.append)
ThreadedRun(job, num_task_managers=2).run()
print(sum(results))
"""


@pytest.mark.slow
def test_a_job_runs_on_threads_where_the_shortcuts_have_been_deleted() -> None:
    assert run_without(SHORTCUTS, SUM_ON_THREADS) == f"{sum(n * n for n in range(1000))}\n"


@pytest.mark.slow
def test_a_job_that_asks_for_the_shortcuts_is_told_that_there_are_none() -> None:
    code = SUM_ON_THREADS.replace("segment_size_bytes=64", "segment_size_bytes=64, shortcuts=True")
    caught = f"try:\n    exec({code!r})\nexcept ConfigError as error:\n    print(error)"
    assert "shortcuts=True cannot work" in run_without(SHORTCUTS, f"from refimpl.errors import ConfigError\n{caught}")
