"""The first page of the course: what this machine has, where you stand, and where to go on.

Each answer is a list of lines, and in a notebook a table with links to the lessons; both say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.curriculum.manifest import EXERCISES, LESSONS, Lesson
from course.curriculum.tracks import TRACKS
from course.curriculum.wrapping import pad, width
from course.learner import doctor, progress
from course.learner.next_exercise import next_one, tried
from course.learner.notebook import Text

__all__ = ["Table", "lessons", "machine", "tracks"]

_LOOKS = (
    doctor.python, doctor.packages, doctor.java, doctor.spark_scripts, doctor.data, doctor.work, doctor.disk,
    doctor.memory,
)  # fmt: skip


class Table:
    """Rows under heads, and a sentence below; as lines of text, and as Markdown, where the links work."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]], below: str, links: Sequence[str]) -> None:
        self._heads = heads
        self._rows = rows
        self._below = below
        self._links = links

    def __repr__(self) -> str:
        widths = [max(map(width, column)) for column in zip(self._heads, *self._rows, strict=True)]
        lines = ["  ".join(map(pad, row, widths)).rstrip() for row in (self._heads, *self._rows)]
        return "\n".join([*lines, "", self._below])

    def _repr_markdown_(self) -> str:
        """The same table; the second cell of a row is a link."""
        lines = [_bars(self._heads), "|---" * len(self._heads) + "|"]
        for row, link in zip(self._rows, self._links, strict=True):
            lines.append(_bars([row[0], f"[{row[1]}]({link})" if link else row[1], *row[2:]]))
        return "\n".join([*lines, "", self._below])


def _bars(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> Text:
    """What `sluice doctor` finds, as far as lessons need it: one line if all is well."""
    found = [look() for look in _LOOKS]
    names = ", ".join(each.name for each in found if each.status is doctor.Status.FINE)
    lines = [f"✓ fine: {names}"] if names else []
    for each in found:
        if each.status is not doctor.Status.FINE:
            mark = "•" if each.status is doctor.Status.NOTE else "✗"
            lines.append(f"{mark} {each.name}: {each.text}" + (f"\n    → {each.next_step}" if each.next_step else ""))
    missing = any(each.status is doctor.Status.MISSING for each in found)
    lines.append("Something is missing: see above; lessons open all the same." if missing else "You can start.")
    return Text("\n".join(lines))


def lessons() -> Table:
    """All lessons with what you have done in each, and the place to go on at."""
    noted = progress.events()
    rows, links = [], []
    for lesson in LESSONS.values():
        marks = progress.squares(progress.standing(each.id, noted) for each in lesson.exercises)
        rows.append([f"L{lesson.number:02d}", lesson.title, f"{lesson.minutes} min", marks])
        links.append(f"{lesson.name}.ipynb")
    given = "\n\n◧: our part stands in, and you can still write yours." if any("◧" in row[-1] for row in rows) else ""
    return Table(["", "Lesson", "Takes", "Exercises"], rows, _where_to_go_on(noted) + given, links)


def tracks() -> Table:
    """Which lessons to take when there is time for some of them only."""
    rows, links = [], []
    for track in TRACKS:
        there = [LESSONS[number] for number in track.lessons]
        rows.append([track.name, there[0].title, " ".join(f"L{each.number:02d}" for each in there), _hours(there)])
        links.append(f"{there[0].name}.ipynb")
    below = "Without a track: one lesson after the other."
    return Table(["Track", "Begins with", "Lessons", "Takes"], rows, below, links)


def _hours(lessons: Sequence[Lesson]) -> str:
    minutes = sum(each.minutes for each in lessons)
    return f"{minutes // 60} h {minutes % 60:02d}"


def _where_to_go_on(noted: list[dict[str, Any]]) -> str:
    chosen = next_one(noted)
    if chosen is None:
        given = [each for each in EXERCISES if progress.standing(each, noted) == "caught_up"]
        if given:
            return f"You have come to the end. What you did not write yet: {', '.join(given)}."
        return "All exercises have passed. `sluice export` writes the receipt of the whole course."
    lesson = LESSONS[chosen.lesson]
    verb = "Go on" if noted else "Begin"
    how = "not tried yet"
    if num_tries := tried(noted).count(chosen.id):
        how = f"{num_tries} attempt{'s' * (num_tries > 1)}, all kept"
    return f"{verb} with lesson {lesson.number}, exercise {chosen.id} ({chosen.title}; {how})."
