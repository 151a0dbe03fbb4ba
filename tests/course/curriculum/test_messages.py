"""Every code a diagnosis can come to has a text, and every text is complete."""

from __future__ import annotations

import ast
import inspect
import re
import string

import pytest

from course.checks import common, drive_before_credit, drive_credit
from course.curriculum.folders import folder, table
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import common as common_texts
from course.curriculum.messages import text, word
from course.grading import judge as judge_module
from tests.support.exercise_modules import exercise_module

DIAGNOSIS = exercise_module("3.1", "diagnosis")
CHAINABLE, CHAINS, COPYING, QUEUE = map(exercise_module, ("6.1", "6.2", "6.3", "7.1"))
FROM_DICTS = ("_ANSWERS", "_LOAD_CODES")


def strings_returned(module) -> set[str]:
    """All plain words in the return statements and code tables of a module's diagnosing functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Return) and node.value is not None:
            found |= {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {word for word in found if word.replace("_", "").isalpha() and word.islower()}


NOT_CODES = {
    "big", "little", "str", "dict", "tuple", "list", "set", "generator", "int", "float", "bool", "call",
    "yours", "right", "answer", "stopped", "a", "vanished", "the", "copy", "delay", "dep_delay_minutes",
    "to_departure", "origin", "dest", "got", "want", "sent", "size", "left", "room", "uncommitted", "tail",
    "result", "bytes", "an_exception", "other_order", "no_return", "flight_now", "several", "flight", "the_end",
}  # fmt: skip


@pytest.mark.parametrize(("exercise", "module"), [("3.1", DIAGNOSIS), ("0.1", exercise_module("0.1"))])
def test_every_code_has_a_message(exercise, module):
    codes = strings_returned(module) - NOT_CODES
    assert len(codes) > 15
    for code in sorted(codes):
        assert text(exercise, "A", code)["says"].strip(), code


def codes_of(function) -> set[str]:
    """What a function that names beliefs may return, but for names it puts together."""
    found, inside = set(), ast.Compare | ast.Call | ast.Subscript | ast.JoinedStr
    for node in ast.walk(ast.parse(inspect.getsource(function))):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = [part for each in ast.walk(node.value) if isinstance(each, inside) for part in ast.walk(each)]
            found |= {
                n.value
                for n in ast.walk(node.value)
                if isinstance(n, ast.Constant) and isinstance(n.value, str) and n not in parts
            }
    return {word for word in found if word.replace("_", "").isalpha()}


BELIEFS = [
    ("7.1", [each for name, each in vars(QUEUE).items() if name.startswith(("_about_", "_belief", "_ending"))]),
    ("6.1", [CHAINABLE._about_asked]), ("6.2", [CHAINS._about_built, CHAINS._ending_built]),
    ("6.3", [COPYING._about_sent, COPYING._about_given, COPYING._about_kept, COPYING._ending_sent]),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "functions"), BELIEFS)
def test_every_belief_has_a_message(exercise, functions):
    codes = set().union(*map(codes_of, functions))
    assert len(codes) >= 9
    for code in sorted(codes):
        assert text(exercise, "A", code)["says"].strip(), code


def test_beliefs_whose_names_are_put_together_have_messages():
    for name in set(CHAINABLE._BROKEN) - {"downstream"}:
        assert text("6.1", "A", f"ignores_{name}")["says"]
    for code in ("side_value_shared", "side_copy_too_shallow"):
        assert text("6.3", "A", code)["says"]


def test_the_tables_of_codes_have_messages():
    for code in DIAGNOSIS._ANSWERS.values():
        assert text("3.1", "A", code)["says"]
    for code in judge_module._LOAD_CODES.values():
        assert text("3.1", "S", code)["says"]
    for code in (
        "endless",
        "not_yet",
        "left",
        "unknown_name",
        "memory",
        "recursion",
        "attribute",
        "raised",
        "fenced",
        "reference_part",
        "not_plain",
        "vanished",
        "tampered",
        "load_timeout",
        "vanished_loading",
        "ambiguous_class",
        "ambiguous_function",
        "absent_class",
        "absent_function",
        "wrong_exercise",
        "not_a_class",
        "missing_method",
        "name_elsewhere",
        "name_unknown",
        "syntax",
        "no_module",
        "load_raised",
        "finished",
        "overwrote",
    ):
        assert text("3.1", "S", code)["says"]
    assert inspect.getsource(common)


def messages(table, path=()):
    for key, value in table.items():
        if isinstance(value, dict) and "says" in value:
            yield (*path, key), value
        elif isinstance(value, dict):
            yield from messages(value, (*path, key))


def test_texts_are_short_and_their_blanks_are_known():
    known = {
        "error", "where", "text", "step", "names", "name", "member", "exercise", "others", "missing",
        "place", "got", "want", "delay", "room", "left", "uncommitted", "sent", "size",
        "backlog", "own", "begun", "kind", "little", "killed", "of", "least", "key", "call", "bound", "last",
        "id", "field", "wait", "right", "channel", "number", "latest", "result", "stream", "start",
        "high", "low", "holds", "what", "now", "timeout", "waiting",
    }  # fmt: skip
    tables = [common_texts(), *(table(exercise, "messages.toml") for exercise in EXERCISES)]
    found = [each for every in tables for each in messages(every)]
    assert len(found) > 100
    for path, message in found:
        assert set(message) <= {"says", "job", "ask"}, path
        assert len(message["says"].splitlines()) <= 3, path
        for part in message.values():
            blanks = {name for _, name, _, _ in string.Formatter().parse(part) if name is not None}
            assert blanks <= known, (path, blanks)


@pytest.mark.parametrize(
    ("exercise", "seen", "told"),
    [
        ("10.2", "an old buffer", "<old>"), ("11.2", "data 3", "<data> 3"), ("11.2", "? a tuple of 3", "? <tuple> 3"),
        ("11.2", "? what the view gave, alone", "? <alone>"), ("9.2", "11: 0000000b badc0ffe", "11: 0000000b badc0ffe"),
        ("9.2", "? memoryview", "? memoryview"), ("10.1", "True", "True"), ("11.2", "-2", "-2"),
    ],
)  # fmt: skip
def test_words_of_a_driver_are_said_in_the_language_and_the_rest_stays(exercise, seen, told, tmp_path, monkeypatch):
    phrases = {
        "10.2": '[phrases]\nvalue_an_old_buffer = "<old>"\n',
        "11.2": '[phrases]\nvalue_data = "<data>"\nvalue_a_tuple_of = "<tuple>"\n'
                'value_what_the_view_gave_alone = "<alone>"\n',
    }  # fmt: skip
    for of, text_of_file in phrases.items():
        file = tmp_path / "xx" / "exercises" / folder(of).name / "messages.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of_file, encoding="utf-8")
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    monkeypatch.setenv("SLUICE_LANGUAGE", "xx")
    assert word(seen, exercise) == told


@pytest.mark.parametrize(
    ("exercise", "driver"),
    [
        ("9.2", exercise_module("9.2", "driver")),
        ("10.2", drive_before_credit),
        ("11.2", drive_credit),
    ],
)
def test_a_catalogue_names_no_word_that_its_driver_does_not_write(exercise, driver):
    phrases = table(exercise, "messages.toml")["phrases"]
    words = {name for name in phrases if name.startswith("value_")}
    nodes = ast.walk(ast.parse(inspect.getsource(driver)))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    written = {"value_" + re.sub(r"\W+", "_", each.strip("? ")) for each in constants}
    assert words
    assert words <= written, words - written
