"""The rooms of `course`: each imports only those above it, no module imports itself in a circle, none is long.

What counts is every import, those within functions too, and every text that is the name of a module. A module that
is only named, so that it is loaded when somebody asks for it or started as a process, is listed with the reason.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "course"
TOP = {"exit_status", "files", "output", "places", "version", "waiting"}
DOOR = "__init__"
BY_THEMSELVES = {
    "example_job": "`sluice run course/example_job.py`: an example of a learner's own file",
    "install": "`make` runs it on a bare Python, before anything is installed",
}

ROOMS = [
    "compiled", "curriculum", "grading", "spark", "flink", "peer", "data", "checks", "exercises", "figures", "swap",
    "jobs", "engine", "learner", "classroom", "cli", "author", "site",
]  # fmt: skip
"""From the ground up. A room imports what stands at the top of `course`, and rooms before it."""

ONLY_NAMED = {
    ("cli", "author"): "a subcommand is loaded when it is asked for: the list names its module",
    ("classroom", "cli"): "a hub starts the command `sluice class serve`",
    ("engine", "cli"): "a cluster in the background is `sluice engine start`, in a process of its own",
    ("peer", "cli"): "our end as a process is the command `sluice peer`",
    ("grading", "exercises"): "the check of an exercise is loaded by the exercise's id",
}
"""Rooms that name a module of a room behind them, and do not import it."""

MAX_LINES = 400


def room_of(module: str) -> str:
    """The room of `course.data.flights` is "data", that of a module at the top "", and `course` itself is the door."""
    parts = module.split(".")
    if len(parts) == 1:
        return DOOR
    return parts[1] if (COURSE / parts[1]).is_dir() else ""


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of `course` by its name; a package is the module of its `__init__.py`."""
    found = {}
    for path in sorted(COURSE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == DOOR else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported_by(tree: ast.Module) -> Iterator[str]:
    """The modules of `course` that a module imports anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from [each for each in (name, node.module) if each in modules()][:1]


def named_by(tree: ast.Module) -> Iterator[str]:
    """The texts that are the name of a module of `course`, or begin one that is put together."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"course(\.\w+)+\.?", node.value)
        ):
            yield node.value.removesuffix(".")


@functools.cache
def arrows() -> frozenset[tuple[str, str]]:
    """Who imports whom, room by room."""
    pairs = ((room_of(module), room_of(other)) for module, tree in modules().items() for other in imported_by(tree))
    return frozenset((one, other) for one, other in pairs if one != other)


def test_all_that_stands_in_the_course_has_its_place():
    rooms = {path.parent.relative_to(COURSE).parts[0] for path in COURSE.glob("*/**/*.py")}
    assert rooms == set(ROOMS)
    assert {path.stem for path in COURSE.glob("*.py")} == TOP | {DOOR} | BY_THEMSELVES.keys()


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_a_room_imports_only_those_above_it(room):
    above = {"", *ROOMS[: ROOMS.index(room)]} if room else set[str]()
    assert {other for one, other in arrows() if one == room} - above == set()


def test_nobody_imports_the_door_or_what_runs_by_itself():
    for module, tree in modules().items():
        alone = {f"course.{name}" for name in BY_THEMSELVES} | {"course"}
        assert not alone & set(imported_by(tree)), module


def test_no_module_imports_itself_in_a_circle():
    """Not even within a function: a module that has to wait for another's end is half of one."""
    graph = {module: set(imported_by(tree)) - {module} for module, tree in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


def test_a_module_that_is_only_named_is_there_and_its_room_is_above_or_excused():
    found = set()
    for module, tree in modules().items():
        room = room_of(module)
        for name in named_by(tree):
            assert {name, name.rpartition(".")[0]} & modules().keys(), f"{module} names {name}, which is not there"
            other = room_of(name)
            if room in ROOMS and other in ROOMS and ROOMS.index(other) > ROOMS.index(room):
                found.add((room, other))
    assert found == ONLY_NAMED.keys()


def test_the_overview_names_the_rooms_in_their_order():
    overview = ast.get_docstring(modules()["course"]) or ""
    named = re.findall(r"^    ((?:\w+, )*\w+)(?:  |$)", overview, re.MULTILINE)
    assert [name for row in named for name in row.split(", ")] == ROOMS


def test_no_module_is_long():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in COURSE.rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_tests_stand_in_folders_of_the_rooms():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders <= set(ROOMS)
