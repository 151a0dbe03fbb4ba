"""Drawings that move by facts: what a new view needs is a model, facts, a drawing and words, and no JavaScript.

A fact is a named whole number or a few words. The drawing is made once, and each moving part of it carries the
number of the fact it follows; a frame is the values of all facts, in order. `static/facts.js` puts values into the
parts, and knows no view by name, so the live picture cannot differ from the still one.

Rules of this file:
- Facts have the same names in the same order at every moment of a job.
- A part follows one fact: as its words, as its state (one of a few, by number), as its level, as its length, as its
  place, or as a curve.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

from widgets.base import front_end
from widgets.letters import fitting
from widgets.moment_view import MomentView
from widgets.svg import document, element, escape, picture_id, text_element
from widgets.text import failure_text, step_words
from widgets.view_models import Model

__all__ = [
    "GONE",
    "MARGIN",
    "Drawing",
    "FactView",
    "Facts",
    "Pen",
    "Table",
    "cards",
    "curve_path",
    "paragraph",
    "still",
]

Facts = dict[str, str | int]

Table = tuple[str, list[str], list[list[Any]]]
"""A caption, the heads of columns, and rows; the first cell of a row is its head. A cell is words, or what a pen's
`cell` gives."""

MARGIN = 20
GONE = -1  # the state of shapes that are not there
_TOP = 74
_MOMENT = 700  # the room below the title, which every picture has
_MAX_CARDS = 12


@dataclass(frozen=True, slots=True)
class Drawing:
    """The body of a picture below its heading, and its size."""

    body: str
    width: float
    height: float


class Pen:
    """Draws parts that follow facts, as they are now."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._number = {name: number for number, name in enumerate(facts)}

    def words(self, x: float, y: float, fact: str, class_: str = "", before: str = "", after: str = "") -> str:
        """The value of a fact as words at a point; nothing at all while it is empty."""
        value = self._facts[fact]
        text = f"{before}{value}{after}" if value != "" else ""
        return text_element(
            x,
            y,
            text,
            class_,
            data_fact=self._number[fact],
            data_as="words",
            data_before=before or None,
            data_after=after or None,
        )

    def name(self, fact: str, after: str = "") -> str:
        """The value of a fact as what a pointer or a screen reader is told of the shape around."""
        title = element("title", "\0", data_fact=self._number[fact], data_as="words", data_after=after or None)
        return title.replace("\0", escape(f"{self._facts[fact]}{after}"))

    def group(self, fact: str, states: Sequence[str], body: str, **attributes: object) -> str:
        """Shapes whose look is that of the fact's state; its value is a number in `states`, or `GONE`."""
        state = int(self._facts[fact])
        return element(
            "g",
            body,
            data_fact=self._number[fact],
            data_as="state",
            data_states=" ".join(states),
            data_state="absent" if state == GONE else states[state],
            **attributes,
        )

    def level(self, fact: str, most: int, x: float, y: float, width: float, height: float, class_: str) -> str:
        """A rectangle that fills from below, all of it when the fact is `most`."""
        tall = height * min(1.0, int(self._facts[fact]) / max(1, most))
        return element(
            "rect",
            x=x,
            width=width,
            y=y + height - tall,
            height=tall,
            rx=3,
            class_=class_,
            data_fact=self._number[fact],
            data_as="level",
            data_most=max(1, most),
            data_bottom=y + height,
            data_tall=height,
        )

    def length(self, fact: str, most: int, x: float, y: float, width: float, height: float, class_: str) -> str:
        """A rectangle that fills from the left, all of it when the fact is `most`."""
        return element(
            "rect",
            x=x,
            width=width * min(1.0, int(self._facts[fact]) / max(1, most)),
            y=y,
            height=height,
            class_=class_,
            data_fact=self._number[fact],
            data_as="length",
            data_most=max(1, most),
            data_full=width,
        )

    def moving(self, fact: str, columns: int, step_x: int, step_y: int, body: str) -> str:
        """Shapes drawn at place 0 of a grid that stand at the place the fact says; below 0 they are not there."""
        place = int(self._facts[fact])
        at = f"translate({place % columns * step_x} {place // columns * step_y})" if place >= 0 else None
        return element(
            "g",
            body,
            data_fact=self._number[fact],
            data_as="place",
            data_columns=columns,
            data_dx=step_x,
            data_dy=step_y,
            data_state="here" if place >= 0 else "absent",
            transform=at,
        )

    def curve(self, fact: str, x: float, step: float, bottom: float, class_: str) -> str:
        """A line through heights above `bottom`, `step` apart; the fact is the heights in words, `-` for none."""
        return element(
            "path",
            d=curve_path(str(self._facts[fact]), x, step, bottom),
            class_=class_,
            data_fact=self._number[fact],
            data_as="curve",
            data_x=x,
            data_step=step,
            data_bottom=bottom,
        )

    def cell(self, fact: str, states: Sequence[str] = ()) -> list[Any]:
        """The value of a fact, or the word of its state, as a cell of a table."""
        return [self._number[fact], *states]


