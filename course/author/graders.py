"""`sluice graders`: how good the graders are, measured: what they turn down, what they let pass, what they say.

The table it makes is a file of the documentation, `course/GRADERS.md`; a test fails when it is not what the
command prints.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from course.author.mutants import mutants
from course.cli.options import add_exercises
from course.curriculum.folders import table
from course.curriculum.manifest import EXERCISES, exercise
from course.curriculum.messages import title
from course.curriculum.seams import child_job
from course.curriculum.specimens import Specimen, right_answers, zoo
from course.curriculum.stubs import reference_source, solution, standing_alone, stub
from course.exit_status import NOT_PASSED, PASSED
from course.grading.judge import judge, vectors_version
from course.grading.loading import check_of
from course.grading.report import Report
from course.grading.runner import Grader, Limits

__all__ = ["KILLED", "PRECISION", "TABLE", "Measured", "add_arguments", "document", "measure", "run"]

TABLE = Path(__file__).parents[1] / "GRADERS.md"
KILLED, PRECISION = 0.95, 0.8
_OF_A_MUTANT = Limits(case_seconds=0.5)
"""A fifth of what a learner's code has: many mutants have no end, and a reference part needs a tenth of it at most."""


@dataclass(slots=True)
class Measured:
    """What became of one exercise's parts. `survivors` are names of mutants that passed, with the reason if known."""

    exercise: str
    num_mutants: int = 0
    survivors: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    told: list[tuple[Specimen, Report]] = field(default_factory=list)
    wrongly: list[str] = field(default_factory=list)
    num_right: int = 0

    @property
    def num_real(self) -> int:
        """Mutants that can be told from the original."""
        return self.num_mutants - sum(1 for reason in self.survivors.values() if reason)

    @property
    def killed(self) -> float:
        return (self.num_mutants - len(self.survivors)) / max(1, self.num_real)

    @property
    def num_caught(self) -> int:
        return sum(not report.passed for _, report in self.told)

    @property
    def num_alone(self) -> int:
        """Known-wrong parts whose message no other one gets."""
        codes = Counter(_code(report) for _, report in self.told)
        return sum(codes[_code(report)] == 1 for _, report in self.told)

    @property
    def is_good(self) -> bool:
        return (
            not self.wrongly
            and not self.gone
            and self.num_caught == len(self.told)
            and self.killed >= KILLED
            and self.num_alone >= PRECISION * len(self.told)
        )


def _code(report: Report) -> str:
    rule = report.failed_rule
    return f"{rule.id}.{rule.finding.code}" if rule is not None and rule.finding is not None else "passed"


def _all_judged(exercise_id: str, sources: Iterable[str], limits: Limits | None = None) -> list[Report]:
    """The report of every source; as many at a time as there are processors, each with a child kept ready."""
    graders: SimpleQueue[Grader] = SimpleQueue()
    num = max(1, os.cpu_count() or 1)
    every = [Grader(child_job(exercise_id), limits, keeps_one_ready=True) for _ in range(num)]
    for each in every:
        graders.put(each)

    def one(source: str) -> Report:
        grader = graders.get()
        try:
            return judge(exercise_id, source, grader=grader)
        finally:
            graders.put(grader)

    try:
        with ThreadPoolExecutor(num) as pool:
            return list(pool.map(one, sources))
    finally:
        for each in every:
            each.close()


