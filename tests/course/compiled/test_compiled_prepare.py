"""The copy that is compiled: what is added stands where no line gets another number."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from course.compiled.build import build
from course.compiled.compilers import CompileError, find_c_compiler
from course.compiled.prepare import TWIN, prepared
from course.compiled.recipe import INTERPRETED, PACKAGES, modules
from course.compiled.standing import engine_source

ENGINE = engine_source()
TEXTS = {path: (ENGINE / path).read_text(encoding="utf-8") for path in modules(ENGINE)}


@pytest.fixture(scope="module")
def made_ready() -> dict[Path, str]:
    """The whole engine as it is compiled."""
    return prepared(TEXTS)


BASE = """\
\"\"\"A module.\"\"\"

from __future__ import annotations

from dataclasses import dataclass


# A comment of the class.
@dataclass(frozen=True)
class Point:
    x: int


class Base:
    kind: type = int
    part: object

    def __init__(self) -> None:
        self.part = None


class Other(Base):
    part: int
    kind = str


class Mixed(Other, Point):
    pass
"""


def test_modules_that_stay_interpreted_are_there_and_say_why() -> None:
    assert all((ENGINE / path).is_file() and reason for path, reason in INTERPRETED.items())
    assert {path.split("/")[0] for path in INTERPRETED} <= set(PACKAGES)


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_each_function_of_the_engine_keeps_its_line(path: Path, made_ready: dict[Path, str]) -> None:
    def functions(text: str) -> set[tuple[str, int]]:
        return {(each.name, each.lineno) for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)}

    lost = {name for name, _line in functions(TEXTS[path]) - functions(made_ready[path])}
    twin = path.with_stem(path.stem + TWIN)
    assert not lost or made_ready[twin] == TEXTS[path]
    added = functions(made_ready[path]) - functions(TEXTS[path])
    assert {name for name, _line in added} <= {"_from_fields", "_caused"}


def test_a_class_is_prepared_in_its_own_lines() -> None:
    made = prepared({Path("memory/a.py"): BASE})
    text = made[Path("memory/a.py")]
    lines, before = text.splitlines(), BASE.splitlines()
    assert lines[5] == lines[11] == "@mypyc_attr(allow_interpreted_subclasses=True)" or "mypyc_attr" in lines[6]
    assert text.count("@mypyc_attr") == 3
    assert "    kind: ClassVar[type] = int" in lines
    assert "    kind: ClassVar = str" in lines
    assert "    part: int" not in lines
    assert lines[before.index("class Mixed(Other, Point):")] == f"from refimpl.memory.a{TWIN} import Mixed as Mixed"
    assert "copyreg.pickle(Point, _from_fields)" in lines
    assert made[Path(f"memory/a{TWIN}.py")] == BASE
    for word in ("class Base:", "class Other(Base):", "class Point:"):
        assert lines.index(word) == before.index(word)


def test_a_prepared_frozen_dataclass_is_pickled_by_its_fields(tmp_path: Path) -> None:
    (tmp_path / "prepared_one.py").write_text(prepared({Path("a.py"): BASE.split("class Base")[0]})[Path("a.py")])
    code = "import pickle, prepared_one as m; print(pickle.loads(pickle.dumps(m.Point(3))))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=environment).strip() == "Point(x=3)"
    assert b"_from_fields" not in pickle.dumps(3)


def test_bounds_of_a_slice_that_do_something_are_worked_out_once() -> None:
    """mypyc would do it twice where what is cut is no list: see `prepare`."""
    source = "é = rest[take(rest) :]\nb = x[len(x) : y(z[q(1) :])], x[1:2], n[: g(2)]  # é\nc = x[len(x) : 2]\n"
    made = prepared({Path("a.py"): source})[Path("a.py")].splitlines()
    assert made[0] == "é = rest[slice(take(rest), None)]"
    assert made[1] == "b = x[slice(len(x), y(z[slice(q(1), None)]))], x[1:2], n[slice(None, g(2))]  # é"
    assert made[2] == "c = x[len(x) : 2]"
    with pytest.raises(ValueError, match="line 2: a slice that calls something"):
        prepared({Path("a.py"): "a = 1\nb = a[f(\n  2) :]\n"})


@pytest.mark.parametrize(
    ("module", "name"),
    [("records/elements", "StreamRecord"), ("memory/builder", "_PublishedPosition"), ("shortcuts/lanes", "Lanes")],
)
def test_what_a_lane_reads_is_not_compiled(module: str, name: str, made_ready: dict[Path, str]) -> None:
    """A lane is made when the engine runs: for it an attribute of a compiled class is the slower one."""
    path = Path(f"{module}.py")
    assert f"from refimpl.{module.replace('/', '.')}{TWIN} import {name} as {name}" in made_ready[path]
    assert f"class {name}:" not in made_ready[path]
    assert made_ready[path.with_stem(path.stem + TWIN)] == TEXTS[path]


def test_no_class_is_an_abc() -> None:
    source = "from __future__ import annotations\n\nfrom abc import ABC\n\n\nclass A(ABC):\n    x = 1\n\n\n"
    source += "class B(ABC, A):\n    x = 2\n"
    made = prepared({Path("a.py"): source})[Path("a.py")].splitlines()
    assert (made[5], made[9]) == ("class A:", "class B(A):")
    with pytest.raises(ValueError, match="class A does not name its bases"):
        prepared({Path("a.py"): source.replace("A(ABC):", "A(ABC,):")})


def test_what_an_error_is_raised_from_is_kept(tmp_path: Path) -> None:
    """mypyc would leave it out: see `prepare`."""
    source = """try:
    1 / 0
