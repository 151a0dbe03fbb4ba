"""What a learner sees in a notebook, from a wrong answer to a receipt, run in a real kernel."""

from __future__ import annotations

import json

import pytest

from course.author.build import build
from course.curriculum.manifest import EXERCISES
from course.curriculum.stubs import solution

WRONG = """\
# %% setup
from course import check, hint, lesson, reset, reveal, show, zoo

L = lesson(0)
# %% text name=helper
def late(minutes):
    return abs(minutes)
# %% text name=elsewhere
@L.exercise("0.1")
def to_departure(flight):
    return flight["origin"], late(flight["dep_delay_minutes"])
# %% check name=first
check("0.1")
# %% text name=second-try
%%time
@L.exercise("0.1")
def to_departure(flight):
    return flight["origin"], abs(flight["dep_delay_minutes"])
# %% check name=second
check("0.1")
# %% hint name=hint-1
hint("0.1")
# %% hint name=hint-2
hint("0.1")
# %% show name=show
show("0.1")
# %% text name=too-early
reveal("0.1")
# %% zoo name=zoo
zoo("0.1")
# %% zoo name=zoo-one
zoo("0.1", show="w07")
# %% zoo name=zoo-none
zoo("0.1", show="w99")
# %% predict name=predict
L.predict("0.a", "a")
# %% quiz name=quiz-wrong
L.quiz("0.q1", "a")
# %% quiz name=quiz-right
L.quiz("0.q1", "b")
# %% text name=unreadable tags=raises-exception
@L.exercise("0.1")
def to_departure(flight)
    return flight["origin"], 0
# %% check name=check-unreadable
check("0.1")
# %% text name=raises tags=raises-exception
@L.exercise("0.1")
def to_departure(flight: Flight):
    return flight["origin"], 0
# %% check name=check-raises
check("0.1")
# %% text name=forgot-return
@L.exercise("0.1")
def to_departure(flight):
    print(flight["origin"])
    flight["origin"], max(0, flight["dep_delay_minutes"])
# %% check name=check-forgot-return
check("0.1")
# %% text name=reset
reset("0.1")
# %% check name=check-after-reset
check("0.1")
# %% text name=no-mark
def to_departure(flight):
    return flight["origin"], max(0, flight["dep_delay_minutes"])
# %% check name=check-no-mark
check("0.1")
# %% text name=last-try
{solution}
# %% check name=third
check("0.1", seed=7)
# %% text name=now
reveal("0.1")
# %% receipt name=receipt
L.receipt()
# %% text name=progress
L.progress()
# %% text name=wrong-lesson tags=raises-exception
L.exercise("3.1")
# %% text name=no-question tags=raises-exception
L.predict("0.zz")
"""


@pytest.fixture(scope="module")
def outputs() -> dict[str, str]:
    text = build(WRONG.replace("{solution}", solution("0.1")), "wrong.py")
    found = {}
    for cell in json.loads(text)["cells"]:
        parts = []
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                parts += output["traceback"]
            else:
                parts.append("".join(output.get("text") or output["data"]["text/plain"]))
        found[cell["id"]] = "\n".join(parts)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("setup-01", "minutes · □ 0 of 1 passed"),
        ("first", "`late` is defined in cell 2: move it here."),
        ("second", "An early flight is not late"),
        ("hint-1", "Hint 1 of 5 for 0.1, rule D"),
        ("hint-2", "Hint 2 of 5 for 0.1, rule D"),
        ("show", "^ the first step that differs"),
        ("too-early", "shown after passing, or after rung 5"),
        ("zoo", "caught  by rule A"),
        ("zoo-one", "yours  ('JFK', 4)"),
        ("zoo-none", "0.1 has no 'w99'; it has w01_returns_nothing"),
        ("predict", "▸ a) ten"),
        ("predict", "Right: a map gives exactly one value"),
        ("quiz-wrong", "✗ not that one"),
        ("quiz-right", "✓ right."),
        ("check-unreadable", "Python cannot read this code: expected ':'\n"),
        ("check-unreadable", "2 > def to_departure(flight)"),
        ("check-raises", "Nothing in this code defines the name `Flight`."),
        ("check-forgot-return", "without `return` a function gives None"),
        ("check-forgot-return", "Note: your code printed"),
        ("check-after-reset", "○ 0.1 not started"),
        ("check-no-mark", 'looks like your answer, and nothing marks it.\n  Write @L.exercise("0.1")'),
        ("third", "✓ 0.1  all 8 rules hold."),
        ("now", 'return flight["origin"], max(0'),
        ("receipt", "0.1 passed, 8 rules, seed 7"),
        ("progress", f"1 of {len(EXERCISES)} exercises passed"),
        ("wrong-lesson", "exercise 3.1 belongs to lesson 3, not 0"),
        ("no-question", "lesson 0 has no prediction '0.zz'; it has 0.a"),
    ],
)
def test_a_cell_says(outputs, cell, said):
    assert said in outputs[cell]
