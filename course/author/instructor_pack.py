"""`sluice instructor-pack`: for each lesson what an instructor wants on paper, made from what the lesson is made from.

A plan in minutes, what to say at each cell, the answers of the quiz, and a sheet for the zoo: how a known-wrong part
shows in a running job, the belief behind it, and the question to ask whoever holds it. What is to be said stands in the
lesson's source, on lines that begin with `#!`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from course.author.build import Cell, parse, source_of
from course.curriculum.manifest import LESSONS, Exercise, Lesson
from course.curriculum.messages import text, titles
from course.curriculum.questions import Question, questions
from course.curriculum.seams import child_job
from course.curriculum.specimens import zoo
from course.curriculum.tracks import TRACKS
from course.grading.judge import judge
from course.grading.report import Report
from course.grading.runner import Grader, GraderError

__all__ = ["Step", "add_arguments", "lesson_sheet", "overview", "plan", "run"]

_WORDS_PER_MINUTE = 120
_MINUTES = {
    "title": 1, "setup": 1, "why": 2, "figure": 3, "predict": 2, "task": 2, "exercise": 18, "check": 4, "hint": 1,
    "show": 3, "swap": 4, "zoo": 5, "spark": 5, "quiz": 2, "recap": 2, "receipt": 1,
}  # fmt: skip
"""How long a code cell takes beside the others of its lesson; text takes as long as reading it."""
_DO = {
    "setup": "All run it. Who sees an error: `sluice doctor`.",
    "figure": "Run it on the projector, step through it, and say what moves before you say its name.",
    "predict": "Everybody chooses a letter before anybody runs the next cell. Ask two people for their reasons.",
    "exercise": "They write. Walk around; watch the dashboard for a rule at which many are stuck.",
    "check": "Read one failure aloud: what we ran, yours, Flink's, and what a job would do.",
    "hint": "Say that hints cost nothing. `sluice class unlock` opens a rung for all.",
    "show": "Step to the first difference, and ask what the code knew at that moment.",
    "swap": "Run somebody's part on the projector. Compare the records before and after.",
    "zoo": "Each writes one line for each specimen: what would on-call see? Then use the sheet below.",
    "spark": "Ask for the number before Spark gives it. Without Java the cell says so, and the lesson goes on.",
    "quiz": "Without looking anything up. The second question is from an earlier lesson.",
    "receipt": "Keep the file: `sluice class import` takes it.",
}
_RUBRIC = """
## Written answers

For the line on each specimen ("what would on-call see?") and for "why did the job behave so?":

| points | the answer |
|---|---|
| 0 | is absent, or repeats the question |
| 1 | names the symptom |
| 2 | explains the mechanism that leads to it |
| 3 | predicts what changes if one number changes, such as the size of a buffer |
"""
_OVERVIEW = """# Instructor pack

Made by `sluice instructor-pack` from the lessons themselves.

## Lessons

{lessons}

## Tracks

{tracks}

## The day before

Everybody runs `make lab` once at home, then `sluice doctor`: it is green or names one next step. Nothing is fetched on
the day.

## In the room

`sluice class serve --host ADDRESS` on your machine prints a code; learners type `sluice join CODE@HOST:PORT`. The page
for the projector shows who is where, which rule fails most, and who is stuck for more than eight minutes.
`sluice class unlock 3.1 3` opens three hints for all, `sluice class catchup 5` lets late ones begin with lesson 5.
Without a network: collect the files `progress.jsonl`, then `sluice class import`.

## Afterwards

