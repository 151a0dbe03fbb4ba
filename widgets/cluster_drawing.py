"""The drawing of a cluster: leaders above, then TaskManagers with their slots, then jobs."""

from __future__ import annotations

from widgets.cluster_words import JOB_STATES, MEMBER_STATES, SLOT_STATES
from widgets.facts import MARGIN, Drawing, Pen, still
from widgets.svg import element, text_element
from widgets.view_models import Model

__all__ = ["CARD_ROOM", "JOB_ROOM", "MOST_JOBS", "MOST_SLOTS", "MOST_TASK_MANAGERS", "SLOT_ROOM", "cluster_drawing"]

MOST_JOBS, MOST_TASK_MANAGERS, MOST_SLOTS = 3, 8, 4
_CARD, _GAP = 456, 16
_WIDTH = 2 * _CARD + _GAP + 2 * MARGIN
_HEAD, _SLOT, _JOB = 100, 24, 82
CARD_ROOM, SLOT_ROOM, JOB_ROOM = _CARD - 66, _CARD - 54, _WIDTH - 2 * MARGIN - 66


def cluster_drawing(pen: Pen, model: Model) -> Drawing:
    """All of it, at places that stay while the cluster changes."""
    parts = [pen.words(MARGIN, 12, "all", "name"), pen.words(MARGIN, 34, "former", "failed")]
    top = 46.0
    for number, leader in enumerate(model["leaders"]):
        parts.append(_member(pen, f"l{number}", leader["address"], _column(number), top, _HEAD))
    top += _HEAD + 14
    shown = model["task_managers"][:MOST_TASK_MANAGERS]
    for at in range(0, len(shown), 2):
        row = list(enumerate(shown[at : at + 2], at))
        tall = max(_height(part) for _, part in row)
        for number, part in row:
            x = _column(number)
            parts.append(_member(pen, f"t{number}", part["address"], x, top, tall))
            parts.append(_slots(pen, f"t{number}", part, x, top + _HEAD))
        top += tall + 14
    if more := len(model["task_managers"]) - len(shown):
        parts.append(text_element(MARGIN, top + 4, f"… and {more} more TaskManagers, in the table", "soft"))
        top += 20
    parts.append(_jobs(pen, top + 14))
    bottom = top + 70 + MOST_JOBS * _JOB
    return Drawing("".join(parts) + _key(bottom), _WIDTH, bottom + 78)


def _column(number: int) -> float:
    return MARGIN + number % 2 * (_CARD + _GAP)


def _height(part: Model) -> float:
    more = len(part["slots"]) > MOST_SLOTS
    return _HEAD + _SLOT * min(MOST_SLOTS, len(part["slots"])) + (24 if more else 8)


def _member(pen: Pen, name: str, address: str, x: float, y: float, tall: float) -> str:
    parts = [
        element("rect", x=x, y=y, width=_CARD, height=tall, rx=10, class_="card"),
        pen.group(f"{name} state", MEMBER_STATES, _lamp(x + 14, y + 14, 22, 30)),
        text_element(x + 50, y + 27, address, "name"),
        pen.words(x + _CARD - 14, y + 27, f"{name} word", "end"),
        pen.words(x + 50, y + 48, f"{name} leader", "small soft"),
        pen.words(x + 50, y + 66, f"{name} links", "small soft"),
        pen.words(x + 50, y + 84, f"{name} fence", "small soft"),
    ]
    return element("g", "".join(parts), data_member=address)


def _slots(pen: Pen, name: str, part: Model, x: float, y: float) -> str:
    parts = []
    for number in range(min(MOST_SLOTS, len(part["slots"]))):
        at = y + number * _SLOT
        parts.append(pen.group(f"{name}.{number} state", SLOT_STATES, _lamp(x + 19, at, 14, 16)))
        parts.append(pen.words(x + 50, at + 13, f"{name}.{number} word", "small"))
    if (more := len(part["slots"]) - MOST_SLOTS) > 0:
        words = f"… and {more} more slots, in the table"
        parts.append(text_element(x + 50, y + MOST_SLOTS * _SLOT + 13, words, "small soft"))
    return "".join(parts)


def _jobs(pen: Pen, top: float) -> str:
    tall = 40 + MOST_JOBS * _JOB
    parts = [
        element("rect", x=MARGIN, y=top, width=_WIDTH - 2 * MARGIN, height=tall, rx=10, class_="card"),
        pen.words(MARGIN + 14, top + 26, "jobs", "soft"),
    ]
    for number in range(MOST_JOBS):
        at, name = top + 38 + number * _JOB, f"j{number}"
        parts += [
            pen.group(f"{name} state", JOB_STATES, _lamp(MARGIN + 14, at + 2, 22, 30)),
            pen.words(MARGIN + 50, at + 15, f"{name} name", "name"),
            pen.words(_WIDTH - MARGIN - 14, at + 15, f"{name} word", "end"),
            pen.words(MARGIN + 50, at + 34, f"{name} tasks", "small soft"),
            pen.words(MARGIN + 50, at + 51, f"{name} master", "small soft"),
            pen.words(MARGIN + 50, at + 68, f"{name} links", "small soft"),
        ]
    return "".join(parts)


def _lamp(x: float, y: float, width: float, height: float) -> str:
    box = {"x": x, "y": y, "width": width, "height": height, "rx": 4}
    return element("rect", class_="lamp", **box) + element("rect", class_="lamp over", **box)


_KEYS = (
    ("a member:", MEMBER_STATES, ("there", "paused", "believes to lead", "nobody leads yet", "gone")),
    ("a slot:", SLOT_STATES, ("free", "given", "used", "waits for its last tasks", "gone")),
    ("a job:", JOB_STATES[:-1], ("running", "on its way to another state", "finished", "failed", "cancelled")),
)


def _key(y: float) -> str:
    parts = []
    for line, (what, states, words) in enumerate(_KEYS):
        top, x = y + 22 * line, MARGIN + 76.0
        parts.append(text_element(MARGIN, top + 13, what, "small soft"))
        for number, word in enumerate(words):
            lamp = Pen({"state": number}).group("state", states, _lamp(x, top, 14, 16))
            parts.append(still(lamp) + text_element(x + 22, top + 13, word, "small"))
            x += 50 + 7.4 * len(word)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
