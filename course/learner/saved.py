"""What of an answer is on the disk, and since when: the saved notebook, or what was checked after it was saved.

A notebook that is open and not saved holds less than what was checked in it. So the newer of the two counts, and
whoever reads one says which, with the time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from course.curriculum.manifest import EXERCISES
from course.files import read_file
from course.grading.judge import code_hash
from course.grading.sources import is_stub
from course.learner import progress
from course.learner.answers import lesson_notebook, source_in
from course.places import state_folder

__all__ = ["Saved", "clock", "newest", "progress_report"]


@dataclass(frozen=True, slots=True)
class Saved:
    """A source, or None, and where it was read, in words."""

    source: str | None
    said: str


def clock(seconds: float) -> str:
    """A time as it is said to people, by this machine's clock."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "at a time no clock has"


def newest(exercise_id: str) -> Saved:
    """The newest source of this answer: in the learner's saved notebook, or the last one that was checked."""
    notebook = lesson_notebook(exercise_id)
    saved_at, saved = _in_notebook(exercise_id, notebook)
    kept = progress.attempts(exercise_id)
    if not kept:
        if saved is not None:
            return Saved(saved, f"{notebook}, saved {clock(saved_at)}")
        return Saved(None, f"nothing: {_why_not(exercise_id, notebook, saved_at)}, and nothing was checked yet")
    checked, checked_at = kept[-1].read_text(encoding="utf-8"), kept[-1].stat().st_mtime
    if saved is not None and (saved_at >= checked_at or code_hash(saved) == code_hash(checked)):
        return Saved(saved, f"{notebook}, saved {clock(saved_at)}")
    last = f"what you checked last, {clock(checked_at)}"
    if saved is None:
        return Saved(checked, f"{last}; {_why_not(exercise_id, notebook, saved_at)}")
    return Saved(checked, f"{last}; {notebook.name} was saved before that, {clock(saved_at)}: save it to check it")


def _in_notebook(exercise_id: str, notebook: Path) -> tuple[float, str | None]:
    """When it was saved (0 if it cannot be read), and the answer in it."""
    try:
        return notebook.stat().st_mtime, source_in(read_file(notebook).decode("utf-8-sig"), notebook, exercise_id)
    except (OSError, UnicodeDecodeError):
        return 0.0, None


def _why_not(exercise_id: str, notebook: Path, saved_at: float) -> str:
    if not saved_at:
        return f"there is no {notebook.name} to read in {notebook.parent}"
    return f'{notebook.name}, saved {clock(saved_at)}, has no cell with exercise("{exercise_id}")'


def _read() -> list[str]:
    """Where the list of progress comes from, and which notebooks hold another answer than it speaks of."""
    found = progress.events()
    last = {str(each.get("exercise")): each for each in found if each["event"] == "check"}
    file = state_folder() / "progress.jsonl"
    if not last:
        return [f"Nothing was checked yet; checks are noted in {file}."]
    latest = max(last.values(), key=lambda each: float(each.get("time", 0)))
    said = [f"Read from {file}; the last check in it: {latest.get('exercise')}, {clock(float(latest.get('time', 0)))}."]
    for exercise_id in EXERCISES:
        notebook = lesson_notebook(exercise_id)
        saved_at, source = _in_notebook(exercise_id, notebook) if notebook.is_file() else (0.0, None)
        noted = last.get(exercise_id, {})
        if source is None or code_hash(source) == noted.get("code_hash") or is_stub(exercise_id, source):
            continue
        where = f"{exercise_id}: {notebook.name}, saved {clock(saved_at)}"
        if saved_at >= float(noted.get("time", 0)):
            said.append(f"{where}, holds an answer that was not checked since.")
        else:
            said.append(f"{where}, is older than your last check, {clock(float(noted.get('time', 0)))}.")
    return said


def progress_report() -> str:
    """What is done, and what says so."""
    return "\n".join([progress.progress_text(), "", *_read()])
