"""What a learner sees of a check: text of at most 20 lines by 96 columns, and plain data beside it.

Nothing here depends on the time, on earlier attempts or on this machine, so that a notebook's
stored output can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any

from course.curriculum.manifest import DEFAULT_SEED
from course.curriculum.messages import common, phrase, text
from course.curriculum.source_lines import source_lines
from course.curriculum.wrapping import cut, pad, pad_left, width, wrap
from course.grading.rules import Finding, Row, RuleStatus, Status

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
        blocks = [self._headline(rule) + "\n\n" + rule.message for rule in shown]
        return "\n\n".join(blocks) + self._notes()

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": str(self), MIME: self.as_json()}

    def in_terminal(self) -> str:
        """The same with the commands of a terminal, where the text of a notebook has its calls."""
        text = str(self)
        for name, command in common("terminal").items():
            text = text.replace(*(each.format(**self._blanks) for each in (common("report")[name], command)))
        return text

    @property
    def _blanks(self) -> dict[str, object]:
        return {"exercise": self.exercise, "seed": self.seed}

    def _not_started(self) -> str:
        words = common("report")
        first = words["not_started"].format(exercise=self.exercise, step=phrase("first_step", self.exercise))
        return "\n".join(_wrap(f"{_SYMBOLS[self.status]} {first}", "", "  "))

    def _passed(self) -> str:
        words = common("report")
        line = words["passed"].format(
            exercise=self.exercise, rules=len(self.rules), after=phrase("after_passing", self.exercise)
        )
        beats = words["beats"].format(count=self.num_specimens) if self.num_specimens else ""
        after = words["next_passed"].format(exercise=self.exercise)
        lines = _wrap(f"{_SYMBOLS[self.status]} {line}", "", "  ")
        return "\n".join([*lines, *(_wrap(beats, "  ", "  ") if beats else []), f"  {after}"]) + self._notes()

    def _headline(self, rule: RuleResult) -> str:
        words = common("report")
        holds = [each.id for each in self.rules if each.status is RuleStatus.PASSED]
        position = self.rules.index(rule)
        before = [each for each in holds if each in [r.id for r in self.rules[:position]]]
        rest = len(self.rules) - position - 1
        how = {Status.TIMEOUT: "timeout", Status.ERROR: "error"}.get(rule.ended, "failed")
        right: str = words[how].format(rule=rule.id)
        if before:
            right += " · " + words["hold" if len(before) > 1 else "holds"].format(rules=" ".join(before))
        if rest:
            right += " · " + words["follow"].format(count=rest)
        left = f"{_SYMBOLS[self.status]} {self.exercise}  {rule.title}"
        if width(left) + 2 + width(right) <= COLUMNS:
            return left + pad_left(right, COLUMNS - width(left))
        return f"{left}\n  {right}"

    def _notes(self) -> str:
        """What stands below a report: the seed, unless it is the usual one, and what the code printed."""
        words = common("report")
        again = words["seed"].format(seed=self.seed, exercise=self.exercise)
        return ("" if self.seed == DEFAULT_SEED else f"\n  {again}") + self._printed_note()

    def _printed_note(self) -> str:
        if not self.printed:
            return ""
        words = common("report")
        first = self.printed_text.strip().splitlines()[:1]
        note = words["printed"].format(count=f"{self.printed:,}", first=(first[0] if first else "")[:50])
        return "\n" + cut(f"  {note}", COLUMNS)


def _wrap(words: str, first: str, then: str) -> list[str]:
    return wrap(words, COLUMNS, first, then) or [first.rstrip()]


def _labelled(label: str, words: str) -> list[str]:
    indent = "  " + " " * _LABEL
    return _wrap(words, f"  {pad(label, _LABEL)}", indent)


def _at_most_two(lines: list[str]) -> list[str]:
    """The first two lines of a text; where it goes on, the second one says so."""
    if len(lines) <= 2 or lines[1].endswith("…"):
        return lines[:2]
    indent = lines[1][: len(lines[1]) - len(lines[1].lstrip())]
    second = wrap(lines[1].lstrip(), COLUMNS - len(" …"), indent, indent)[0]
    return [lines[0], f"{second} …"]


def _rows(rows: Sequence[Row]) -> list[str]:
    """The rows below each other; where a label takes more than its columns, all texts stand further right."""
    widest = max((width(row.label) for row in rows), default=0)
    return [_row(row, _LABEL if widest <= _LABEL else widest + 1) for row in rows]


def _row(row: Row, label: int) -> str:
    line = f"  {pad(row.label, label)}{pad(row.who, _WHO)}{row.text}"
    note = row.note if width(line) + 3 + width(row.note) <= COLUMNS else row.note.partition(" ")[0]
    if note:
        line += "   " + note
    return cut(line, COLUMNS).rstrip()


def _source_line(source: str, number: int | None) -> list[str]:
    lines = source_lines(source)
    if number is None or not 1 <= number <= len(lines):
        return []
    return [cut(f"  {pad(phrase('your_line'), _LABEL)}{number} > {lines[number - 1].strip()}", COLUMNS)]


def message(exercise_id: str, finding: Finding, source: str) -> str:
    """The body of a failure message: what is wrong, what was run, yours beside Flink's, what now."""
    words = common("report")
    texts = text(exercise_id, finding.rule, finding.code)
    values = _Values(finding.values)
    body: list[str] = []
    for paragraph in texts["says"].format_map(values).strip().splitlines():
        body += _wrap(paragraph, "  ", "  ")
    body.append("")
    evidence = [*_at_most_two(_labelled(words["ran"], finding.ran)), *_source_line(source, finding.line)]
    evidence += _rows(_pointed(finding.rows))
    tail: list[str] = []
    for key in ("job", "ask"):
        if texts.get(key):
            tail += _labelled(words[key], texts[key].format_map(values))
    then = "next_source" if finding.rule == "S" else "next_failed"
    tail += _labelled(words["next"], words[then].format(exercise=exercise_id))
    return "\n".join(_fit(body, evidence, tail))


def _pointed(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with a caret under the first difference of the first two that stand one below the other.

    A check that knows better where to look puts its own, and then nothing is added.
    """
    if any("^^" in row.text for row in rows):
        return rows
    for number, (yours, other) in enumerate(pairwise(rows), 1):
        if other.label or other.who in ("", yours.who) or yours.text == other.text:
            continue
        letters = zip_longest(yours.text, other.text)
        at = next(at for at, (mine, theirs) in enumerate(letters) if mine != theirs)
        column = width(other.text[:at])
        room = COLUMNS - 2 - _LABEL - _WHO - column
        words = "^^ " + phrase("first_difference")
        if room < len("^^"):
            break  # it is in what does not fit on the line
        caret = Row("", "", " " * column + (words if width(words) <= room else "^^"))
        return [*rows[: number + 1], caret, *rows[number + 1 :]]
    return rows


def _fit(body: list[str], evidence: list[str], tail: list[str]) -> Sequence[str]:
    """At most 15 lines (headline and notes take five): rows that were the same go first."""
    room = MAX_LINES - 5
    while len(body) + len(evidence) + len(tail) > room and len(evidence) > 4:
        del evidence[1]
    return [*body, *evidence, *tail][:room]


class _Values(dict[str, str]):
    """Values for a text; a blank that a finding has no value for stays visible instead of failing."""

    def __missing__(self, key: str) -> str:
        return "?"
