"""Where the course teaches what its sources do: `lessons/COVERAGE.md`, from tags in the lesson sources.

    # %% figure name=closings seeds=I5,I6

says that this cell teaches subjects I5 and I6 of `subjects.toml`, which says what they are and which file of the engine
does them; in notebooks nothing is seen of it. `python -m course.author.coverage` writes the page, and a test holds it
against the sources.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from course.author.build import cell_ids, parse, source_of
from course.curriculum.manifest import LESSONS

__all__ = ["PAGE", "Subject", "coverage_page", "subjects", "taught"]

PAGE = Path(__file__).resolve().parents[2] / "lessons" / "COVERAGE.md"
_LIST = Path(__file__).with_name("subjects.toml")
_PARTS = {
    "A": "Memory",
    "B": "Records to bytes and back",
    "C": "Writing, partitions, flush",
    "D": "Blocking results, scheduling, pull and push",
    "E": "The three ways of data",
    "O": "Outputs and chains",
    "G": "Backpressure before credits",
    "H": "Credit",
    "I": "Checkpoints and time",
    "J": "How others push back",
    "K": "Who starts the tasks",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that the sources teach: in a few words, and the file of the engine, below refimpl; empty if none is."""

    what: str
    engine: str


def subjects() -> dict[str, Subject]:
    """All of them by number, in the order of the page."""
    parts = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return {number: Subject(*row) for part in _PARTS for number, row in parts[part].items()}


def taught() -> dict[str, list[tuple[str, str]]]:
    """The cells that teach each subject, as (name of the lesson, id of the cell), by subject; none of most is no error.

    Raises:
        ValueError: a tag names no subject.
    """
    found: dict[str, list[tuple[str, str]]] = {number: [] for number in subjects()}
    for lesson in LESSONS.values():
        cells = parse(source_of(lesson.name).read_text(encoding="utf-8"), lesson.name)
        for cell, cell_id in zip(cells, cell_ids(cells), strict=True):
            for subject in filter(None, cell.options.get("seeds", "").split(",")):
                if subject not in found:
                    raise ValueError(f"{lesson.name}, line {cell.line}: {subject!r} is no subject; one is as I5")
                found[subject].append((lesson.name, cell_id))
    return found


def coverage_page() -> str:
    """The page: a line for each subject, with the cells that teach it and the file of the engine that does it."""
    cells, listed = taught(), subjects()
    num_taught = sum(1 for each in cells.values() if each)
    lines = [
        "# Which cell teaches what",
        "",
        f"The course was planned to teach {len(listed)} subjects. {num_taught} of them are taught by a cell so far.",
        "Made by `python -m course.author.coverage`, from `seeds=` in the lesson sources and `subjects.toml` there.",
    ]
    for part, title in _PARTS.items():
        lines += ["", f"## {title}", "", "| | subject | taught in | engine |", "|---|---|---|---|"]
        for number, subject in listed.items():
            if number.startswith(part):
                where = ", ".join(f"[{lesson}]({lesson}.ipynb) `{cell}`" for lesson, cell in cells[number])
                engine = f"[{subject.engine}](../refimpl/{subject.engine})" if subject.engine else ""
                lines.append(f"| {number} | {subject.what} | {where} | {engine} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(coverage_page(), encoding="utf-8")
