"""Where tests stand: the engine's mirror its packages, helpers are in `support`, and the map names everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.heaviest import HEAVIEST, place
from tests.support.sampling import places

TESTS = Path(__file__).parent
REFIMPL = TESTS.parent / "refimpl"
FILES = sorted(TESTS.rglob("*.py"))


def names_in(folder: Path) -> set[str]:
    """Folders and files of a folder, a folder with a slash behind its name."""
    found = (path for path in folder.iterdir() if not path.name.startswith((".", "__")))
    return {f"{path.name}/" if path.is_dir() else path.name for path in found}


@pytest.mark.parametrize(("folder", "package"), [("refimpl", "."), ("drivers/cluster", "drivers/cluster")])
def test_tests_of_the_engine_stand_in_folders_of_its_packages(folder: str, package: str) -> None:
    folders = {name for name in names_in(TESTS / folder) if name.endswith("/")}
    assert folders <= names_in(REFIMPL / package)


def test_helpers_of_several_folders_stand_in_support() -> None:
    modules = {name for name in names_in(TESTS) if name.endswith(".py")}
    assert {name for name in modules if not name.startswith("test_")} == {"conftest.py"}
    assert not [name for name in names_in(TESTS / "support") if name.startswith("test_")]


def test_the_map_names_everything_once() -> None:
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    rows = text.partition("## The map")[2].partition("\n## ")[0]
    named = [name for row in re.findall(r"^\| (`.*?) \|", rows, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) == len(set(named))
    assert [name for name in named if not (TESTS / name).exists()] == []
    top = {name for name in named if name.count("/") <= name.endswith("/")}
    assert top == names_in(TESTS) - {"conftest.py", "README.md"}


def test_the_heaviest_files_are_there() -> None:
    assert [name for name in HEAVIEST if not (TESTS.parent / name).is_file()] == []
    assert len(set(HEAVIEST)) == len(HEAVIEST)


def test_the_heaviest_files_come_first_and_each_keeps_the_order_of_its_tests() -> None:
    given = [f"{name}::{test}" for name in ("tests/a.py", *reversed(HEAVIEST), "tests/b.py") for test in "ba"]
    wanted = [f"{name}::{test}" for name in (*HEAVIEST, "tests/a.py", "tests/b.py") for test in "ba"]
    assert sorted(given, key=place) == wanted


def test_a_sample_has_its_share_is_never_empty_and_begins_somewhere_else_for_each_name() -> None:
    names = [f"tests/test_a.py::test_{number}" for number in range(60)]
    for one_in in (1, 2, 3, 4):
        for num_tests in (1, 2, 3, 20, 300):
            samples = [list(places(name, num_tests, one_in)) for name in names]
            assert all(1 <= len(each) <= -(-num_tests // one_in) for each in samples)
            assert all(num_tests // one_in <= len(each) for each in samples)
            assert {place for each in samples for place in each} == set(range(num_tests))
            assert samples == [list(places(name, num_tests, one_in)) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "num_kept"), [([], 2), (["--whole"], 6), (["-k", "odd"], 6), (["-m", "sampled"], 2)]
)
def test_an_ordinary_run_has_the_sample_and_a_whole_one_everything(
    tmp_path: Path, options: list[str], num_kept: int
) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = sampled")
    lines = ["import pytest", "@pytest.mark.sampled(one_in=3)", "@pytest.mark.parametrize('number', range(6))"]
    (tmp_path / "test_it.py").write_text("\n".join([*lines, "def test_odd(number): pass"]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:nbval", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"{num_kept} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_refers_to_a_numbered_list_that_is_not_here(path: Path) -> None:
    """What a test repeats of Flink's it names, and behind it the row of the table in `peer/README.md`, in brackets."""
    numbered = re.search(r"\b(?:[Bb]ehaviou?rs?|[Tt]raps?) \d+|\bP\d+[.,:;]", path.read_text(encoding="utf-8"))
    assert numbered is None, numbered
