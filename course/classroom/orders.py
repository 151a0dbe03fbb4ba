"""What an instructor can decide for all, read and checked: the same from the page, the widget and the terminal."""

from __future__ import annotations

from typing import Any

from course.classroom.class_file import ClassError
from course.curriculum.manifest import EXERCISES, LESSONS

__all__ = ["ordered", "said"]


def ordered(body: object) -> dict[str, Any]:
    """A decision with the fields it needs and no other.

    Raises:
        ClassError: there is no such decision.
    """
    if not isinstance(body, dict):
        raise ClassError("a decision is an object with a kind")
    kind, exercise = body.get("kind"), body.get("exercise")
    if kind == "catchup":
        lesson = body.get("lesson")
        if type(lesson) is not int or lesson not in LESSONS:
            raise ClassError(f"there is no lesson {lesson}; there are {', '.join(map(str, LESSONS))}")
        return {"kind": kind, "lesson": lesson}
    if kind not in ("unlock", "reset", "checkpoint"):
        raise ClassError("a decision is one of unlock, reset, checkpoint, catchup")
    if not isinstance(exercise, str) or exercise not in EXERCISES:
        raise ClassError(f"there is no exercise {exercise}; there are {', '.join(EXERCISES)}")
    if kind != "unlock":
        return {"kind": kind, "exercise": exercise}
    rung = body.get("rung")
    if type(rung) is not int or not 0 <= rung <= 5:
        raise ClassError("hints have rungs 1 to 5; 0 locks them again")
    return {"kind": kind, "exercise": exercise, "rung": rung}


def said(order: dict[str, Any]) -> str:
    """A decision as a sentence for the instructor."""
    match order["kind"]:
        case "unlock" if order["rung"]:
            return f"✓ hints of {order['exercise']} are open to rung {order['rung']} for all."
        case "unlock":
            return f"✓ hints of {order['exercise']} open one by one again, with changed code or after five minutes."
        case "reset":
            return f"✓ {order['exercise']} starts afresh for all; attempts are kept."
        case "checkpoint":
            return f"✓ the class is at {order['exercise']} now."
        case _:
            return f"✓ all are caught up to lesson {order['lesson']}: what they have not passed before it is opened."
