"""Gives the learner copies of the lessons, in the chosen language, and never touches what the learner wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from course.curriculum.languages import language, languages, name_of
from course.curriculum.messages import said
from course.learner.prose import in_language, switched
from course.places import lessons_folder, own_lessons_folder

__all__ = ["LessonsError", "hand_out", "hand_out_all"]

_RECORD = ".lessons.json"
"""In the work folder: the checksum that each copy had when it was made."""


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
    copy that the learner changed, a new version is put beside it as `NN_name.new.ipynb`. When another language is
    chosen, a changed copy gets its prose and its stubs in the cells that are still ours; outputs and other cells stay.

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
        done = [line for lesson in published for line in _hand_out_one(lesson, work, record)]
        new = work / f"{_RECORD}.new"
        new.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
        new.replace(work / _RECORD)
    except OSError as error:
        raise LessonsError(f"Cannot write to {work}: {error.strerror}; name another folder in SLUICE_WORK.") from error
    return done


def _hand_out_one(lesson: Path, work: Path, record: dict[str, str]) -> list[str]:
    """Bring one lesson up to date and note it in `record`; return what was done, if anything."""
    file, published = lesson.name, lesson.read_bytes()
    wanted = in_language(published, lesson.stem, language())
    copy, now, before = work / file, _digest(wanted), record.get(file)
    record[file] = now
    if not copy.exists():
        _put(wanted, copy)
        return [said("lesson.copied", file=file)]
    theirs = copy.read_bytes()
    if _digest(theirs) == now:
        return []
    is_new = before not in (None, now) and before not in [
        _digest(in_language(published, lesson.stem, each)) for each in languages()
    ]
    if _digest(theirs) == before:
        _put(wanted, copy)
        return [said("lesson.new_version" if is_new else "lesson.in_language", file=file, name=name_of(language()))]
    done = []
    if is_new:
        beside = _free_name(copy, now)
        _put(wanted, beside)
        done.append(said("lesson.beside", file=file, other=beside.name))
    # Without a record nobody knows which version the copy was made from: of its cells only those that are ours change.
    if (other := switched(theirs, published, lesson.stem, language())) is not None:
        _change(copy, theirs, other)
        done.append(said("lesson.prose_in_language", file=file, name=name_of(language())))
    return done


def _put(lesson: bytes, target: Path) -> None:
    """Write a lesson whole or not at all, and have Jupyter trust it: else it hides the stored pictures."""
    _write(lesson, target)
    with contextlib.suppress(ValueError):  # what is no notebook, JupyterLab will say
        NotebookNotary().sign(nbformat.read(target, nbformat.NO_CONVERT))


def _change(copy: Path, before: bytes, after: bytes) -> None:
    """Write other prose into a copy; it is as new as it was, and trusted only if it was."""
    times = copy.stat()
    is_trusted = NotebookNotary().check_signature(nbformat.reads(before.decode(), nbformat.NO_CONVERT))
    _write(after, copy)
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))  # whose answer is the newest, is asked of this
    if is_trusted:
        NotebookNotary().sign(nbformat.reads(after.decode(), nbformat.NO_CONVERT))


def _write(content: bytes, target: Path) -> None:
    new = target.with_name(f".{target.name}.new")
    new.write_bytes(content)
    new.replace(target)


def _free_name(copy: Path, digest: str) -> Path:
    """Return `NN_name.new.ipynb`, or with a number if the learner works in that one already."""
    number = 1
    while True:
        beside = copy.with_suffix(f".new{'' if number == 1 else number}{copy.suffix}")
        if not beside.exists() or _digest(beside.read_bytes()) == digest:
            return beside
        number += 1


def _read_record(work: Path) -> dict[str, str]:
    """Read the record; a missing or damaged one is empty, which makes `hand_out` careful."""
    try:
        record = json.loads((work / _RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()
