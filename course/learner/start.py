"""The first page of the course: what this machine has, where you stand, and where to go on.

Each answer is a list of lines, and in a notebook a table with links to the lessons; both say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import EXERCISES, LESSONS, Lesson
from course.curriculum.messages import exercise_title, said
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
    lines = [said("start.fine", names=names)] if names else []
    for each in found:
        if each.status is not doctor.Status.FINE:
            mark = "•" if each.status is doctor.Status.NOTE else "✗"
            lines.append(f"{mark} {each.name}: {each.text}" + (f"\n    → {each.next_step}" if each.next_step else ""))
    missing = any(each.status is doctor.Status.MISSING for each in found)
    lines.append(said("start.missing" if missing else "start.ready"))
    return Text("\n".join(lines))


def lessons() -> Table:
    """All lessons with what you have done in each, and the place to go on at."""
    noted = progress.events()
    rows, links = [], []
    for lesson in LESSONS.values():
        marks = progress.squares(progress.standing(each.id, noted) for each in lesson.exercises)
        takes = said("start.minutes", number=lesson.minutes)
        rows.append([f"L{lesson.number:02d}", lesson_title(lesson), takes, marks])
        links.append(f"{lesson.name}.ipynb")
    given = "\n\n" + said("start.given") if any("◧" in row[-1] for row in rows) else ""
    return Table(["", *said("start.heads").split("|")], rows, _where_to_go_on(noted) + given, links)


def tracks() -> Table:
    """Which lessons to take when there is time for some of them only."""
    rows, links = [], []
    for number, track in enumerate(TRACKS):
        there = [LESSONS[each] for each in track.lessons]
        named = " ".join(f"L{each.number:02d}" for each in there)
        rows.append([said(f"start.track_{number}"), lesson_title(there[0]), named, _hours(there)])
        links.append(f"{there[0].name}.ipynb")
    return Table(said("start.heads_of_tracks").split("|"), rows, said("start.without"), links)


def _hours(lessons: Sequence[Lesson]) -> str:
    minutes = sum(each.minutes for each in lessons)
    return said("start.hours", hours=minutes // 60, minutes=f"{minutes % 60:02d}")


def _where_to_go_on(noted: list[dict[str, Any]]) -> str:
    chosen = next_one(noted)
    if chosen is None:
        given = [each for each in EXERCISES if progress.standing(each, noted) == "caught_up"]
        if given:
            return said("start.to_write", names=", ".join(given))
        return said("start.all_passed")
    how = said("start.not_tried")
    if num_tries := tried(noted).count(chosen.id):
        how = said("start.tried" if num_tries > 1 else "start.tried_once", number=num_tries)
    place = {"lesson": chosen.lesson, "exercise": chosen.id, "title": exercise_title(chosen)}
    return said("start.go_on" if noted else "start.begin", how=how, **place)
