"""The pipeline map as a drawing: tasks as stations, channels as lines, buffers waiting on them.

Each queue is drawn where it lives, at its producer, with the head nearest to the consumer. The
drawing of any moment holds every slot a queue may show, so that another moment differs only in
`data-` attributes, levels and words.
"""

from __future__ import annotations

import json

from widgets.svg import document, element, picture_id, text_element
from widgets.text import PROGRESS_SYMBOL, fill_word, pipeline_text, watermark_text
from widgets.view_models import Model

__all__ = ["MAX_SLOTS", "MAX_SQUARES", "pipeline_svg"]

MAX_SLOTS = 6
MAX_SQUARES = 12

_STATION = 262
_SIDING = 214
_LINES = 150
_ROW = 54
_HEAD = 136
_POOL = 50
_GAP = 26
_MARGIN = 20
_SLOT_WIDTH, _SLOT_HEIGHT, _SLOT_STEP = 24, 26, 29
_LEGEND = 62


def pipeline_svg(model: Model, title: str = "") -> str:
    """The picture of a job at one moment."""
    name = title or "Pipeline map"
    places, width, height = _layout(model)
    lines = [_line(number, model, places) for number in range(len(model["channels"]))]
    stations = [_station(number, model, places[number]) for number in range(len(model["tasks"]))]
    body = text_element(_MARGIN, 34, name, "big") + "".join(lines) + "".join(stations)
    id_ = picture_id("pipeline", json.dumps([name, model], sort_keys=True))
    body = body.replace("#ID", f"#{id_}") + _legend(height - _LEGEND + 6)
    return document(id_, width, height, name, pipeline_text(model, name), body)


# -- where things stand ----------------------------------------------------------------------------


def _station_height(number: int, model: Model) -> float:
    num_channels = sum(channel["from_task"] == number for channel in model["channels"])
    num_outputs = sum(output["task"] == number for output in model["outputs"])
    return max(_HEAD + num_outputs * _POOL, num_channels * _ROW + 8)


def _layout(model: Model) -> tuple[list[tuple[float, float, float]], float, float]:
    """For each task its left, top and height; then the size of the whole picture."""
    columns: dict[int, list[int]] = {}
    for number, task in sorted(enumerate(model["tasks"]), key=lambda item: item[1]["row"]):
        columns.setdefault(task["column"], []).append(number)
    heights = [_station_height(number, model) for number in range(len(model["tasks"]))]
    totals = {
        column: sum(heights[n] for n in numbers) + _GAP * (len(numbers) - 1) for column, numbers in columns.items()
    }
    tallest = max(totals.values())
    places: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * len(heights)
    for column, numbers in columns.items():
        y = 58 + (tallest - totals[column]) / 2
        for number in numbers:
            places[number] = (_MARGIN + column * (_STATION + _SIDING + _LINES), y, heights[number])
            y += heights[number] + _GAP
    last = max(columns)
    width = 2 * _MARGIN + (last + 1) * _STATION + last * (_SIDING + _LINES)
    return places, max(width, 900), 58 + tallest + 26 + _LEGEND


# -- stations --------------------------------------------------------------------------------------


def _station(number: int, model: Model, place: tuple[float, float, float]) -> str:
    task, (x, y, height) = model["tasks"][number], place
    outputs = [(n, output) for n, output in enumerate(model["outputs"]) if output["task"] == number]
    card = element("rect", x=x, y=y, width=_STATION, height=height, rx=12, class_="card")
    band = element("rect", x=x + 12, y=y + 66, width=26, height=26, rx=5, class_="band") + element(
        "rect", x=x + 12, y=y + 66, width=26, height=26, rx=5, class_="wash"
    )
    ring = element("circle", cx=x + 25, cy=y + 30, r=15, class_="ring") + text_element(
        x + 25, y + 36, str(task["subtask"]), "name mid"
    )
    first, second = _two_lines(" → ".join(task["operators"]))
    symbol = PROGRESS_SYMBOL[task["progress"]]
    words = [
        text_element(x + 50, y + (26 if second else 36), first, "name"),
        text_element(x + 50, y + 47, second, "name") if second else "",
        text_element(x + 48, y + 86, f"{symbol} {task['progress']}", "name", data_field="word"),
        text_element(x + 12, y + 111, _flow_words(task), data_field="flow"),
        text_element(x + 12, y + 129, f"watermark {watermark_text(task)}", "soft", data_field="watermark"),
    ]
    pools = [_pool(n, output, x + 12, y + _HEAD + row * _POOL) for row, (n, output) in enumerate(outputs)]
    name = element("title", task["name"].replace("&", "&amp;").replace("<", "&lt;"))
    return element(
        "g", name + card + band + ring + "".join(words + pools), data_task=number, data_progress=task["progress"]
    )


def _flow_words(task: Model) -> str:
    return f"in {task['num_records_in']} · out {task['num_records_out']}"


def _two_lines(words: str, most: int = 19) -> tuple[str, str]:
    """A chain's operators on one line or two, cut with `…` where they do not fit."""
    if len(words) <= most:
        return words, ""
    cut = words.rfind(" → ", 0, most)
    cut = cut if cut > 0 else most
    rest = words[cut:].strip()
    return words[:cut], rest if len(rest) <= most else rest[: most - 1] + "…"


