"""The pipeline map as a drawing: tasks as stations, channels as lines, buffers waiting on them.

Each queue is drawn where it lives, at its producer, with the head nearest to the consumer. The
drawing of any moment holds every slot a queue may show, so that another moment differs only in
`data-` attributes, levels and words. Of a large job some is drawn, and how much is not is said.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from widgets.letters import fitting
from widgets.svg import document, element, escape, picture_id, text_element
from widgets.text import failure_text, fill_word, moment_text, pipeline_text, progress_words, shortened, watermark_text
from widgets.view_models import Model

__all__ = ["MAX_CHANNELS", "MAX_SLOTS", "MAX_SQUARES", "MAX_SUBTASKS", "pipeline_svg"]

MAX_SLOTS = 6
MAX_SQUARES = 12
MAX_SUBTASKS = 8  # drawn of an operator
MAX_CHANNELS = 160  # drawn of all

_STATION = 262
_SIDING = 222
_LINES = 106
_ROW = 56
_PAD = 14
_POOL = 48
_GAP = 24
_MARGIN = 20
_TOP = 74
_SLOT_WIDTH, _SLOT_HEIGHT, _SLOT_STEP = 24, 26, 28
_LEGEND = 62
_LETTER = 7.2  # the width of most letters of a note, so that what stands beside it keeps away


def pipeline_svg(model: Model, title: str = "", error: str = "") -> str:
    """The picture of a job at one moment; `error` is why it failed, if it did."""
    name = title or "Pipeline map"
    shown = _shown(model)
    places, width, height = _layout(model, shown)
    lines = [_line(number, model, shown, places) for number in shown.channels]
    stations = [_station(number, model, places[number]) for number in shown.tasks]
    heading = text_element(_MARGIN, 34, name, "big") + text_element(
        _MARGIN, 56, moment_text(model), "soft", data_field="moment"
    )
    if more := _more(model, shown):
        heading += text_element(_MARGIN, height - _LEGEND - 4, more, "soft")
        height += 22
    if error:
        heading += text_element(_MARGIN, height - 10, failure_text(error, most=int(width / _LETTER)), "failed")
        height += 16
    id_ = picture_id("pipeline", json.dumps([name, model, error], sort_keys=True))
    body = heading + "".join(lines) + "".join(stations) + _legend(height - _LEGEND - (16 if error else 0))
    return document(id_, width, height, name, pipeline_text(model, name, error), body)


# -- where things stand ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shown:
    """The tasks and the channels that are drawn, by number."""

    tasks: tuple[int, ...]
    channels: tuple[int, ...]


def _shown(model: Model) -> _Shown:
    """The first subtasks of each operator, and the first of the channels between them."""
    tasks = tuple(number for number, task in enumerate(model["tasks"]) if task["subtask"] < MAX_SUBTASKS)
    known = set(tasks)
    channels = [
        number
        for number, channel in enumerate(model["channels"])
        if channel["from_task"] in known
        and (channel["to_task"] in known or (channel["to_task"] < 0 and channel["index"] < MAX_SUBTASKS))
    ]
    return _Shown(tasks, tuple(channels[:MAX_CHANNELS]))


def _more(model: Model, shown: _Shown) -> str:
    """How much is not drawn, in words; nothing if all is."""
    missing = {what: len(model[what]) - len(getattr(shown, what)) for what in ("tasks", "channels")}
    words = " and ".join(f"{number} more {what}" for what, number in missing.items() if number)
    return f"… and {words}, in the table" if words else ""


def _station_height(number: int, model: Model, shown: _Shown) -> float:
    num_channels: int = sum(model["channels"][channel]["from_task"] == number for channel in shown.channels)
    num_outputs: int = sum(output["task"] == number for output in model["outputs"])
    own: float = _head_height(model["tasks"][number]) + 78 + num_outputs * _POOL
    return max(own, num_channels * _ROW + 20)


def _head_height(task: Model) -> float:
    return 54 if len(_name_lines(task)) < 3 else 70


def _layout(model: Model, shown: _Shown) -> tuple[dict[int, tuple[float, float, float]], float, float]:
    """For each task its left, top and height; then the size of the whole picture."""
    columns: dict[int, list[int]] = {}
    for number in sorted(shown.tasks, key=lambda number: model["tasks"][number]["row"]):
        columns.setdefault(model["tasks"][number]["column"], []).append(number)
    heights = {number: _station_height(number, model, shown) for number in shown.tasks}
    totals = {
        column: sum(heights[n] for n in numbers) + _GAP * (len(numbers) - 1) for column, numbers in columns.items()
    }
    tallest = max(totals.values())
    places: dict[int, tuple[float, float, float]] = {}
    for column, numbers in columns.items():
        y = _TOP + (tallest - totals[column]) / 2
        for number in numbers:
            places[number] = (_MARGIN + column * (_STATION + _SIDING + _LINES), y, heights[number])
            y += heights[number] + _GAP
    last = max(columns)
    width = 2 * _MARGIN + (last + 1) * _STATION + last * (_SIDING + _LINES)
    return places, max(width, 900), _TOP + tallest + 24 + _LEGEND


# -- stations --------------------------------------------------------------------------------------


def _station(number: int, model: Model, place: tuple[float, float, float]) -> str:
    task, (x, y, height) = model["tasks"][number], place
    outputs = [(n, output) for n, output in enumerate(model["outputs"]) if output["task"] == number]
    left, row = x + _PAD, y + _head_height(task)
    card = element("rect", x=x, y=y, width=_STATION, height=height, rx=10, class_="card")
    swatch = {"x": left, "y": row, "width": 22, "height": 22, "rx": 5}
    band = element("rect", class_="band", **swatch) + element("rect", class_="wash", **swatch)
    ring = element("circle", cx=left + 13, cy=y + 29, r=13, class_="ring") + text_element(
        left + 13, y + 34, str(task["subtask"]), "name mid"
    )
    names = _name_lines(task)
    first = y + (34 if len(names) == 1 else 26)
    words = [text_element(left + 36, first + 17 * number, line, "name") for number, line in enumerate(names)]
    words += [
        text_element(left + 32, row + 16, progress_words(task), "name", data_field="word"),
        text_element(left, row + 43, _flow_words(task), data_field="flow"),
        text_element(left, row + 62, f"watermark {watermark_text(task)}", "soft", data_field="watermark"),
    ]
    pools = [_pool(n, output, left, row + 76 + place * _POOL) for place, (n, output) in enumerate(outputs)]
    name = element("title", escape(task["name"]))
    look = "idle" if task["progress"] == "lost" else task["progress"]
    return element("g", name + card + band + ring + "".join(words + pools), data_task=number, data_progress=look)


def _flow_words(task: Model) -> str:
    return f"records in {task['num_records_in']} · out {task['num_records_out']}"


def _name_lines(task: Model, most: int = 22) -> list[str]:
    """The operators of a chain on at most three lines, cut with `…` where they do not fit."""
    first, *others = task["operators"]
    lines = [first]
    for operator in others:
        if len(lines[-1]) + len(operator) + 3 <= most:
            lines[-1] += f" → {operator}"
        else:
            lines.append(f"→ {operator}")
    if len(lines) > 3:
        lines = [*lines[:2], lines[2][: most - 2] + " …"]
    return [fitting(shortened(line, most), _STATION - _PAD - 44, "name") for line in lines]


def _pool(number: int, output: Model, x: float, y: float) -> str:
    """The buffers of one output as squares: home, queued, being read, not fetched."""
    squares = []
    for index, state in enumerate(square_states(output)):
        at = {"x": x + index * 20, "y": y + 22, "width": 15, "height": 15, "rx": 3}
        shape = element("rect", class_="square", **at) + element("rect", class_="square over", **at)
        squares.append(element("g", shape, data_square=index, data_state=state))
    words = text_element(x, y + 14, pool_words(output), "soft", data_field="pool")
    return element("g", words + "".join(squares), data_out=number)


def square_states(output: Model) -> list[str]:
    """What each square of a pool shows, `MAX_SQUARES` of them."""
    states = (
        ["home"] * output["home_buffers"]
        + ["queued"] * output["queued_buffers"]
        + ["reading"] * output["reading_buffers"]
    )
    states += ["away"] * max(0, output["size_buffers"] - len(states))
    return (states + ["absent"] * MAX_SQUARES)[:MAX_SQUARES]


def pool_words(output: Model) -> str:
    """The same in words, and how many buffers have no square."""
    more = max(0, output["size_buffers"] - MAX_SQUARES)
    return f"{output['home_buffers']} home · {output['queued_buffers']} queued · {output['reading_buffers']} read" + (
        f" · +{more} □" if more else ""
    )


# -- lines -----------------------------------------------------------------------------------------


def _line(number: int, model: Model, shown: _Shown, places: dict[int, tuple[float, float, float]]) -> str:
    """One channel: its siding with the queue, and the line to its consumer."""
    channel = model["channels"][number]
    x, y, height = places[channel["from_task"]]
    mine = [n for n in shown.channels if model["channels"][n]["from_task"] == channel["from_task"]]
    row = y + (height - len(mine) * _ROW) / 2 + mine.index(number) * _ROW + 37
    start, end = x + _STATION, x + _STATION + _SIDING
    path = f"M{start:g} {row:g}H{end:g}"
    tip = ""
    if channel["to_task"] >= 0:
        left, top, tall = places[channel["to_task"]]
        theirs = [n for n in shown.channels if model["channels"][n]["to_task"] == channel["to_task"]]
        port = top + tall * (theirs.index(number) + 1) / (len(theirs) + 1)
        middle = (end + left) / 2
        path += f"C{middle:g} {row:g} {middle:g} {port:g} {left - 14:g} {port:g}"
        tip = element("path", d=f"M{left - 16:g} {port - 8:g}l15 8l-15 8z", class_="tip")
    track = element("path", d=path, class_="gap") + element("path", d=path, class_=f"track c{channel['output'] % 4}")
    slots = [_slot(index, channel, end - 4 - _SLOT_WIDTH - index * _SLOT_STEP, row) for index in range(MAX_SLOTS)]
    more = text_element(start + 8, row + 4, more_words(channel), "small halo", data_field="more")
    label = text_element(start + 12, row - 20, channel_words(channel), "small soft", data_field="channel")
    return element(
        "g",
        track + tip + more + label + "".join(slots),
        data_ch=number,
        data_backlog=channel["backlog_buffers"],
        data_queued=len(channel["queue"]),
        data_ended=int(channel["is_finished"]),
    )


def _slot(index: int, channel: Model, x: float, row: float) -> str:
    """One place of a queue; 0 is the head, nearest to the consumer."""
    entry = channel["queue"][index] if index < len(channel["queue"]) else None
    top, bottom = row - _SLOT_HEIGHT / 2, row + _SLOT_HEIGHT / 2
    share = min(1.0, entry["written_bytes"] / max(1, entry["capacity_bytes"])) if entry else 0.0
    level = _SLOT_HEIGHT * share
    at = {"x": x, "width": _SLOT_WIDTH}
    body = (
        element("title", fill_word(entry) if entry else "free place")
        + element("rect", y=top, height=_SLOT_HEIGHT, rx=4, class_="slot", **at)
        + element("rect", y=bottom - level, height=level, rx=4, class_="level", **at)
        + element("rect", y=bottom - level, height=level, rx=4, class_="mesh", **at)
        + element("rect", y=top, height=_SLOT_HEIGHT, rx=4, class_="edge", **at)
        + element("path", d=f"M{x + 12:g} {top:g}l13 13l-13 13l-13 -13z", class_="event")
    )
    return element("g", body, data_slot=index, data_bottom=bottom, data_tall=_SLOT_HEIGHT, data_state=slot_state(entry))


def slot_state(entry: Model | None) -> str:
    """`none`, `open`, `finished` or `event`."""
    if entry is None:
        return "none"
    return "event" if entry["is_event"] else "finished" if entry["is_finished"] else "open"


def more_words(channel: Model) -> str:
    """How many queued buffers have no slot."""
    more = len(channel["queue"]) - MAX_SLOTS
    return f"+{more}" if more > 0 else ""


def channel_words(channel: Model) -> str:
    """Backlog, sent bytes and marks of a channel."""
    marks = [
        word
        for word, key in (("flush", "is_flush_requested"), ("blocked", "is_blocked"), ("ended", "is_finished"))
        if channel[key]
    ]
    return " · ".join([f"backlog {channel['backlog_buffers']}", f"sent {channel['num_bytes_total']} B", *marks])


# -- the key ---------------------------------------------------------------------------------------


def _legend(y: float) -> str:
    """What the marks mean, in one row of queue places and one of pool squares."""
    parts, x = [text_element(_MARGIN, y + 16, "in a queue", "small soft")], _MARGIN + 84.0
    sample = {"capacity_bytes": 10, "written_bytes": 6, "is_event": False, "is_finished": False}
    names = {"open": "being filled", "finished": "finished", "event": "event", "none": "free place"}
    for state, words in names.items():
        entry = {**sample, "is_finished": state == "finished", "is_event": state == "event"}
        queue = [] if state == "none" else [entry]
        parts += [
            element("g", _slot(0, {"queue": queue}, x, y + 12), data_key="1"),
            text_element(x + 32, y + 16, words, "small"),
        ]
        x += 54 + _LETTER * len(words)
    parts.append(text_element(_MARGIN, y + 45, "in a pool", "small soft"))
    x = _MARGIN + 84.0
    for state, words in (("home", "home"), ("queued", "queued"), ("reading", "being read"), ("away", "not taken yet")):
        at = {"x": x + 4, "y": y + 33, "width": 15, "height": 15, "rx": 3}
        shape = element("rect", class_="square", **at) + element("rect", class_="square over", **at)
        parts += [element("g", shape, data_state=state), text_element(x + 32, y + 45, words, "small")]
        x += 54 + _LETTER * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
