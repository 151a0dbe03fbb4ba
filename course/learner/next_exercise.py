"""Where a learner goes on, and the lessons as the list beside the notebooks shows them."""

from __future__ import annotations

from typing import Any

from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import EXERCISES, LESSONS, START, Exercise
from course.curriculum.messages import exercise_title, said
from course.curriculum.own_lessons import own_lessons
from course.learner import progress

__all__ = ["listing", "next_one", "tried"]


def next_one(noted: list[dict[str, Any]]) -> Exercise | None:
    """The exercise that was tried last if it has not passed, else the first that is not done."""
    done = {"passed", "caught_up"}
    open_ones = [each for each in EXERCISES.values() if progress.standing(each.id, noted) not in done]
    last = next(reversed(tried(noted)), "")
    return next((each for each in open_ones if each.id == last), open_ones[0] if open_ones else None)


def tried(noted: list[dict[str, Any]]) -> list[str]:
    """The exercises of all checks, in order."""
    return [str(event.get("exercise", "")) for event in noted if event.get("event") == "check"]


def listing() -> dict[str, Any]:
    """What the list of lessons in JupyterLab shows: `heading`, `start`, `lessons`; unless all have passed, `next`."""
    noted = progress.events()
    rows = []
    for lesson in (*LESSONS.values(), *own_lessons().values()):
        marks = progress.squares(progress.standing(each.id, noted) for each in lesson.exercises)
        title = lesson_title(lesson)
        says = said("start.listed", number=lesson.number, title=title, minutes=lesson.minutes)
        file = f"{lesson.name}.ipynb"
        rows.append({"number": f"L{lesson.number:02d}", "title": title, "file": file, "marks": marks, "says": says})
    start = {"title": said("start.page"), "file": f"{START}.ipynb", "says": said("start.page_says")}
    shown: dict[str, Any] = {"heading": said("start.lessons"), "start": start, "lessons": rows}
    if (chosen := next_one(noted)) is not None:
        lesson = LESSONS[chosen.lesson]
        how = "go_on" if noted else "begin"
        shown["next"] = {
            "file": f"{lesson.name}.ipynb",
            "card": said(f"start.{how}_card", lesson=f"L{lesson.number:02d}"),
            "says": said(f"start.{how}_says", exercise=chosen.id, title=exercise_title(chosen)),
        }
    return shown