`sluice class export --format canvas` (or `moodle`, `csv`) writes the grades. What machines report is believed; receipts
are judged again: `sluice class import receipt.json`. In an open repository nothing is secret, so grade with fresh seeds
and a short talk.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One cell in the plan: minutes from the start, and how many it takes; what it is, and what is said at it."""

    begin_min: int
    minutes: int
    what: str
    say: str


def plan(cells: list[Cell], minutes: int) -> list[Step]:
    """The cells of a lesson as a timetable that takes so many minutes."""
    weights = [_weight(cell) for cell in cells]
    total = sum(weights)
    steps: list[Step] = []
    usual = dict(_DO)
    passed = 0.0
    for cell, weight in zip(cells, weights, strict=True):
        begin = round(passed)
        passed += weight * minutes / total
        said = [usual.pop(cell.role, "") if cell.kind == "code" else "", *cell.notes]  # the usual thing once
        steps.append(Step(begin, round(passed) - begin, _what(cell), " ".join(filter(None, said))))
    return steps


def _weight(cell: Cell) -> float:
    if cell.kind == "markdown":
        return len(cell.source.split()) / _WORDS_PER_MINUTE
    return _MINUTES.get(cell.role, 1)


def _what(cell: Cell) -> str:
    if cell.kind == "markdown":
        first = cell.source.lstrip("# ").partition("\n")[0]
        return f"read: {first if cell.source.startswith('#') else first[:50].rstrip() + ' …'}"
    return f"{cell.role} {cell.options.get('id', '')}".strip()


def lesson_sheet(lesson: Lesson, grader_of: Mapping[str, Grader] | None = None) -> str:
    """The page of one lesson, as Markdown.

    Raises:
        BuildError: the lesson has no source.
        GraderError: this machine could not run its known-wrong parts.
    """
    cells = parse(source_of(lesson.name).read_text(encoding="utf-8"), lesson.name)
    asked = questions(lesson.number).values()
    parts = [
        f"# L{lesson.number:02d} {lesson.title}: for instructors", f"{lesson.minutes} minutes, {len(cells)} cells.",
        "## Plan", _table(["from", "min", "cell", "say and do"], (
            [_clock(step.begin_min), str(step.minutes), step.what, step.say] for step in plan(cells, lesson.minutes)
        )),
        "## Predictions", *(_asked(each) for each in asked if each.kind == "predict"),
        "Nothing here is graded: whoever chooses is told this, and the cell after it, folded until then, shows it.",
        "## Quiz, with answers", *(_asked(each) for each in asked if each.kind == "quiz"),
    ]  # fmt: skip
    for exercise in lesson.exercises:
        parts += _exercise(exercise, (grader_of or {}).get(exercise.id))
    return "\n\n".join([*parts, _RUBRIC.strip()]) + "\n"


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


def _asked(question: Question) -> str:
    lines = [f"**{question.id}** {question.ask}", ""]
    for letter, words in question.choices.items():
        is_right = letter == question.right
        told = f": {question.answers[letter]}" if question.answers else ""
        lines.append(f"- {letter}) {'**' * is_right}{words}{'** ✓' if is_right else ''}{told}")
    return "\n".join([*lines, *(["", question.because] if question.because else [])])


def _exercise(exercise: Exercise, grader: Grader | None) -> Iterator[str]:
    yield f"## Exercise {exercise.id}: {exercise.title}"
    yield f"In Flink: `{exercise.flink_name}`. Rules, in the order in which they are shown:"
    yield "\n".join(f"- {rule}: {words}" for rule, words in titles(exercise.id).items())
    yield f"### The zoo of {exercise.id}"
    grader = grader or Grader(child_job(exercise.id))
    rows = []
    for specimen in zoo(exercise.id):
        rule, job, ask = _told(exercise.id, judge(exercise.id, specimen.source, grader=grader))
        rows.append([specimen.name.partition("_")[0], specimen.belief, rule, job, ask])
    yield _table(["", "the belief behind it", "rule", "what on-call sees", "ask"], rows)


def _told(exercise_id: str, report: Report) -> tuple[str, str, str]:
    """The rule that fails, what a running job would do, and the question."""
    rule = report.failed_rule
    assert rule is not None, "a known-wrong part is turned down, which a test holds"
    assert rule.finding is not None, "a rule that fails says why"
    texts = text(exercise_id, rule.id, rule.finding.code)
    filled = [texts.get(key, "").format_map(_Blanks(rule.finding.values)) for key in ("job", "ask")]
    return rule.id, filled[0] or texts["says"].format_map(_Blanks(rule.finding.values)), filled[1]


class _Blanks(dict[str, str]):
    """Values for a text; a blank without one stays visible."""

    def __missing__(self, key: str) -> str:
        return "…"


def _table(heads: list[str], rows: Iterator[list[str]] | list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in row)} |" for row in lines)


def overview() -> str:
    """The first page: what a workshop needs, and the tracks."""
    rows = []
    for track in TRACKS:
        there = [LESSONS[number] for number in track.lessons]
        minutes = sum(lesson.minutes for lesson in there)
        rows.append([track.name, " ".join(f"L{lesson.number:02d}" for lesson in there), _clock(minutes)])
    pages = [f"- [L{lesson.number:02d} {lesson.title}]({_file_of(lesson)})" for lesson in LESSONS.values()]
    return _OVERVIEW.format(lessons="\n".join(pages), tracks=_table(["track", "lessons", "time"], rows))


def _file_of(lesson: Lesson) -> str:
    return f"{lesson.name}.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice instructor-pack`."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("instructor-pack"),
        metavar="FOLDER",
        help="where to write it, one Markdown file for each lesson (%(default)s)",
    )
    parser.add_argument(
        "--lesson", type=int, action="append", choices=[*LESSONS], metavar="N", help="only this one; may be repeated"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the files; return 0, 2 if the folder cannot be written, 3 if graders cannot run here."""
    chosen = [lesson for number, lesson in LESSONS.items() if not arguments.lesson or number in arguments.lesson]
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        (arguments.folder / "README.md").write_text(overview(), encoding="utf-8")
        for number, lesson in enumerate(chosen, 1):
            print(f"{number} of {len(chosen)}: lesson {lesson.number}, {lesson.title}", file=sys.stderr, flush=True)
            (arguments.folder / _file_of(lesson)).write_text(lesson_sheet(lesson), encoding="utf-8")
    except OSError as error:
        print(f"{arguments.folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    except GraderError as error:
        print(f"The known-wrong parts could not be run: {error}", file=sys.stderr)
        return 3
    print(f"{arguments.folder / 'README.md'} is the first page.")
    return 0
