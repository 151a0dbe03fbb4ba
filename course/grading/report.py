"""What a learner sees of a check: text of at most 20 lines by 96 columns, and plain data beside it.

Nothing here depends on the time, on earlier attempts or on this machine, so that a notebook's
stored output can be compared.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from course.grading.rules import Finding, Row, RuleStatus, Status
from course.manifest import exercise
from course.messages import catalogue, language, text

__all__ = ["MIME", "Report", "RuleResult", "message"]

MIME = "application/vnd.sluice.check+json"
COLUMNS = 96
MAX_LINES = 20
_LABEL = 14
_WHO = 7
_SYMBOLS = {
    Status.PASSED: "✓", Status.NOT_STARTED: "○", Status.FAILED: "✗", Status.ERROR: "✗", Status.TIMEOUT: "✗",
}  # fmt: skip


@dataclass(slots=True)
class RuleResult:
    """One rule in a report; `message` is empty unless it failed, and `ended` says how it did then."""

    id: str
    title: str
    status: RuleStatus
    message: str
    ended: Status = Status.FAILED
    finding: Finding | None = None

    def as_json(self) -> dict[str, str]:
        return {"id": self.id, "title": self.title, "status": self.status.value, "message": self.message}


@dataclass(slots=True)
class Report:
    """The outcome of one check. `show_all` makes the text show every failed rule, not only the first.

    `trace` is the first failing case for `show`: ops, ran, yours and flink (events), and both as lines.
    """

    exercise: str
    status: Status
    seed: int
    vectors: str
    code_hash: str
    rules: list[RuleResult] = field(default_factory=list)
    printed: int = 0
    printed_text: str = ""
    trace: dict[str, Any] | None = None
    num_specimens: int = 0
    show_all: bool = False

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def failed_rule(self) -> RuleResult | None:
        """The first rule that failed: the one the learner is told about."""
        return next((rule for rule in self.rules if rule.status is RuleStatus.FAILED), None)

    def as_json(self) -> dict[str, Any]:
        """The public form: what `--json` prints and the MIME bundle carries."""
        return {
            "exercise": self.exercise,
            "status": self.status.value,
            "seed": self.seed,
            "vectors": self.vectors,
            "code_hash": self.code_hash,
            "rules": [rule.as_json() for rule in self.rules],
        }

    def __str__(self) -> str:
        if self.status is Status.NOT_STARTED:
            return self._not_started()
        if self.passed:
            return self._passed()
        failed = [rule for rule in self.rules if rule.status is RuleStatus.FAILED]
        shown = failed if self.show_all else failed[:1]
        if not shown:
            return f"✗ {self.exercise}  the check ran out of time before it had an answer"
        blocks = [self._headline(rule) + "\n\n" + rule.message for rule in shown]
        return "\n\n".join(blocks) + self._printed_note()

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": str(self), MIME: self.as_json()}

    def _not_started(self) -> str:
        words = catalogue(language())["common"]["report"]
        first = words["not_started"].format(exercise=self.exercise, step=exercise(self.exercise).first_step)
        return "\n".join(_wrap(f"{_SYMBOLS[self.status]} {first}", "", "  "))

    def _passed(self) -> str:
        words = catalogue(language())["common"]["report"]
        line = words["passed"].format(
            exercise=self.exercise, rules=len(self.rules), after=exercise(self.exercise).after_passing
        )
        beats = words["beats"].format(count=self.num_specimens) if self.num_specimens else ""
        after = words["next_passed"].format(exercise=self.exercise)
        lines = _wrap(f"{_SYMBOLS[self.status]} {line}", "", "  ")
        return "\n".join([*lines, *(_wrap(beats, "  ", "  ") if beats else []), f"  {after}"]) + self._printed_note()

    def _headline(self, rule: RuleResult) -> str:
        words = catalogue(language())["common"]["report"]
        holds = [each.id for each in self.rules if each.status is RuleStatus.PASSED]
        position = self.rules.index(rule)
        before = [each for each in holds if each in [r.id for r in self.rules[:position]]]
        rest = len(self.rules) - position - 1
        how = {Status.TIMEOUT: "timeout", Status.ERROR: "error"}.get(rule.ended, "failed")
        right = words[how].format(rule=rule.id)
        if before:
            right += " · " + words["hold" if len(before) > 1 else "holds"].format(rules=" ".join(before))
        if rest:
            right += " · " + words["follow"].format(count=rest)
        left = f"{_SYMBOLS[self.status]} {self.exercise}  {rule.title}"
        if len(left) + 2 + len(right) <= COLUMNS:
            return left + right.rjust(COLUMNS - len(left))
        return f"{left}\n  {right}"

    def _printed_note(self) -> str:
        if not self.printed:
            return ""
        words = catalogue(language())["common"]["report"]
        first = self.printed_text.strip().splitlines()[:1]
        note = words["printed"].format(count=f"{self.printed:,}", first=(first[0] if first else "")[:50])
        return "\n" + "\n".join(_wrap(note, "  ", "  "))


def _wrap(words: str, first: str, then: str) -> list[str]:
    return textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=then, break_long_words=True,
                         break_on_hyphens=False) or [first.rstrip()]  # fmt: skip


def _labelled(label: str, words: str) -> list[str]:
    indent = "  " + " " * _LABEL
    return _wrap(words, f"  {label:<{_LABEL}}", indent)


def _row(row: Row) -> str:
    start = f"  {row.label:<{_LABEL}}{row.who:<{_WHO}}" if row.who or row.label else " " * (2 + _LABEL + _WHO)
    line = start + row.text
    note = row.note if len(line) + 3 + len(row.note) <= COLUMNS else row.note.partition(" ")[0]
    if note:
        line += "   " + note
    return line[:COLUMNS].rstrip()


def _source_line(source: str, number: int | None) -> list[str]:
    lines = source.splitlines()
    if number is None or not 1 <= number <= len(lines):
        return []
    return [f"  {'your line':<{_LABEL}}{number} > {lines[number - 1].strip()}"[:COLUMNS]]


def message(exercise_id: str, finding: Finding, source: str) -> str:
    """The body of a failure message: what is wrong, what was run, yours beside Flink's, what now."""
    words = catalogue(language())["common"]["report"]
    texts = text(exercise_id, finding.rule, finding.code)
    values = _Values(finding.values)
    body: list[str] = []
    for paragraph in texts["says"].format_map(values).strip().splitlines():
        body += _wrap(paragraph, "  ", "  ")
    body.append("")
    evidence = [*_labelled(words["ran"], finding.ran)[:2], *_source_line(source, finding.line)]
    evidence += [_row(row) for row in finding.rows]
    tail: list[str] = []
    for key in ("job", "ask"):
        if texts.get(key):
            tail += _labelled(words[key], texts[key].format_map(values))
    tail += _labelled(words["next"], words["next_failed"].format(exercise=exercise_id))
    return "\n".join(_fit(body, evidence, tail))


def _fit(body: list[str], evidence: list[str], tail: list[str]) -> Sequence[str]:
    """At most 18 lines (the headline takes two): rows that were the same go first."""
    room = MAX_LINES - 2
    while len(body) + len(evidence) + len(tail) > room and len(evidence) > 4:
        del evidence[1]
    return [*body, *evidence, *tail][:room]


class _Values(dict[str, str]):
    """Values for a text; a blank that a finding has no value for stays visible instead of failing."""

    def __missing__(self, key: str) -> str:
        return "?"