def measure(
    exercise_id: str, say: Callable[[str], object] = lambda _: None, *, mutants_one_in: int = 1, right_one_in: int = 1
) -> Measured:
    """Judge the reference part's mutants, the zoo, other right answers, the stub and the reference part itself.

    One mutant, and one right answer, in so many is judged; of the others it is taken that they do what the exercise
    says of them.
    """
    found = Measured(exercise(exercise_id).id)
    changed = list(mutants(reference_source(exercise_id)))
    right_ones, wrong = right_answers(exercise_id), zoo(exercise_id)
    say(f"{exercise_id}: {len(changed)} mutants, {len(wrong)} known-wrong parts, {len(right_ones)} right ones")
    judged = right_ones[::right_one_in]
    sources = [stub(exercise_id), solution(exercise_id), *(each.source for each in (*judged, *wrong))]
    reports = iter(_all_judged(exercise_id, sources))
    if (status := next(reports).status.value) != "not_started":
        found.wrongly.append(f"the stub is {status}")
    for name in ("the reference part", *(each.name for each in judged)):
        report = next(reports)
        if not report.passed:
            found.wrongly.append(f"{name} is turned down by {_code(report)}")
    found.num_right = len(right_ones)
    found.told = [(each, next(reports)) for each in wrong]
    found.num_mutants = len(changed)
    excused = table(exercise_id, "exercise.toml").get("equivalent_mutants", {})
    parts = [standing_alone(exercise_id, source) for _, source in changed[::mutants_one_in]]
    passes = [report.passed for report in _all_judged(exercise_id, parts, _OF_A_MUTANT)]
    passed = {  # several may have one name
        name
        for number, (name, _) in enumerate(changed)
        if (name in excused if number % mutants_one_in else passes[number // mutants_one_in])
    }
    found.survivors = {name: excused.get(name, "") for name, _ in changed if name in passed}
    found.gone = sorted(set(excused) - set(found.survivors))
    return found


_HEAD = """\
# How good the graders are

Made by `sluice graders --write` and checked by a test; never edit it. Vectors: Flink {vectors}.

A **mutant** is the reference part with one small change. It should be turned down unless nobody could tell it from the
original; such ones are listed with the reason. A **known-wrong** part comes from the zoo, and its message is **its
own** if no other one of the zoo gets it. Goals: 95 % of the mutants that can be told apart, all of the zoo, and four
of five with a message of their own; every right part passes.

| exercise | mutants turned down | known-wrong turned down | with a message of its own | right parts passed |
|---|---|---|---|---|
"""


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


def document(measured: Sequence[Measured]) -> str:
    """The table as a page of Markdown."""
    lines = [*_HEAD.format(vectors=vectors_version()).splitlines()]
    for each in measured:
        passed = each.num_right + 1 - sum("turned down" in line for line in each.wrongly)
        lines.append(
            f"| {each.exercise} {exercise(each.exercise).title} "
            f"| {_share(each.num_mutants - len(each.survivors), each.num_real)} "
            f"| {_share(each.num_caught, len(each.told))} | {_share(each.num_alone, len(each.told))} "
            f"| {_share(passed, each.num_right + 1)} |"
        )
    for each in measured:
        lines += ["", f"## {each.exercise} {exercise(each.exercise).title}", "", *_details(each)]
    return "\n".join(lines) + "\n"


def _details(each: Measured) -> list[str]:
    lines = [f"- **Wrong here:** {line}" for line in each.wrongly]
    lines += [f"- **No longer a survivor, take it off the list:** `{name}`" for name in each.gone]
    lines += ["| rule | | known-wrong parts it turns down, with the message each gets |", "|---|---|---|"]
    for rule in ("S", *(rule.id for rule in check_of(each.exercise).rules)):
        caught = [
            f"{part.name} ({_code(report).partition('.')[2]})"
            for part, report in each.told
            if report.failed_rule is not None and report.failed_rule.id == rule
        ]
        lines.append(f"| {rule} | {title(each.exercise, rule)} | {', '.join(caught)} |")
    lines += ["", "Mutants that pass, and why:", "", "| change | reason |", "|---|---|"]
    for name, reason in each.survivors.items():
        lines.append(f"| `{_escaped(name)}` | {reason or '**none known: a hole**'} |")
    return lines


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice graders`."""
    add_exercises(parser)
    parser.add_argument("--write", action="store_true", help=f"write the table of all exercises to {TABLE.name}")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print, or write; not passed when a goal is missed."""
    names: Iterable[str] = EXERCISES if arguments.write else arguments.exercises or EXERCISES
    measured = [measure(name, lambda text: print(text, flush=True)) for name in names]
    if arguments.write:
        TABLE.write_text(document(measured), encoding="utf-8")
        print(f"written to {TABLE.name}")
    else:
        print(document(measured), end="")
    return PASSED if all(each.is_good for each in measured) else NOT_PASSED
