"""What checks share: how a case that did not come to its end is told; cases recorded from a real Flink."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from course.curriculum.messages import phrase
from course.curriculum.seams import seam
from course.curriculum.stubs import stub
from course.grading.rules import Case, Finding, Row, Seen, Status
from course.grading.runner import GraderError

__all__ = ["by_rule", "ending_finding", "letters", "recorded", "scripts", "without_error"]


def letters(length: int, start: int = 0x61) -> bytes:
    """Bytes that differ from their neighbours: from `start` on, each seven more than the one before."""
    return bytes((start + 7 * i) & 255 for i in range(length))


def ending_finding(exercise: str, rule: str, case: Case, seen: Seen, rows: Sequence[Row], where: str) -> Finding:
    """The finding for a case that did not come to its end; `where` is the call it was in."""
    ending = seen.ending or {}
    problem = ending.get("problem", "vanished")
    error = ending.get("error")
    error = error if isinstance(error, dict) else {}
    kind, text = str(error.get("type", "")), str(error.get("text", ""))
    line = error.get("line") if isinstance(error.get("line"), int) else None
    values = {"error": kind, "text": text or phrase("no_text"), "where": where, "step": case.ran,
              "name": str(error.get("name", "?"))}  # fmt: skip
    if problem == "timeout":
        return Finding(
            rule, "grows" if error.get("grows") is True else "endless", case.ran, rows, values, Status.TIMEOUT, line
        )
    if problem == "raised" and kind == "NotImplementedError" and text == exercise:
        return Finding(rule, "not_yet", case.ran, rows, values, Status.FAILED, line)
    code = {
        "SystemExit": "left",
        "KeyboardInterrupt": "left",
        "NameError": "unknown_name",
        "MemoryError": "memory",
        "RecursionError": "recursion",
        "AttributeError": "attribute",
    }.get(kind, "raised")
    if code == "raised":
        code = _code_of(exercise, kind, text, line)
        values["call"] = _call(exercise, text)
    if problem == "reference_part" and seam(exercise).kind == "function" and seam(exercise).part in text:
        problem = "reference_function"
    code = {
        "reference_function": "reference_function",
        "fenced": "fenced",
        "reference_part": "reference_part",
        "not_plain": "not_plain",
        "prints": "prints",
        "vanished": "vanished",
    }.get(str(problem), code)
    return Finding(rule, code, case.ran, rows, values, Status.ERROR, line)


def by_rule(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Cases by the rule they belong to, in their order."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.rule, []).append(case)
    return found


def scripts(first: str, rules: Mapping[str, Sequence[str]]) -> dict[str, list[list[Any]]]:
    """The cases of each rule, written in short, `10 20 / hand 7 / written 3`; all begin with the operation `first`."""
    return {rule: [_script(f"{first} {words}") for words in every] for rule, every in rules.items()}


def _script(words: str) -> list[Any]:
    ops = [each.split() for each in words.split("/")]
    return [[name, *map(int, rest)] for name, *rest in ops]


def without_error(found: Finding, code: str) -> Finding:
    """The finding for a call that raised, where a belief explains it and its exception does not."""
    return Finding(found.rule, code, found.ran, values={"where": found.values["where"]})


_HOW_IT_IS_CALLED = re.compile(
    r"takes .*positional argument|missing \d+ required|takes no arguments|unexpected keyword argument"
)
_TEXT_FOR_BYTES = re.compile(
    r"can't concat str to bytes|can only concatenate str \(not \"bytes\"\)|bytes-like object.*str"
    r"|string argument without an encoding"
)


def _code_of(exercise: str, kind: str, text: str, line: int | None) -> str:
    """The code of the message for an exception that has no code by its type alone; `line` is one of the learner's."""
    if kind == "TypeError" and line is None:  # it is the call from outside that does not fit
        if text.endswith("takes no arguments") and seam(exercise).kind == "function":
            return "class_for_function"
        if _HOW_IT_IS_CALLED.search(text):
            return "called_otherwise"
        if text.startswith("unhashable type"):
            return "not_hashable"
    if kind == "TypeError" and _TEXT_FOR_BYTES.search(text):
        return "text_for_bytes"
    return "own_assert" if kind == "AssertionError" and line is not None else "raised"


def _call(exercise: str, text: str) -> str:
    """How the part that a TypeError is about is written: with its arguments, as in the stub."""
    named = re.search(r"(\w+)\(\)", text)
    defined = [node for node in ast.walk(ast.parse(stub(exercise))) if isinstance(node, ast.FunctionDef)]
    chosen = [node for node in defined if named is not None and node.name == named[1]] or defined
    return ", ".join(f"{node.name}({', '.join(each.arg for each in node.args.args)})" for node in chosen)


def recorded(read: Callable[[], Iterable[Case]]) -> tuple[Case, ...]:
    """The cases that `read` finds in a recording of a real Flink.

    Raises:
        GraderError: the file they stand in is missing or damaged.
    """
    try:
        return tuple(read())
    except (OSError, ValueError, KeyError) as error:
        raise GraderError(f"the recorded Flink cannot be read ({error!r}); restore course/vectors") from error
