"""Packages for the benchmarks alone: installed once, from pins with hashes, and none of them is a must."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.bench.install import REQUIREMENTS, install

ROOT = Path(__file__).parents[2]


def python_that(status: int, folder: Path) -> Path:
    """A program in the place of Python that writes down what it is asked and ends with this status."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\necho "ERROR: no wheel" >&2\nexit {status}\n')
    program.chmod(0o755)
    return program


def test_a_list_is_installed_once_and_a_new_one_again(tmp_path: Path) -> None:
    requirements, stamp, python = tmp_path / "list.txt", tmp_path / "stamp", python_that(0, tmp_path)
    for content in ("a==1", "a==1", "a==2"):
        requirements.write_text(content)
        assert install(requirements, python, stamp)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert all("--require-hashes --only-binary :all:" in line for line in asked)


def test_what_cannot_be_installed_is_said_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requirements, stamp, python = tmp_path / "list.txt", tmp_path / "stamp", python_that(1, tmp_path)
    requirements.write_text("a==1")
    for _ in range(2):
        assert not install(requirements, python, stamp)
    assert "will not be measured: ERROR: no wheel" in capsys.readouterr().err
    assert not stamp.exists()


def test_the_pins_have_what_the_project_names_and_do_not_move_what_it_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {re.split(r"[<>=]", each)[0] for each in project["optional-dependencies"]["bench"]}
    assert named <= set(pins)
    ours = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE))
    assert {name: version for name, version in pins.items() if ours.get(name, version) != version} == {}
    assert REQUIREMENTS.read_text().count("--hash=sha256:") >= len(pins)
