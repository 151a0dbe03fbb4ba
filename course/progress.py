"""Progress: an append-only file of events, and every checked source.

`progress.jsonl` holds one JSON object a line. A line is written with a single write under a lock, so
two kernels can write at once; a crash in the middle of a line costs that line and no other. What cannot be
read is left out, said, and kept: nothing here is ever overwritten. Files of two machines are merged by union.
Nothing in it names a person.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.classroom.courier import nudge
from course.classroom.membership import is_in_class
from course.manifest import DEFAULT_SEED, EXERCISES, LESSONS, exercise
from course.places import state_folder

__all__ = [
    "attempts", "best_status", "events", "is_class_mode", "keep_attempt", "latest_check", "merge", "progress_text",
    "record", "record_check", "seed_of_a_check", "troubles",
]  # fmt: skip

if TYPE_CHECKING:
    from course.grading.report import Report

_SYMBOLS = {"passed": "✓", "failed": "✗", "error": "✗", "timeout": "✗", "not_started": "○"}
_WORDS = {"passed": "passed", "failed": "tried", "error": "tried", "timeout": "tried", "not_started": "not started"}


def _file() -> Path:
    return state_folder() / "progress.jsonl"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; without file locks (Windows), O_APPEND alone must do."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def record(event: str, **fields: Any) -> None:
    """Append one event with the time in seconds since 1970; a folder that cannot be written is not an error.

    A learner on a read-only disk can still learn; `progress_text` then says that nothing is kept.
    """
    line = json.dumps({"event": event, "time": round(time.time(), 3), **fields}, sort_keys=True) + "\n"
    with contextlib.suppress(OSError), _locked(state_folder()):
        descriptor = os.open(_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            # After a crash in the middle of a line the next event must start on a line of its own.
            os.write(descriptor, ((b"" if _ends_well() else b"\n") + line.encode()))
        finally:
            os.close(descriptor)
    nudge()


def record_check(report: Report, source: str | None) -> None:
    """Append what became of a check, and keep the source that was checked."""
    if source is not None and report.status.value != "not_started":
        keep_attempt(report.exercise, source)
    failed = report.failed_rule
    record(
        "check",
        lesson=exercise(report.exercise).lesson,
        exercise=report.exercise,
        status=report.status.value,
        rule=failed.id if failed else None,
        code_hash=report.code_hash,
        vectors=report.vectors,
        seed=report.seed,
        rules_passed=sum(rule.status.value == "passed" for rule in report.rules),
        rules_total=len(report.rules),
    )


def is_class_mode() -> bool:
    """Whether a class is held (the learner is in one, or SLUICE_MODE=class): hints come rung by rung."""
    return os.environ.get("SLUICE_MODE") == "class" or is_in_class()


def seed_of_a_check() -> int:
    """The seed of a check that nobody named one for: always the same, in class mode a fresh one."""
    return random.SystemRandom().randrange(1, 1_000_000) if is_class_mode() else DEFAULT_SEED


def _ends_well() -> bool:
    with _file().open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"


def events(file: Path | None = None) -> list[dict[str, Any]]:
    """All readable events, oldest first; broken lines are skipped."""
    return [event for line in _lines(file or _file()) if (event := _event(line)) is not None]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _event(line: str) -> dict[str, Any] | None:
    """What a line says; None if it cannot be read. A field that has to be a number is one, or 0."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    wrong = [name for name in ("time", "rung") if name in event and not _is_number(event[name])]
    return event | dict.fromkeys(wrong, 0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def troubles() -> list[str]:
    """What is wrong with the files of progress, in a sentence each; empty if nothing is."""
    found = []
    num_broken = sum(1 for line in _lines(_file()) if _event(line) is None)
    if num_broken:
        lines = "1 line" if num_broken == 1 else f"{num_broken} lines"
        found.append(f"{lines} of {_file()} cannot be read and are left out; they stay in the file.")
    place = next(path for path in (_file(), *_file().parents) if path.exists())
    is_one = place.is_file() == (place == _file())  # not a folder in place of the file, nor the reverse
    if not is_one or not os.access(place, os.W_OK):
        found.append(f"Progress is not kept: {place} cannot be written; name another folder in SLUICE_WORK.")
    return found


def merge(*files: Path) -> list[dict[str, Any]]:
    """The union of several progress files, by time, without doubles."""
    union = {json.dumps(event, sort_keys=True): event for file in files for event in events(file)}
    return sorted(union.values(), key=lambda event: float(event.get("time", 0)))


def keep_attempt(exercise_id: str, source: str) -> Path | None:
    """Keep a checked source as attempts/<id>/NNNN.py; the same text twice in a row is kept once."""
    folder = state_folder() / "attempts" / exercise_id
    raw = source.encode(errors="replace")
    with contextlib.suppress(OSError), _locked(state_folder()):
        folder.mkdir(parents=True, exist_ok=True)
        kept = _numbered(folder)
        if kept and kept[-1].read_bytes() == raw:
            return kept[-1]
        number = int(kept[-1].stem) + 1 if kept else 1
        file = folder / f"{number:04d}.py"
        file.write_bytes(raw)
        return file
    return None


def attempts(exercise_id: str) -> list[Path]:
    """The kept sources of one exercise, oldest first; what is damaged is left out."""
    return [file for file in _numbered(state_folder() / "attempts" / exercise_id) if _is_text(file)]


def _numbered(folder: Path) -> list[Path]:
    """The files NNNN.py of this folder by number."""
    return sorted((file for file in folder.glob("*.py") if file.stem.isdecimal()), key=lambda file: int(file.stem))


def _is_text(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True


def best_status(exercise_id: str, found: Sequence[Mapping[str, Any]] | None = None) -> str:
    """ "passed" if it ever passed, else the latest status, else "not_started"."""
    history = events() if found is None else found
    seen = [str(e.get("status")) for e in history if e.get("event") == "check" and e.get("exercise") == exercise_id]
    if "passed" in seen:
        return "passed"
    return seen[-1] if seen and seen[-1] in _SYMBOLS else "not_started"


def latest_check(exercise_id: str) -> Mapping[str, Any] | None:
    """The last check of this exercise, as it was noted; None if there was none."""
    found = [e for e in events() if e.get("event") == "check" and e.get("exercise") == exercise_id]
    return found[-1] if found else None


def progress_text() -> str:
    """A bar and a list of all lessons and exercises, in words and symbols."""
    found: list[Mapping[str, Any]] = list(events())
    statuses = {each: best_status(each, found) for each in EXERCISES}
    num_passed = sum(status == "passed" for status in statuses.values())
    bar = "".join("■" if status == "passed" else "□" for status in statuses.values())
    lines = [f"{bar}  {num_passed} of {len(statuses)} exercises passed"]
    for lesson in LESSONS.values():
        lines.append(f"L{lesson.number:02d} {lesson.title}")
        for each in lesson.exercises:
            status = statuses[each.id]
            lines.append(f"  {_SYMBOLS[status]} {each.id} {each.title}: {_WORDS[status]}")
    return "\n".join(lines + [f"! {trouble}" for trouble in troubles()])
