"""The drawing of a job graph: tasks with their operators and subtasks, and the exchanges between them."""

from __future__ import annotations

from itertools import pairwise

from widgets.facts import MARGIN, Drawing, Pen, still
from widgets.job_layout import (
    CARD,
    HEAD,
    MAX_SUBTASKS,
    OPERATOR,
    SUBTASK,
    Layout,
    Path,
    height_of,
    is_split,
    num_drawn,
    top_of_subtasks,
)
from widgets.svg import element, escape, name_element, text_element
from widgets.text import PROGRESS_SYMBOL, PROGRESS_WORD
from widgets.view_models import Model

__all__ = ["PROGRESS", "WIRES", "WIRE_WORDS", "job_drawing"]

PROGRESS = ("absent", "planned", "made", "idle", "backpressured", "done")
WIRES = ("absent", "quiet", "queued", "stuck", "ended")
WIRE_WORDS = {
    "quiet": "nothing waits",
    "queued": "data waits",
    "stuck": "▲ data waits, no buffer left",
    "ended": "ended",
}
_BOX = 26
_ROWS, _ROWS_TIMED = (17, 35), (14, 29, 44)  # where the lines of a subtask stand, below its top


def job_drawing(pen: Pen, model: Model) -> Drawing:
    """The graph of a job, and what its marks mean."""
    layout = Layout(model)
    parts = [_exchange(pen, number, model, layout) for number in range(len(model["edges"]))]
    parts += [_vertex(pen, number, model, *layout.places[number]) for number in range(len(model["vertices"]))]
    return Drawing("".join(parts) + _key(layout.height + 12), max(layout.width, 900), layout.height + 74)


def _vertex(pen: Pen, number: int, model: Model, x: float, y: float) -> str:
    """One task: its frame, its operators, its subtasks."""
    vertex = model["vertices"][number]
    frame = element("rect", x=x, y=y, width=CARD, height=height_of(vertex), rx=12, class_="frame")
    parts = [
        element("title", escape(vertex["name"])),
        pen.group(f"{number} frame", ("loose", "chained"), frame),
        pen.words(x + 14, y + 21, f"{number} head", "small soft"),
    ]
    for place, operator in enumerate(vertex["operators"]):
        top = y + HEAD + place * OPERATOR
        if operator["after"] >= 0:
            above = y + HEAD + operator["after"] * OPERATOR
            parts.append(_call(pen, number, x, top, above, place - operator["after"]))
        parts.append(element("rect", x=x + 14, y=top, width=CARD - 28, height=_BOX, rx=6, class_="box"))
        parts.append(name_element(x + 26, top + 18, operator["name"], CARD - 48, "name"))
    top = y + top_of_subtasks(vertex)
    rows = _ROWS_TIMED if model.get("is_timed") else _ROWS
    parts += [_subtask(pen, number, place, x + 14, top + place * SUBTASK, rows) for place in range(num_drawn(vertex))]
    if model.get("is_timed"):
        parts.append(pen.words(x + CARD - 10, y + 21, f"{number} sampled", "small soft end"))
    if more := len(vertex["subtasks"]) - MAX_SUBTASKS:
        words = f"… and {more} more subtasks" if more > 0 else ""
        parts.append(text_element(x + 14, top + MAX_SUBTASKS * SUBTASK + 14, words, "small soft"))
    return element("g", "".join(parts), data_vertex=number)


def _call(pen: Pen, number: int, x: float, top: float, above: float, steps: int) -> str:
    """What one operator hands on to the next: over the network as written, with a call when chained."""
    middle = x + 40
    path = f"M{middle:g} {top - 16:g}v12" if steps == 1 else f"M{x + 14:g} {above + 13:g}h-7V{top + 13:g}h4"
    tip = f"M{middle - 5:g} {top - 6:g}h10l-5 6z" if steps == 1 else f"M{x + 8:g} {top + 8:g}v10l6 -5z"
    words = text_element(middle + 14, top - 4, "a call, no channel", "small soft told") if steps == 1 else ""
    body = element("path", d=path, class_="call") + element("path", d=tip, class_="tip") + words
    return pen.group(f"{number} frame", ("loose", "chained"), body)


def _subtask(pen: Pen, number: int, place: int, x: float, y: float, rows: tuple[int, ...]) -> str:
    lamp = {"x": x, "y": y + 4, "width": 26, "height": 34, "rx": 6}
    body = (
        element("rect", class_="lamp", **lamp)
        + element("rect", class_="lamp over", **lamp)
        + text_element(x + 13, y + 26, str(place), "name mid lit")
    )
    facts = zip(("word", "flow", "load"), rows, ("name", "small soft", "small soft"), strict=False)
    words = [pen.words(x + 38, y + row, f"{number} {fact} {place}", class_) for fact, row, class_ in facts]
    return pen.group(f"{number} sub {place}", PROGRESS, body) + "".join(words)


def _exchange(pen: Pen, number: int, model: Model, layout: Layout) -> str:
    """One exchange: its channels, or one line for all, and what is said of it."""
    edge, path = model["edges"][number], layout.whole(number)
    right, end = path[-1]
    whole = element("path", d=_curve(path), class_="wire thick")
    tip = element("path", d=f"M{right - 2:g} {end - 7:g}l13 7l-13 7z", class_="tip")
    parts = [pen.group(f"{number} edge", WIRES, whole + tip)]
    if is_split(edge, model):
        mine = [item for item in enumerate(model["channels"]) if item[1]["edge"] == number]
        for place, (channel_number, channel) in enumerate(mine):
            line = element("path", d=_curve(layout.line(number, place, channel)), class_="wire")
            parts.append(pen.group(f"channel {channel_number} state", WIRES, line))
    at, top, class_ = layout.words(number)
    parts.append(pen.words(at, top, f"{number} words", class_))
    parts.append(pen.words(at, top + 17, f"{number} load", class_))
    return element("g", "".join(parts), data_edge=number)


def _curve(path: Path) -> str:
    """A line that swings from lane to lane, and is straight within one."""
    drawn = f"M{path[0][0]:g} {path[0][1]:g}"
    for place, ((x, y), (right, bottom)) in enumerate(pairwise(path)):
        middle = (x + right) / 2
        in_lane = f"H{right:g}"
        drawn += in_lane if place % 2 else f"C{middle:g} {y:g} {middle:g} {bottom:g} {right:g} {bottom:g}"
    return drawn


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    for progress in PROGRESS[2:]:  # not of who is lost, which is seldom and said beside each lamp
        pen = Pen({"0 sub 0": PROGRESS.index(progress), "0 word 0": "", "0 flow 0": ""})
        words = f"{PROGRESS_SYMBOL[progress]} {PROGRESS_WORD[progress]}"
        parts.append(still(_subtask(pen, 0, 0, x, y - 6, _ROWS)) + text_element(x + 34, y + 20, words, "small"))
        x += 60 + 7.4 * len(words)
    x = float(MARGIN)
    for state, words in WIRE_WORDS.items():
        line = element("path", d=f"M{x:g} {y + 50:g}h34", class_="wire")
        parts.append(element("g", line, data_state=state) + text_element(x + 44, y + 54, words, "small"))
        x += 66 + 6.6 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
