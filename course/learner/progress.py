"""Progress: an append-only file of events, and every checked source.

`progress.jsonl` holds one JSON object a line. A line is written with a single write under a lock, so
two kernels can write at once; a crash in the middle of a line costs that line and no other. What cannot be
read is left out, said, and kept: nothing here is ever overwritten. Files of two machines are merged by union.
Nothing in it names a person.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES, LESSONS, exercise
from course.curriculum.messages import exercise_title, said
from course.files import AT_ONCE, read_file
from course.learner.courier_process import nudge
from course.learner.membership import is_in_class
from course.places import state_folder

__all__ = [
    "NOT_KEPT", "attempts", "best_status", "events", "is_caught_up", "is_class_mode", "keep_attempt", "latest_check",
    "merge", "progress_text", "record", "record_check", "seed_of_a_check", "squares", "standing", "troubles",
]  # fmt: skip

if TYPE_CHECKING:
    from course.grading.report import Report

_MOST = 1e15
_LEAST_FREE = 4096
_MOST_OF_PROGRESS = 256 * 1024 * 1024
NOT_KEPT = "! This check was not kept: its folder is full or cannot be written; `sluice progress` says which."
_SYMBOLS = {"passed": "✓", "failed": "✗", "error": "✗", "timeout": "✗", "not_started": "○", "caught_up": "◧"}
_WORDS = {"error": "failed", "timeout": "failed"}
_SQUARES = {"passed": "■", "caught_up": "◧"}


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


def record(event: str, **fields: Any) -> bool:
    """Append one event with the time in seconds since 1970, to the disk; whether it is kept.

    A learner on a read-only or full disk can still learn; `progress_text` then says that nothing is kept.
    """
    is_kept = False
    line = json.dumps({"event": event, "time": round(time.time(), 3), **fields}, sort_keys=True) + "\n"
    with contextlib.suppress(OSError), _locked(state_folder()):
        descriptor = os.open(_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | AT_ONCE, 0o644)
        try:
            # After a crash in the middle of a line the next event must start on a line of its own.
            data, before = (b"" if _ends_well() else b"\n") + line.encode(), os.fstat(descriptor).st_size
            is_kept = os.write(descriptor, data) == len(data)
            if not is_kept:
                os.ftruncate(descriptor, before)  # half a line says nothing
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    nudge()
    return is_kept


def record_check(report: Report, source: str | None) -> bool:
    """Append what became of a check, and keep the source that was checked; whether both are kept."""
    is_kept = True
    if source is not None and report.status.value != "not_started":
        is_kept = keep_attempt(report.exercise, source) is not None
    failed = report.failed_rule
    is_noted = record(
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
        **({} if is_kept else {"code_kept": False}),
    )
    return is_kept and is_noted


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
        text = read_file(file, _MOST_OF_PROGRESS).decode("utf-8", errors="replace")
        return [line for line in text.split("\n") if line.strip()]
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
    """Whether it is one that a clock or a count can have; a file may hold any."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_MOST < value < _MOST


def troubles() -> list[str]:
    """What is wrong with the files of progress, in a sentence each; empty if nothing is."""
    found = []
    num_broken = sum(1 for line in _lines(_file()) if _event(line) is None)
    if num_broken:
        lines = "1 line" if num_broken == 1 else f"{num_broken} lines"
        found.append(f"{lines} of {_file()} cannot be read and are left out; they stay in the file.")
    if num_lost := sum(each.get("code_kept") is False for each in events()):
        checks = "1 check" if num_lost == 1 else f"{num_lost} checks"
        found.append(f"The code of {checks} was not kept: the disk was full or could not be written then.")
    place = next(path for path in (_file(), *_file().parents) if path.exists())
    is_one = place.is_file() == (place == _file())  # not a folder in place of the file, nor the reverse
    if not is_one or not os.access(place, os.W_OK):
        found.append(f"Progress is not kept: {place} cannot be written; name another folder in SLUICE_WORK.")
    elif shutil.disk_usage(place if place.is_dir() else place.parent).free < _LEAST_FREE:
        found.append(f"Progress is not kept: the disk of {place} is full; make room, or set SLUICE_WORK to a folder.")
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
            os.utime(kept[-1])  # it is the newest again
            return kept[-1]
        number = int(kept[-1].stem) + 1 if kept else 1
        file = folder / f"{number:04d}.py"
        beside = folder / f".{number:04d}.new"
        try:
            with beside.open("wb") as opened:
                opened.write(raw)
                opened.flush()
                os.fsync(opened.fileno())
            beside.rename(file)  # so that nobody finds half of it
        except OSError:
            beside.unlink(missing_ok=True)
            raise
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
        read_file(file).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True


def best_status(exercise_id: str, found: Sequence[Mapping[str, Any]] | None = None) -> str:
    """ "passed" if it ever passed, else the latest status, else "not_started"."""
    seen = _statuses(exercise_id, events() if found is None else found)
    if "passed" in seen:
        return "passed"
    return seen[-1] if seen and seen[-1] in _SYMBOLS else "not_started"


def _statuses(exercise_id: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(e.get("status")) for e in found if e.get("event") == "check" and e.get("exercise") == exercise_id]


def is_caught_up(exercise_id: str, found: Sequence[Mapping[str, Any]] | None = None) -> bool:
    """Whether our part stands in for this exercise, since the learner came late."""
    history = events() if found is None else found
    return any(e.get("event") == "catchup" and e.get("exercise") == exercise_id for e in history)


def standing(exercise_id: str, found: Sequence[Mapping[str, Any]] | None = None) -> str:
    """`best_status`, but "caught_up" where nothing has passed and our part stands in."""
    history = events() if found is None else found
    status = best_status(exercise_id, history)
    return "caught_up" if status != "passed" and is_caught_up(exercise_id, history) else status


def squares(standings: Iterable[str]) -> str:
    """A square for each: ■ passed, ◧ our part stands in, □ neither."""
    return "".join(_SQUARES.get(each, "□") for each in standings)


def latest_check(exercise_id: str) -> Mapping[str, Any] | None:
    """The last check of this exercise, as it was noted; None if there was none."""
    found = [e for e in events() if e.get("event") == "check" and e.get("exercise") == exercise_id]
    return found[-1] if found else None


def progress_text() -> str:
    """A bar and a list of all lessons and exercises, in words and symbols."""
    found: list[Mapping[str, Any]] = list(events())
    statuses = {each: standing(each, found) for each in EXERCISES}
    num_passed = sum(status == "passed" for status in statuses.values())
    num_given = sum(status == "caught_up" for status in statuses.values())
    counts = {"passed": num_passed, "count": len(statuses), "given": num_given}
    lines = [
        said("progress.head_given" if num_given else "progress.head", squares=squares(statuses.values()), **counts)
    ]
    for lesson in LESSONS.values():
        lines.append(f"L{lesson.number:02d} {lesson_title(lesson)}")
        for each in lesson.exercises:
            status = statuses[each.id]
            failed = said("progress.but") if status == "passed" != _statuses(each.id, found)[-1] else ""
            words = said(f"progress.{_WORDS.get(status, status)}")
            of = {"sign": _SYMBOLS[status], "exercise": each.id, "title": exercise_title(each)}
            lines.append(said("progress.line", words=words + failed, **of))
    return "\n".join(lines + [f"! {trouble}" for trouble in troubles()])
