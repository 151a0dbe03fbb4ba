"""What leaves the class: a table for people, JSON for programs, and the two tables that gradebooks read.

CSV as RFC 4180 has it: CRLF, quotes where needed. A text that a spreadsheet would run as a formula gets an apostrophe
in front. A grade is 1 for what passed, 0 for what was tried, and nothing for what was not.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from course.classroom.model import FAILING
from course.classroom.roll import Pupil, Roll
from course.classroom.roster import Person
from course.classroom.standing import PASSED, Standing
from course.curriculum.manifest import EXERCISES

__all__ = ["COLUMNS", "EXPORTS"]

COLUMNS = (
    "handle", "exercise", "status", "rules_passed", "rules_total", "attempts", "highest_hint", "code_hash", "vectors",
    "seed", "minutes", "verified",
)  # fmt: skip


Roster = Mapping[str, Person]
_OF_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def _csv(rows: Iterable[Iterable[object]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows([_tame(value) for value in row] for row in rows)
    return written.getvalue()


def _tame(value: object) -> object:
    is_formula = isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r", "\n"}
    return f"'{value}" if is_formula else value


def _pupils(roll: Roll) -> list[Pupil]:
    return sorted(roll.pupils.values(), key=lambda pupil: (pupil.row.handle.casefold(), pupil.row.id))


def _table(roll: Roll) -> list[tuple[str, str, Standing]]:
    found = [(pupil.row.handle, roll.standings(pupil)) for pupil in _pupils(roll)]
    return [(handle, exercise, of.get(exercise, Standing())) for handle, of in found for exercise in EXERCISES]


def _values(handle: str, exercise: str, standing: Standing) -> tuple[object, ...]:
    return (
        handle,
        exercise,
        standing.status,
        standing.rules_passed,
        standing.rules_total,
        standing.attempts,
        standing.highest_hint,
        standing.code_hash,
        standing.vectors,
        "" if standing.seed is None else standing.seed,
        standing.minutes,
        "yes" if standing.is_verified else "no",
    )


def _as_csv(roll: Roll, _roster: Roster) -> str:
    return _csv([COLUMNS, *(_values(*row) for row in _table(roll))])


def _as_json(roll: Roll, _roster: Roster) -> str:
    rows: list[dict[str, Any]] = [dict(zip(COLUMNS, _values(*row), strict=True)) for row in _table(roll)]
    for row in rows:
        row["seed"], row["verified"] = row["seed"] if row["seed"] != "" else None, row["verified"] == "yes"
    return json.dumps({"class": roll.about.get("title", ""), "standings": rows}, indent=1, ensure_ascii=False) + "\n"


def _grade(standing: Standing) -> object:
    return 1 if standing.status == PASSED else 0 if standing.status in FAILING else ""


def _grades(roll: Roll, pupil: Pupil) -> list[object]:
    of = roll.standings(pupil)
    return [_grade(of.get(exercise, Standing())) for exercise in EXERCISES]


def _assignments() -> list[str]:
    return [f"Sluice {each.id} {each.title}" for each in EXERCISES.values()]


def _as_canvas(roll: Roll, roster: Roster) -> str:
    """What Canvas's gradebook imports: five columns that find the student, then one for each assignment."""
    rows: list[list[object]] = [[*_OF_CANVAS, *_assignments()]]
    rows.append(["    Points Possible", "", "", "", "", *([1] * len(EXERCISES))])
    for pupil in _pupils(roll):
        handle = pupil.row.handle
        person = roster.get(handle, Person(handle))
        found = person.columns or {"Student": person.name or handle, "SIS Login ID": person.id}
        rows.append([*(found.get(name, "") for name in _OF_CANVAS), *_grades(roll, pupil)])
    return _csv(rows)


def _as_moodle(roll: Roll, roster: Roster) -> str:
    """What Moodle's gradebook imports: it asks which column finds the user, and which one is which grade."""
    rows: list[list[object]] = [["Username", *_assignments()]]
    rows += [
        [roster.get(pupil.row.handle, Person(pupil.row.handle)).id, *_grades(roll, pupil)] for pupil in _pupils(roll)
    ]
    return _csv(rows)


EXPORTS: dict[str, Callable[[Roll, Roster], str]] = {
    "csv": _as_csv, "json": _as_json, "canvas": _as_canvas, "moodle": _as_moodle,
}  # fmt: skip
