"""A language made by a machine: every text between ⟦ and ⟧. What a learner sees outside of them is in no catalogue."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import course
from course.curriculum.languages import language
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import common, read_catalogue
from course.curriculum.seams import seams

COURSE = Path(course.__file__).parent
FILES = [
    str(file.relative_to(COURSE))
    for kind in (
        "curriculum/messages.toml",
        "exercises/*/messages.toml",
        "curriculum/questions.toml",
        "curriculum/interface.toml",
    )
    for file in sorted(COURSE.glob(kind))
]

SHOW = """
import json, sys
from course.learner import hints
from course.grading.judge import judge
from course.curriculum.questions import questions
from course.grading.loading import check_of
from course.grading.runner import Grader, Limits
from course.curriculum.seams import child_job, seams
from course.curriculum.stubs import solution, stub
from course.curriculum.specimens import zoo
from course.learner.step_by_step import view_of
found, kinds = [], set()
for exercise in sys.argv[1:]:
    odd = ["def f(: pass", "1 / 0", "while True: pass", "x = y", "raise SystemExit", "import os; os._exit(0)"]
    # What is said of code that does not run is said of exercises of one kind alike.
    kind = seams()[exercise].kind, seams()[exercise].extends, type(check_of(exercise))
    odd = [] if kind in kinds else odd
    kinds.add(kind)
    every = [None, stub(exercise), solution(exercise), *odd, *(each.source for each in zoo(exercise)[::4])]
    grader = Grader(child_job(exercise), Limits(case_seconds=0.3), keeps_one_ready=True)
    for source in every:
        report = judge(exercise, source, 7, grader=grader)
        found.append(str(report))
        found.append(hints.hint_for(report, "", 2))
        if report.trace is not None:
            found.append(view_of(exercise, report.trace).text)
    grader.close()
    for rule in ("S", *(rule.id for rule in check_of(exercise).rules)):
        found += [hints.hint_text(exercise, rule, rung) for rung in range(1, 5)]
    found += [each.text() for each in questions(int(exercise.partition(".")[0])).values()]
    found += [case.ran for case in check_of(exercise).cases(7)]
print(json.dumps(found))
"""

# What is the same in every language: code and its names, signs, numbers, and what Python itself says.
NAMES = "|".join(sorted({name for each in seams().values() for name in (each.member, *each.methods)}))
SAME = re.compile(
    rf"⟦[^⟦⟧]*⟧|⟦[^⟦⟧]*(?=⟦|$)|…\s?\w+|\b(?:{NAMES})\b|Existing exports of data: object cannot be|\bre-sized|\{{\w+\}}"
    r"|object of type 'NoneType' has no len|b?'[^']*'|\"[^\"]*\""
    r"|\b\w+_\w+\b|bytes\.fromhex|\b(?:serialize|reset|prune|copy|drain|emit|new|revive|get|set)\b"
    r"|\b(?:broadcast|take|resume|writer|window|free|retain|recycle|total|required|most|other|borrow)\b"
    r"|\b(?:expected|return|takes|refuses|destroy|buffers|self|Buffer|memoryview)\b"
    r"|\bPARTIAL\b|\b(?:JFK|LAX|LGA|EWR|ATL|ORD|BOS|IAH)\b|\b(?:origin|carrier|dest)\b"
    r"|random/\d+|\b\w+(?:Error|Exit)\b|division by zero|invalid syntax|name is not defined"
    r"|\b(?:LAST|INTERMEDIATE|PARTIAL)(?:_RECORD\w*)?\b|\b(?:str|bytes|int)\b"
    r"|\b(?:poll|add|flush|write|close|resume|finish|release|collect|change)\b"
    r"|\b(?:forward|rebalance|rescale|shuffle|global|broadcast|hash|HEAD|NEVER)\b"
    r"|\b(?:IDLE|ACTIVE|SUBSUMED|CANCELLED|Abort|AbortReason|ResumeChannel|Watermark|StreamStatus|AddCredit|ResumeConsumption)\b"
    r"|\b(?:PIPELINED|BLOCKING)\b|\bOutputFlusher\b|\btm-\d+"
    r"|\b(?:[0-9a-f]{2} ?)+\b|\b[A-Z]\b|__init__|\b(?:None|True|False|set|dict|list|tuple|generator|ok)\b"
)


def pseudo(value, key=""):
    """The same table with every text in brackets, blanks kept; what is not a text for learners as it is."""
    if isinstance(value, dict):
        return {name: pseudo(each, name) for name, each in value.items()}
    if not isinstance(value, str) or key == "kind" or (key == "right" and len(value) == 1):
        return value
    # Blanks stand outside of the brackets: what they are filled with must be in brackets of its own.
    parts = re.split(r"(\{\w+\})", value)
    return "".join(p if p.startswith("{") else "".join(_marked(line) for line in re.split(r"(\n)", p)) for p in parts)


def _marked(text: str) -> str:
    # Each word, since lines are wrapped between words.
    return re.sub(r"[^\s⟦⟧]*[^\W\d_][^\s⟦⟧]*", lambda word: f"⟦{word[0]}⟧", text)


def toml(table, path=()):
    lines = []
    for key, value in table.items():
        if not isinstance(value, dict) or path[-1:] == ("choices",):
            lines.append(f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}")
    for key, value in table.items():
        if isinstance(value, dict):
            lines += ["", "[" + ".".join(map(json.dumps, (*path, key))) + "]", *toml(value, (*path, key))]
    return lines


@pytest.fixture(scope="module")
def locales(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("locales")
    for file in FILES:
        made = folder / "qps" / file
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text("\n".join(toml(pseudo(read_catalogue(file, "en")))), encoding="utf-8")
        tomllib.loads(made.read_text(encoding="utf-8"))
    return folder


@pytest.mark.slow
def test_every_text_of_checks_and_hints_is_in_a_catalogue(locales, tmp_path):
    own = {"SLUICE_LOCALES": str(locales), "SLUICE_LANGUAGE": "qps", "SLUICE_WORK": str(tmp_path / "work")}
    command = [sys.executable, "-c", SHOW, *EXERCISES]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert len(shown) > 100
    left = {
        f"{word}: {line}"
        for text in shown
        for line in text.splitlines()
        if " > " not in line
        for word in re.findall(r"[^\W\d_]{2,}", SAME.sub(" ", line))
    }
    assert left == set(), sorted(left)


def test_what_a_language_has_not_translated_is_english(tmp_path, monkeypatch):
    folder = tmp_path / "xx" / "curriculum"
    folder.mkdir(parents=True)
    (folder / "messages.toml").write_text('[titles]\nS = "Anders"\n[report]\nran = ["no", "text"]\n')
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    monkeypatch.setenv("SLUICE_LANGUAGE", "xx")
    assert language() == "xx"
    assert common("titles")["S"] == "Anders"
    assert common("report")["ran"] == "We ran"


@pytest.mark.parametrize("name", ["zz", "../en", ""])
def test_a_language_that_is_not_there_is_english(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    monkeypatch.setenv("SLUICE_LANGUAGE", name)
    assert language() == "en"
