"""Every code a diagnosis can come to has a text, and every text is complete."""

from __future__ import annotations

import ast
import inspect
import string

import pytest

from course.checks import c00, c03_diagnosis, common
from course.grading import judge as judge_module
from course.messages import catalogue, text

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
    "yours", "right", "answer", "stopped", "a", "vanished", "the", "copy", "dep_delay_minutes",
    "to_departure", "origin", "dest", "got", "want", "sent", "size", "left", "room", "uncommitted", "tail",
}  # fmt: skip


@pytest.mark.parametrize(("exercise", "module"), [("3.1", c03_diagnosis), ("0.1", c00)])
def test_every_code_has_a_message(exercise, module):
    codes = strings_returned(module) - NOT_CODES
    assert len(codes) > 15
    for code in sorted(codes):
        assert text(exercise, "A", code)["says"].strip(), code


def test_the_tables_of_codes_have_messages():
    for code in c03_diagnosis._ANSWERS.values():
        assert text("3.1", "A", code)["says"]
    for code in judge_module._LOAD_CODES.values():
        assert text("3.1", "S", code)["says"]
    for code in ("endless", "not_yet", "left", "unknown_name", "memory", "recursion", "attribute", "raised", "fenced",
                 "reference_part", "not_plain", "vanished", "tampered", "load_timeout", "vanished_loading",
                 "ambiguous_class", "ambiguous_function", "absent_class", "absent_function", "wrong_exercise",
                 "not_a_class", "missing_method", "name_elsewhere", "name_unknown", "syntax", "no_module",
                 "load_raised", "finished", "overwrote"):  # fmt: skip
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
    }  # fmt: skip
    found = list(messages(catalogue("en")))
    assert len(found) > 100
    for path, message in found:
        assert set(message) <= {"says", "job", "ask"}, path
        assert len(message["says"].splitlines()) <= 3, path
        for part in message.values():
            blanks = {name for _, name, _, _ in string.Formatter().parse(part) if name is not None}
            assert blanks <= known, (path, blanks)
