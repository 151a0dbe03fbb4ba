"""Gives the learner copies of the lessons and never touches what the learner wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from course.places import lessons_folder, own_lessons_folder

__all__ = ["LessonsError", "hand_out", "hand_out_all"]

_RECORD = ".lessons.json"
"""In the work folder: the checksum of the published lesson that each copy was made from."""


class LessonsError(RuntimeError):
    """The lessons cannot be handed out; the text says why and what to do."""


def hand_out_all(work: Path) -> list[str]:
    """Bring `work` up to date with the course's lessons and, where there are any, the teacher's own.

    Raises:
        LessonsError: as `hand_out`.
    """
    own = own_lessons_folder()
    folders = [lessons_folder(), *([own] if any(own.glob("*.ipynb")) else [])]
    return [line for folder in folders for line in hand_out(folder, work)]


def hand_out(lessons: Path, work: Path) -> list[str]:
    """Bring the learner's folder `work` up to date with the published `lessons`; return what was done, in words.

    A lesson that is not there yet is copied. A copy that the learner never changed is replaced by a new version. For a
    copy that the learner changed, a new version is put beside it as `NN_name.new.ipynb`.

    Raises:
        LessonsError: there are no lessons, or `work` cannot be written.
    """
    published = sorted([*lessons.glob("[0-9][0-9]_*.ipynb"), *lessons.glob("glossary.md")])
    if not any(each.suffix == ".ipynb" for each in published):
        raise LessonsError(
            f"No lessons found in {lessons}; name the folder that has them in SLUICE_LESSONS, or install Sluice again."
        )
    try:
        work.mkdir(parents=True, exist_ok=True)
        record = _read_record(work)
        said = [line for lesson in published if (line := _hand_out_one(lesson, work, record))]
        new = work / f"{_RECORD}.new"
        new.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
        new.replace(work / _RECORD)
    except OSError as error:
        raise LessonsError(f"Cannot write to {work}: {error.strerror}; name another folder in SLUICE_WORK.") from error
    return said


def _hand_out_one(lesson: Path, work: Path, record: dict[str, str]) -> str | None:
    """Bring one lesson up to date and note it in `record`; return what was done, if anything."""
    copy, now = work / lesson.name, _digest(lesson)
    before = record.get(lesson.name)
    record[lesson.name] = now
    if not copy.exists():
        _copy(lesson, copy)
        return f"{lesson.name}: copied"
    theirs = _digest(copy)
    if theirs == now or before == now or before is None:
        # Without a record nobody knows which version the copy was made from: leave it alone.
        return None
    if theirs == before:
        _copy(lesson, copy)
        return f"{lesson.name}: new version"
    beside = _free_name(copy, now)
    _copy(lesson, beside)
    return f"{lesson.name}: you changed your copy, so the new version is beside it: {beside.name}"


def _copy(lesson: Path, target: Path) -> None:
    """Copy a lesson whole or not at all, and have Jupyter trust the copy: else it hides the stored pictures."""
    new = target.with_name(f".{target.name}.new")
    shutil.copyfile(lesson, new)
    new.replace(target)
    with contextlib.suppress(ValueError):  # what is no notebook, JupyterLab will say
        NotebookNotary().sign(nbformat.read(target, nbformat.NO_CONVERT))


def _free_name(copy: Path, digest: str) -> Path:
    """Return `NN_name.new.ipynb`, or with a number if the learner works in that one already."""
    number = 1
    while True:
        beside = copy.with_suffix(f".new{'' if number == 1 else number}{copy.suffix}")
        if not beside.exists() or _digest(beside) == digest:
            return beside
        number += 1


def _read_record(work: Path) -> dict[str, str]:
    """Read the record; a missing or damaged one is empty, which makes `hand_out` careful."""
    try:
        record = json.loads((work / _RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