class FactView(MomentView):
    """A view of a job that is drawn by facts.

    A subclass has a `kind`, for style and tests, and gives `model_of`, `facts_of`, `draw`, `words_of`, `status_of`
    and `tables_of`, pure functions all of them; and `styles` if its shapes need more than the shared ones.
    """

    _esm = front_end("facts")
    kind = ""
    styles: tuple[str, ...] = ("facts.css",)
    facts_of: Callable[[Model], Facts]
    draw: Callable[[Pen, Model], Drawing]
    words_of: Callable[[Model], list[str]]
    status_of: Callable[[Model], str]
    tables_of: Callable[[Pen, Model], list[Table]]

    @staticmethod
    def moment_words(model: Model) -> str:
        """Which moment this is."""
        return step_words(model)

    def facts(self, model: Model) -> Facts:
        """All facts of a moment."""
        moment = self.moment_words(model)
        status = f"{moment}: {self.status_of(model)}"
        return {"moment": fitting(moment, _MOMENT, "soft"), "status": status, **self.facts_of(model)}

    def text_of(self, model: Model, title: str, error: str) -> str:
        failed = [failure_text(error, most=400)] if error else []
        return "\n".join([f"{title}: {self.moment_words(model)}", *failed, *self.words_of(model)])

    def svg_of(self, model: Model, title: str, error: str) -> str:
        pen = Pen(self.facts(model))
        drawing = self.draw(pen, model)
        heading = text_element(MARGIN, 34, title, "big") + pen.words(MARGIN, 56, "moment", "soft")
        height = _TOP + drawing.height
        if error:
            heading += text_element(MARGIN, height + 8, failure_text(error, most=int(drawing.width / 7.2)), "failed")
            height += 24
        id_ = picture_id(self.kind, json.dumps([title, model, error], sort_keys=True))
        body = element("g", drawing.body, transform=f"translate(0 {_TOP})")
        words = self.text_of(model, title, error)
        return document(id_, drawing.width, height, title, words, heading + body, *self.styles)

    def frame_of(self, model: Model) -> list[Any]:
        return [model["num_steps"], model["time_ms"], *self.facts(model).values()]

    def _for_browser(self, first: Model) -> Model:
        pen = Pen(self.facts(first))
        return {"kind": self.kind, "status": pen.cell("status")[0], "tables": self.tables_of(pen, first)}

    def _pack_all(self) -> Any:
        """The first frame, and of each later one only what has changed."""
        frames = self._all_frames()
        changes = []
        for before, after in pairwise(frames):
            moved = [n for n, value in enumerate(after) if value != before[n]]
            changes.append([part for number in moved for part in (number, after[number])])
        return {"first": frames[0], "changes": changes}


def curve_path(heights: str, x: float, step: float, bottom: float) -> str:
    """The same as `curve` in `static/facts.js`."""
    path, is_down = "", False
    for place, height in enumerate(heights.split()):
        if height != "-":
            path += f"{'L' if is_down else 'M'}{x + place * step:g} {bottom - int(height):g}"
        is_down = height != "-"
    return path or "M0 0"


def still(drawn: str) -> str:
    """A drawn part as it stands in the key of a picture: it looks like a moving one and follows nothing."""
    return drawn.replace("data-fact=", "data-key=")


def cards(
    tasks: Sequence[Model], draw: Callable[[int, Model, float], tuple[str, float]], top: float
) -> tuple[str, float]:
    """Tasks one below the other from `top` on, each as high as `draw` says, and where they end; of many the first."""
    parts, y = [], top
    for number, task in enumerate(tasks[:_MAX_CARDS]):
        drawn, height = draw(number, task, y)
        parts.append(drawn)
        y += height + 10
    if (more := len(tasks) - _MAX_CARDS) > 0:
        parts.append(text_element(MARGIN, y + 8, f"… and {more} more tasks, in the table", "soft"))
        y += 22
    return "".join(parts), y


def paragraph(words: str) -> Drawing:
    """Why there is nothing to see, in lines that fit."""
    lines = wrap(words, 100)
    body = [text_element(MARGIN, 20 + 22 * number, line, "name") for number, line in enumerate(lines)]
    return Drawing("".join(body), 900, 40 + 22 * len(lines))
