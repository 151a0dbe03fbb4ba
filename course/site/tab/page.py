"""What the page in a tab asks of the engine, the judge and the list of progress. Everything is asked and told as JSON.

A check needs children, which are workers of their own, and here nobody can wait for one. So the judge is asked, and
says which run it needs first; when the page brings that run's transcript, the judge is asked again from the start, and
comes as far as the next run. It does the same each time, because the same transcripts make it do so.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from course.curriculum.languages import language
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import DEFAULT_SEED, EXERCISES, LESSONS, exercise
from course.curriculum.messages import exercise_title, said
from course.curriculum.seams import child_job
from course.curriculum.specimens import zoo
from course.curriculum.stubs import stub
from course.grading.judge import judge
from course.grading.loading import check_of
from course.grading.runner import Grader, GraderError, Limits, lent
from course.grading.transcripts import Transcript, parsed
from course.learner import progress
from course.learner.answers import without_magics
from course.places import state_folder
from course.site.tab import stand_in

__all__ = ["answer"]

_LIMITS = Limits(run_seconds=600.0)  # there each case has its rounds; of time only the page knows how it goes by


class _WantedError(BaseException):
    """The judge needs a run whose transcript is not there yet; no `except Exception` of a check may swallow it."""


class _Answered:
    """A child whose transcript is there, or is asked for."""

    def __init__(self, transcripts: Mapping[str, Transcript]) -> None:
        self._transcripts = transcripts
        self._order = ""

    def send(self, order: Mapping[str, Any], _limits: Limits) -> None:
        self._order = json.dumps(order)

    def finish(self) -> Transcript:
        if self._order not in self._transcripts:
            raise _WantedError(self._order)
        return self._transcripts[self._order]

    def abandon(self) -> None:
        """There is nothing to end here."""


class _Checking:
    """One check, from run to run."""

    def __init__(self, exercise_id: str, source: str) -> None:
        self.exercise, self.source = exercise_id, source
        self.wanted = ""
        self._transcripts: dict[str, Transcript] = {}
        host = _Answered(self._transcripts)
        self._grader = Grader(child_job(exercise_id), _LIMITS, host=lambda _job: host)

    def take(self, lines: str, is_over: bool) -> None:
        """Take what the wanted run has said, and whether its time was up."""
        transcript = parsed(lines.encode())
        transcript.timed_out = is_over
        self._transcripts[self.wanted] = transcript

    def go(self) -> dict[str, Any]:
        """The run that is wanted next; or, in the end, the report."""
        try:
            report = judge(self.exercise, self.source, DEFAULT_SEED, grader=self._grader)
        except _WantedError as wanted:
            self.wanted = str(wanted)
            return {"order": self.wanted}
        report.num_specimens = len(zoo(self.exercise))
        progress.record_check(report, self.source)
        return {
            "text": report.in_terminal(), "status": report.status.value, "report": report.as_json(), **_standing()
        }  # fmt: skip


_checking: list[_Checking] = []
_views: dict[int, Any] = {}


def _lessons() -> dict[str, Any]:
    rows = [
        {"number": each.number, "name": each.name, "title": lesson_title(each),
         "exercises": [{"id": one.id, "title": exercise_title(one), "flink": one.flink_name} for one in each.exercises]}
        for each in LESSONS.values() if each.exercises
    ]  # fmt: skip
    return {"lessons": rows, **_standing()}


def _standing() -> dict[str, Any]:
    """How each exercise stands, in the signs of `sluice progress`, and what is to be kept of it."""
    noted = progress.events()
    file = state_folder() / "progress.jsonl"
    standings = {each: progress.standing(each, noted) for each in EXERCISES}
    kept = file.read_text(encoding="utf-8") if file.is_file() else ""
    passed = sum(each == "passed" for each in standings.values())
    return {"standings": standings, "progress": kept, "squares": progress.squares(standings.values()),
            "words": said("tab_says.num_passed", passed=passed, count=len(standings))}  # fmt: skip


def _part(exercise_id: str) -> dict[str, Any]:
    """What an exercise starts from; or why it cannot be done here."""
    found = exercise(exercise_id)
    told: dict[str, Any] = {"id": found.id, "title": exercise_title(found), "flink": found.flink_name}
    try:
        check_of(exercise_id)
    except ImportError as error:
        return {**told, "stub": "", "why_not": said("tab_says.not_here", missing=error.name or error)}
    return {**told, "stub": stub(exercise_id, language()), "why_not": ""}


def _job(exercise_id: str) -> dict[str, Any]:
    """What a worker must know to get ready for checks of this exercise."""
    return {**child_job(exercise_id), **lent()}


def _check(exercise_id: str, source: str) -> dict[str, Any]:
    _checking[:] = [_Checking(exercise_id, without_magics(source))]
    return _checking[0].go()


def _ran(lines: str, is_over: bool) -> dict[str, Any]:
    """The next run or the report, after a run has ended. A child that never came to the code is our trouble."""
    _checking[0].take(lines, is_over)
    return _checking[0].go()


def _take_in(text: str) -> dict[str, Any]:
    """Add the events of a file of progress to those that are here; events that are here already are no more for it."""
    own = state_folder() / "progress.jsonl"
    own.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "progress.jsonl")
        other.write_text(text, encoding="utf-8", errors="replace")
        if text.strip() and not progress.events(other):
            raise GraderError(said("tab_says.no_progress"))
        known = progress.events()
        lines = [json.dumps(each, sort_keys=True) for each in progress.merge(own, other) if each not in known]
    with own.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return _standing()


def _show(source: str) -> dict[str, Any]:
    """Run source that makes `job`, and a view of it that can be stepped."""
    from refimpl.config import Config
    from refimpl.job import StreamEnvironment
    from widgets.queue_view import QueueView
    from widgets.stepper import Stepper

    space: dict[str, Any] = {"Config": Config, "StreamEnvironment": StreamEnvironment, "__name__": "__main__"}
    exec(compile(source, "<your job>", "exec"), space)  # noqa: S102 - it is the reader's own tab
    view: Any = QueueView(Stepper(space["job"]))
    for other in _views.values():
        other.close()
    _views.clear()
    _views[view.number] = view
    return {"view": view.number, **view.state()}


def _hear(number: int, content: Any) -> None:
    if number in _views:
        _views[number].hear(content)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "lessons": _lessons, "part": _part, "job": _job, "check": _check, "ran": _ran, "take_in": _take_in,
    "show": _show, "hear": _hear,
}  # fmt: skip


def answer(name: str, arguments: str) -> str:
    """What the page asked, answered: `{"answer": …}`, or `{"error": …}` in words for whoever sits before it."""
    try:
        return json.dumps({"answer": _ANSWERS[name](*json.loads(arguments))})
    except BaseException as error:  # noqa: BLE001 - the reader's own job may raise anything
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


stand_in.install()