def _pool(number: int, output: Model, x: float, y: float) -> str:
    """The buffers of one output as squares: home, queued, being read, not fetched."""
    states = square_states(output)
    squares = []
    for index, state in enumerate(states):
        at = {"x": x + index * 20, "y": y + 22, "width": 16, "height": 16, "rx": 3}
        shape = element("rect", class_="square", **at) + element("rect", class_="square over", **at)
        squares.append(element("g", shape, data_square=index, data_state=state))
    words = text_element(x, y + 15, pool_words(output), "soft", data_field="pool")
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
    """The same in words."""
    return f"{output['home_buffers']} home · {output['queued_buffers']} queued · {output['reading_buffers']} read"


# -- lines -----------------------------------------------------------------------------------------


def _line(number: int, model: Model, places: list[tuple[float, float, float]]) -> str:
    """One channel: its siding with the queue, and the line to its consumer."""
    channel = model["channels"][number]
    x, y, height = places[channel["from_task"]]
    mine = [n for n, c in enumerate(model["channels"]) if c["from_task"] == channel["from_task"]]
    row = y + (height - len(mine) * _ROW) / 2 + mine.index(number) * _ROW + 36
    start, end = x + _STATION, x + _STATION + _SIDING
    path = f"M{start:g} {row:g}H{end:g}"
    tip = ""
    if channel["to_task"] >= 0:
        left, top, tall = places[channel["to_task"]]
        theirs = [n for n, c in enumerate(model["channels"]) if c["to_task"] == channel["to_task"]]
        port = top + tall * (theirs.index(number) + 1) / (len(theirs) + 1)
        middle = (end + left) / 2
        path += f"C{middle:g} {row:g} {middle:g} {port:g} {left - 14:g} {port:g}"
        tip = element("path", d=f"M{left - 16:g} {port - 8:g}l15 8l-15 8z", class_="tip")
    track = element("path", d=path, class_="halo") + element("path", d=path, class_=f"track c{channel['output'] % 4}")
    slots = [_slot(index, channel, end - 8 - _SLOT_WIDTH - index * _SLOT_STEP, row) for index in range(MAX_SLOTS)]
    more = text_element(start + 8, row + 5, more_words(channel), "soft", data_field="more")
    label = text_element(start + 10, row - 21, channel_words(channel), "soft", data_field="channel")
    return element(
        "g", track + tip + more + label + "".join(slots),
        data_ch=number, data_backlog=channel["backlog_buffers"], data_queued=len(channel["queue"]),
        data_ended=int(channel["is_finished"]),
    )  # fmt: skip


def _slot(index: int, channel: Model, x: float, row: float) -> str:
    """One place of a queue; 0 is the head, nearest to the consumer."""
    entry = channel["queue"][index] if index < len(channel["queue"]) else None
    top, bottom = row - _SLOT_HEIGHT / 2, row + _SLOT_HEIGHT / 2
    share = min(1.0, entry["written_bytes"] / max(1, entry["capacity_bytes"])) if entry else 0.0
    level = _SLOT_HEIGHT * share
    at = {"x": x, "width": _SLOT_WIDTH}
    body = (
        element("title", fill_word(entry) if entry else "free place")
        + element("rect", y=top, height=_SLOT_HEIGHT, class_="slot", **at)
        + element("rect", y=bottom - level, height=level, class_="level", **at)
        + element("rect", y=bottom - level, height=level, class_="mesh", **at)
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
        word for word, key in (("flush", "is_flush_requested"), ("blocked", "is_blocked"), ("ended", "is_finished"))
        if channel[key]
    ]  # fmt: skip
    return " · ".join([f"backlog {channel['backlog_buffers']}", f"sent {channel['num_bytes_total']} B", *marks])


# -- the key ---------------------------------------------------------------------------------------


def _legend(y: float) -> str:
    """What the marks mean, in one row of queue places and one of pool squares."""
    parts, x = [text_element(_MARGIN, y + 12, "on a line", "soft")], _MARGIN + 72.0
    sample = {"capacity_bytes": 10, "written_bytes": 6, "is_event": False, "is_finished": False}
    names = {"open": "buffer, open", "finished": "buffer, finished", "event": "event", "none": "free"}
    for state, words in names.items():
        entry = {**sample, "is_finished": state == "finished", "is_event": state == "event"}
        queue = [] if state == "none" else [entry]
        parts += [
            element("g", _slot(0, {"queue": queue}, x, y + 7), data_key="1"),
            text_element(x + 34, y + 12, words, "soft"),
        ]
        x += 50 + 7.6 * len(words)
    parts.append(text_element(_MARGIN, y + 38, "in a pool", "soft"))
    x = _MARGIN + 72.0
    for state, words in (("home", "home"), ("queued", "queued"), ("reading", "being read"), ("away", "not fetched")):
        at = {"x": x, "y": y + 26, "width": 16, "height": 16, "rx": 3}
        shape = element("rect", class_="square", **at) + element("rect", class_="square over", **at)
        parts += [element("g", shape, data_state=state), text_element(x + 24, y + 38, words, "soft")]
        x += 46 + 7.6 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
