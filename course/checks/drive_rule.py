"""Runs a rule that a learner wrote against parts, and writes down what it says of each.

The driver of every exercise that ends a lesson with "write the rule". A case is

    ["harness", source]       defines `under_test(part)`: what the rule is given of a part; and `tried(given)`: what
                              the rule has tried with it, as a list of words; a `MisuseError` is the rule's own fault
    ["part", source, member]  a class with that attribute, or a function of that name; right or wrong, nobody says
    ["forget"]                what the rule's names stood for before it was asked anything, they stand for again

An event is ["rule"] before the call and ["rule", verdict, words, line] after it: "keeps" for True, "breaks" for False,
for a failed assertion and where the part itself raised; "nothing" for None, and "?" with the type for anything else.
The line is that of the assertion which failed, else None. What the rule's own code raises ends the case.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from types import TracebackType
from typing import Any

from course.grading.kinds import own

__all__ = ["run_case"]

_RULE_FILE = "<your code>"


def run_case(rule: Callable[[Any], Any], case: list[list[str]], events: list[Any]) -> None:
    """Ask the rule about each part, appending what it says to `events`."""
    harness: dict[str, Any] = {}
    names = vars(sys.modules["answer"])
    before = dict(names)
    for kind, *rest in case:
        if kind == "harness":
            harness = _loaded(rest[0], "harness")
            continue
        if kind == "forget":
            names.update(before)
            continue
        part = _part(_loaded(rest[0], "part"), rest[1])
        event: list[Any] = ["rule"]
        events.append(event)
        given = harness["under_test"](part)
        verdict, line = _verdict(rule, given)
        event += [verdict, sorted(map(str, harness["tried"](given))), line]


def _loaded(source: str, name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look there
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102 - specimens are ours
    return module.__dict__


def _part(names: dict[str, Any], member: str) -> Any:
    """The function of this name, or the class with this attribute that no other derives from."""
    if callable(named := names.get(member)):
        return named
    own = [each for each in names.values() if isinstance(each, type) and each.__module__ == names["__name__"]]
    found = [each for each in own if hasattr(each, member)]
    return next(each for each in found if not any(other is not each and issubclass(other, each) for other in found))


def _verdict(rule: Callable[[Any], Any], subject: Any) -> tuple[str, int | None]:
    """What the rule says, and the line of its assertion that failed."""
    try:
        said = rule(subject)
    except AssertionError as error:
        file, line = _innermost(error.__traceback__)
        return "breaks", line if file == _RULE_FILE else None
    except Exception as error:
        if _innermost(error.__traceback__)[0] in ("", _RULE_FILE) or type(error).__name__ == "MisuseError":
            raise
        return "breaks", None  # a part that raises where a right one would not
    if said is None:
        return "nothing", None
    if isinstance(own(said), bool):
        return "keeps" if said else "breaks", None
    return f"?{type(said).__name__}"[:40], None


def _innermost(trace: TracebackType | None) -> tuple[str, int]:
    """File and line of the innermost code that is not Python's own; "" if the rule could not even be called."""
    last = ("", 0)
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        last = (name, trace.tb_lineno) if name == _RULE_FILE or name.startswith(("<part", "<harness")) else last
        trace = trace.tb_next
    return last
