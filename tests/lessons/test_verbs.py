"""Every verb that a message of a check names works in the cells below the setup cell, in every lesson."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import course
from course.curriculum.manifest import START
from course.learner.notebook import LessonHandle

ROOT = Path(__file__).resolve().parent.parent.parent
CATALOGUES = [ROOT / "course/curriculum/messages.toml", *sorted((ROOT / "course/exercises").glob("*/*.toml"))]
SOURCES = [path for path in sorted((ROOT / "lessons/src").glob("*.py")) if path.stem != START]


def texts(table):
    """All texts of a catalogue but those of a terminal, whose commands are other ones."""
    for key, value in table.items():
        if isinstance(value, dict) and key != "terminal":
            yield from texts(value)
        elif isinstance(value, str):
            yield value


def named():
    """The verbs of the course that are named as a call or between backquotes, such as `show`."""
    words = "\n".join(
        text
        for path in CATALOGUES
        if path.name == "messages.toml"
        for text in texts(tomllib.loads(path.read_text(encoding="utf-8")))
    )
    plain = re.findall(r'(?<![\w.])([a-z]+)\("\{exercise\}"|`([a-z]+)`', words)
    verbs = {called or quoted for called, quoted in plain} & set(course._VERBS)
    verbs.discard("reset")  # a serializer has a method of that name
    return verbs, set(re.findall(r'\bL\.([a-z]+)\("', words))


def test_messages_name_verbs():
    verbs, of_the_lesson = named()
    assert {"check", "hint", "show"} <= verbs
    assert "swap" in of_the_lesson


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_verb_that_a_message_names_works_in_the_cell_below(path):
    _, _, setup = path.read_text(encoding="utf-8").partition("# %% setup name=setup\n")
    tree = ast.parse(setup.partition("\n# %%")[0])
    imported = {
        each.asname or each.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "course"
        for each in node.names
    }
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    verbs, of_the_lesson = named()
    assert verbs <= imported
    assert "L" in assigned
    assert all(hasattr(LessonHandle, each) for each in of_the_lesson)