except ZeroDivisionError as é:
    try:
        raise ValueError(
            "two lines"
        ) from é
    except ValueError as second:
        try:
            raise KeyError from None
        except KeyError as third:
            found = second, third
"""
    made = prepared({Path("a.py"): source})[Path("a.py")]
    assert made.splitlines()[4:7] == ["        raise _caused(ValueError(", '            "two lines"', "        ), é)"]
    start = made.index("\n\ndef _caused")
    said: dict[str, tuple[BaseException, BaseException]] = {}
    exec(made[start:] + made[:start], said)
    second, third = said["found"]
    assert isinstance(second.__cause__, ZeroDivisionError)
    assert (type(third), third.__cause__, third.__suppress_context__) == (KeyError, None, True)
    with pytest.raises(ValueError, match="line 1: the cause does not stand"):
        prepared({Path("a.py"): "raise ValueError(1) \\\n    from None\n"})


def test_a_class_without_room_before_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no blank line before"):
        prepared({Path("a.py"): "from __future__ import annotations\nclass A:\n    x = 1\n"})


def test_without_a_compiler_one_sentence_says_what_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: None)
    with pytest.raises(CompileError, match=r"no C compiler.*ziglang") as refused:
        find_c_compiler("cc")
    assert refused.value.is_missing
    assert "\n" not in str(refused.value)


def test_a_compiler_that_cc_names_and_that_is_not_there_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    with pytest.raises(CompileError, match=r"^CC is 'no-such-compiler -O1', and there is no such compiler$") as refused:
        find_c_compiler()
    assert refused.value.is_missing


def test_without_pythons_headers_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(CompileError, match="headers are missing") as refused:
        build(None, lambda text: None)
    assert refused.value.is_missing


def test_a_compiler_that_fails_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "false")
    monkeypatch.setattr("course.compiled.standing.build_folder", lambda: tmp_path / "build")
    monkeypatch.setattr("course.compiled.build.modules", lambda engine: [Path("memory/channel_quota.py")])
    old = tmp_path / "build" / "compiled" / "old.txt"
    old.parent.mkdir(parents=True)
    old.write_text("as it was", encoding="utf-8")
    said: list[str] = []
    with pytest.raises(CompileError, match="compiling the engine failed"):
        build("cc", said.append, again=True)
    assert old.read_text(encoding="utf-8") == "as it was"
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["compiled"]
    assert any("mypyc" in text for text in said)
