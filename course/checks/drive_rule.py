"""Runs a rule that a learner wrote against parts, and writes down what it says of each.

The driver of every exercise that ends a lesson with "write the rule". A case is

    ["harness", source]       defines `under_test(part)`: what the rule is given of a part; and `tried(given)`: what
                              the rule has tried with it, as a list of words; a `MisuseError` is the rule's own fault
    ["part", source, member]  a class with that attribute, or a function of that name; right or wrong, nobody says

An event is ["rule"] before the call and ["rule", verdict, words] after it: "keeps" for True, "breaks" for False, for a
failed assertion and where the part itself raised; "nothing" for None, and "?" with the type for anything else.
What the rule's own code raises ends the case.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["run_case"]

_RULE_FILE = "<your code>"


def run_case(rule: Callable[[Any], Any], case: list[list[str]], events: list[Any]) -> None:
    """Ask the rule about each part, appending what it says to `events`."""
    harness: dict[str, Any] = {}
    for kind, source, *rest in case:
        if kind == "harness":
            harness = _loaded(source, "harness")
            continue
        part = _part(_loaded(source, "part"), rest[0])
        event: list[Any] = ["rule"]
        events.append(event)
        given = harness["under_test"](part)
        event.append(_verdict(rule, given))
        event.append(sorted(map(str, harness["tried"](given))))


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


def _verdict(rule: Callable[[Any], Any], subject: Any) -> str:
    try:
        said = rule(subject)
    except AssertionError:
        return "breaks"
    except Exception as error:
        if _is_of_the_rule(error.__traceback__) or type(error).__name__ == "MisuseError":
            raise
        return "breaks"  # a part that raises where a right one would not
    if said is None:
        return "nothing"
    if type(said).__name__ in ("bool", "bool_"):  # numpy has a truth of its own
        return "keeps" if said else "breaks"
    return f"?{type(said).__name__}"[:40]


def _is_of_the_rule(trace: TracebackType | None) -> bool:
    """Whether the innermost code that is not Python's own is the rule's, or the rule could not even be called."""
    last = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        last = name if name == _RULE_FILE or name.startswith(("<part", "<harness")) else last
        trace = trace.tb_next
    return last in ("", _RULE_FILE)
