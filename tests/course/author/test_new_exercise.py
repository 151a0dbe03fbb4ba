"""course/README.md says how an exercise is added; here one is, in a copy of the course, with exactly those files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import course

ROOT = Path(course.__file__).parent.parent
PAGE = (ROOT / "course" / "README.md").read_text(encoding="utf-8")
ROUNDS_DOWN = "def buffers_for(size, room):\n    return size // room\n"


def files_of_the_page() -> dict[str, str]:
    """The files that the page shows: a line with the name, then a block."""
    found = re.findall(r"^`([\w/.]+)`[^\n]*\n\n```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 6
    return dict(found)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A checkout with the exercise of the page."""
    root = tmp_path_factory.mktemp("checkout")
    leave = shutil.ignore_patterns("__pycache__", "flights.parquet", "*.ipynb")
    for name in ("course", "refimpl", "widgets"):
        shutil.copytree(ROOT / name, root / name, ignore=leave)
    for name, text in files_of_the_page().items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name in ("course/curriculum/manifest.py", "course/curriculum/parts.py"):
            before = file.read_text(encoding="utf-8")
            if name == "course/curriculum/manifest.py":
                text = before.replace("_ALL = (\n", "_ALL = (\n" + text)
            else:
                text = before + "\n\n" + text
        file.write_text(text, encoding="utf-8")
    return root


def sluice(copy: Path, *words: str, source: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(copy), "SLUICE_WORK": str(copy / "work")}
    return subprocess.run(
        [sys.executable, "-m", "course.cli", *words],
        input=source,
        env=env,
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_it_has_a_stub_a_check_hints_and_a_place_in_the_list(copy):
    stub = sluice(copy, "reset", "19.1")
    assert 'raise NotImplementedError("19.1")' in stub.stdout, stub.stderr
    said = sluice(copy, "check", "19.1", "--file", "-", source=stub.stdout)
    assert (said.returncode, said.stdout[:20]) == (1, "○ 19.1 not started: ")
    right = "def buffers_for(size, room):\n    return -(-size // room)\n"
    said = sluice(copy, "check", "19.1", "--file", "-", "--json", source=right)
    assert said.returncode == 0, said.stdout + said.stderr
    assert [rule["id"] for rule in json.loads(said.stdout)["rules"]] == ["S", "A", "B", "C"]
    assert "L19" in sluice(copy, "progress").stdout


@pytest.mark.slow
def test_a_wrong_answer_gets_the_message_of_its_belief(copy):
    said = sluice(copy, "check", "19.1", "--file", "-", source=ROUNDS_DOWN)
    assert said.returncode == 1
    assert "rule B failed · S A hold" in said.stdout
    assert "You rounded down" in said.stdout
    assert re.search(r"your function *yours *2\n +Flink *3\n +\^\^ the first difference", said.stdout), said.stdout
    assert "Hint 1 of 5 for 19.1, rule B" in sluice(copy, "hint", "19.1").stdout


@pytest.mark.slow
def test_its_grader_is_measured_like_the_others(copy):
    said = sluice(copy, "graders", "19.1")
    assert "| 6 of 6 (100 %) | 3 of 3 (100 %) | 3 of 3 (100 %) | 3 of 3 (100 %) |" in said.stdout, (
        said.stdout + said.stderr
    )
    assert "**Wrong here:**" not in said.stdout
