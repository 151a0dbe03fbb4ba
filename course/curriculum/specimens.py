"""Answers that the course brings along: wrong ones (the zoo), right ones, and wrong parts that no learner sees.

They are read from the folder of their exercise and never imported. A right answer is its `source`. A wrong one is a
`belief` and a `change` of a right one, its `base`: the one called "plain", unless another is named. One that has
nothing in common with a right answer is a `source` too.

A change is one or more pieces, with `@@` between them. The lines of a piece begin with what a diff has there: `-` is
taken out, `+` is put in, a blank is only there to say where. What is taken out stands in the base exactly once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from course.curriculum.folders import folder, table

__all__ = ["Specimen", "changed", "harness", "right_answers", "unseen", "zoo"]


@dataclass(frozen=True, slots=True)
class Specimen:
    """One answer: its name, the belief behind it (or what is special about it), its source."""

    name: str
    belief: str
    source: str


@cache
def zoo(exercise_id: str) -> tuple[Specimen, ...]:
    """The known-wrong answers of one exercise, by name."""
    answers = table(exercise_id, "answers.toml")
    bases = {name: row["source"] for name, row in answers["right"].items()}
    return tuple(_wrong(name, row, bases) for name, row in answers["wrong"].items())


@cache
def right_answers(exercise_id: str) -> tuple[Specimen, ...]:
    """Right answers of one exercise, other than the reference part."""
    rows = table(exercise_id, "answers.toml")["right"].items()
    return tuple(Specimen(name, row.get("note", ""), _noted(row.get("note", ""), row["source"])) for name, row in rows)


@cache
def unseen(exercise_id: str) -> tuple[Specimen, ...]:
    """Wrong parts that no zoo shows: a learner's rule is tried on them."""
    return tuple(_wrong(name, row, {}) for name, row in table(exercise_id, "unseen.toml").items())


@cache
def harness(exercise_id: str) -> str:
    """The source that makes of a part what a learner's rule is given."""
    return (folder(exercise_id) / "harness.py").read_text(encoding="utf-8")


def changed(source: str, change: str) -> str:
    """`source` with a change made in it.

    Raises:
        ValueError: a piece of the change does not say one place of the source.
    """
    lines = source.splitlines()
    for piece in re.split(r"^@@\n", change, flags=re.MULTILINE):
        rows = [row or " " for row in piece.splitlines()]
        old = [row[1:] for row in rows if row[0] != "+"]
        places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if len(places) != 1 or any(row[0] not in " -+" for row in rows):
            raise ValueError(f"these lines stand {len(places)} times in the base, not once:\n" + "\n".join(old))
        lines[places[0] : places[0] + len(old)] = [row[1:] for row in rows if row[0] != "-"]
    return "\n".join(lines) + "\n"


def _wrong(name: str, row: Mapping[str, str], bases: Mapping[str, str]) -> Specimen:
    code = row["source"] if "source" in row else changed(bases[row.get("base", "plain")], row["change"])
    return Specimen(name, row["belief"], _noted(row["belief"], code))


def _noted(note: str, code: str) -> str:
    """The code as a file whose first line is the note."""
    gap = "\n\n" if code.startswith(("import ", "from ")) else "\n\n\n"
    end = "\n" if "\n" in note else ""
    return f'"""{note}{end}"""{gap}{code}' if note else code
