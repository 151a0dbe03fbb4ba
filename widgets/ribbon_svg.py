"""The ribbon as a drawing: buffers as rows of byte cells, the answers under them, the queue beside.

The drawing shows the end of the run and holds everything on the way: each cell, answer and queue
place knows from which copy on it exists (`data-step`), and a count also until which (`data-until`), so that
going back only hides.
"""

from __future__ import annotations

import json
from itertools import groupby, zip_longest

from widgets.svg import document, element, picture_id, text_element
from widgets.text import fill_word, result_symbol, ribbon_text
from widgets.view_models import Model

__all__ = ["ribbon_svg"]

_CELL = 34
_PER_ROW = 16
_ROW = 60
_BADGE = 30
_BADGE_WIDTH = 332
_MIN_BOX = 360
_LEFT = 20
_RIBBON = 734
_QUEUE_X = _LEFT + _RIBBON + 26
_QUEUE_WIDTH = 200
_WIDTH = _QUEUE_X + _QUEUE_WIDTH + 20
_LETTER = 6.8
_MAX_BUFFERS = 10
_MAX_ROWS = 4


def ribbon_svg(model: Model, title: str = "") -> str:
    """The picture of all copies of all lanes."""
    name = title or "Records in buffers"
    body, y = [text_element(_LEFT, 34, name, "big")], 50.0
    for number in range(len(model["lanes"])):
        drawn, height = _lane(number, model, y)
        body.append(drawn)
        y += height + 18
    found = model["difference"]
    if len(model["lanes"]) == 2:
        words = f"≠ first difference: {found['sentence']}" if found else "= no difference"
        body.append(text_element(_LEFT, y + 12, words, "name", data_field="verdict"))
        y += 34
    body.append(_legend(y))
    id_ = picture_id("ribbon", json.dumps([name, model], sort_keys=True))
    inside = "".join(body).replace("#ID", f"#{id_}")
    return document(id_, _WIDTH, y + 56, name, ribbon_text(model, name), inside)


def _lane(number: int, model: Model, y: float) -> tuple[str, float]:
    """One lane with its queue; returns the drawing and its height."""
    lane = model["lanes"][number]
    parts = [text_element(_LEFT, y + 20, lane["name"], "name")]
    x, top, tallest = float(_LEFT), y + 30, 0.0
    for buffer in _kept(lane["num_buffers"], _MAX_BUFFERS, _buffers_of_interest(model)):
        if buffer < 0:
            parts.append(text_element(x, top + tallest + 4, f"⋯ {-buffer} more buffers", "soft"))
            x, top, tallest = float(_LEFT), top + tallest + 16, 0.0
            continue
        drawn, width, height = _buffer(buffer, lane, model, x, top)
        if x > _LEFT and x + width > _LEFT + _RIBBON:
            x, top, tallest = float(_LEFT), top + tallest + 14, 0.0
            drawn, width, height = _buffer(buffer, lane, model, x, top)
        parts.append(drawn)
        x, tallest = x + width + 14, max(tallest, height)
    queue, queue_height = _queue(lane, model, y)
    height = max(top + tallest - y, queue_height)
    return element("g", "".join(parts) + queue, data_lane=number), height


def _kept(total: int, most: int, special: set[int]) -> list[int]:
    """Which of `total` things to draw; a negative entry stands for that many left out."""
    if total <= most:
        return list(range(total))
    wanted = {0, 1, total - 1} | special
    kept: list[int] = []
    before = -1
    for index in sorted(wanted):
        if index > before + 1:
            kept.append(before + 1 - index)
        kept.append(index)
        before = index
    if before < total - 1:
        kept.append(before + 1 - total)
    return kept


def _buffers_of_interest(model: Model) -> set[int]:
    """The buffer with the first difference and its neighbours."""
    found = model["difference"]
    if not found or not model["lanes"][0]["steps"]:
        return set()
    steps = model["lanes"][0]["steps"]
    buffer = steps[min(found["step"], len(steps) - 1)]["buffer"]
    return {n for n in (buffer - 1, buffer, buffer + 1) if 0 <= n < min(lane["num_buffers"] for lane in model["lanes"])}


def _rows_of_interest(cells: dict[int, Model], difference: int | None) -> set[int]:
    """Rows where something begins or ends, at most eight of them."""
    starts = [position for position, cell in cells.items() if cell["part"] != "payload"]
    rows = sorted({position // _PER_ROW for position in (*starts, max(cells, default=0))})
    return {*rows[:4], *rows[-4:]} | (set() if difference is None else {difference // _PER_ROW})


# -- one buffer ------------------------------------------------------------------------------------


def _buffer(number: int, lane: Model, model: Model, x: float, y: float) -> tuple[str, float, float]:
    """One buffer: its cells, what they are, and the answer of each copy into it."""
    size = model["segment_size_bytes"]
    cells = {cell["position"]: cell for cell in lane["cells"] if cell["buffer"] == number}
    steps = [step for step in lane["steps"] if step["buffer"] == number]
    width = max(_MIN_BOX, min(size, _PER_ROW) * _CELL + 24)
    found = model["difference"]
    at = found["position"] if found and found["buffer"] == number else None
    rows = _kept(-(-size // _PER_ROW), _MAX_ROWS, _rows_of_interest(cells, at))
    parts, top = [], y + (38 if at is None else 52)
    for row in rows:
        if row < 0:
            parts.append(text_element(x + 14, top + 12, f"⋯ {-row * _PER_ROW} more bytes", "soft"))
            top += 24
            continue
        positions = range(row * _PER_ROW, min(size, (row + 1) * _PER_ROW))
        parts.append(_cells(positions, cells, x + 14, top, found if at is not None else None))
        top += _ROW
    for step in steps:
        parts.append(_badge(step, found, x + 14, top))
        top += _BADGE
    height = top - y + 8
    card = element("rect", x=x, y=y, width=width, height=height, rx=10, class_="card")
    label = text_element(x + 14, y + 25, f"buffer {number}", "name")
    fill = "".join(
        text_element(
            x + width - 14,
            y + 25,
            f"{step['start_byte'] + step['num_bytes']} of {size} B",
            "soft end",
            data_step=step["index"],
            data_until=after["index"] if after else None,
            data_later=1 if after else None,
        )
        for step, after in zip_longest(steps, steps[1:])
    )
    first = steps[0]["index"] if steps else 0
    return element("g", card + label + fill + "".join(parts), data_buffer=number, data_step=first), width, height


def _cells(positions: range, cells: dict[int, Model], x: float, y: float, found: Model | None) -> str:
    """One row of byte cells, and under them what a receiver takes them for."""
    drawn = []
    for column, position in enumerate(positions):
        cell, left = cells.get(position), x + column * _CELL
        at = {"x": left, "y": y, "width": _CELL - 2, "height": _CELL - 2, "rx": 4}
        drawn.append(element("rect", class_="empty", **at))
        if cell is not None:
            tone = cell["part"] if cell["part"] != "payload" else f"payload p{cell['record'] % 4}"
            shape = element("rect", class_=f"byte {tone}", **at)
            if cell["part"] == "length":
                shape += element("rect", class_="ruled", **at)
            class_ = "cell mono mid on" if cell["part"] == "payload" else "cell mono mid bare"
            words = text_element(left + 16, y + 21, cell["hex"], class_)
            drawn.append(element("g", shape + words, data_step=cell["step"], data_byte=position))
        if found and position == found["position"]:
            ring = {"x": left - 3, "y": y - 3, "width": _CELL + 4, "height": _CELL + 4, "rx": 6}
            mark = element("rect", class_="differs", **ring) + text_element(left + 15, y - 7, "≠", "name mid")
            drawn.append(element("g", mark, data_step=found["step"]))
    known = [cells[position] for position in positions if position in cells]
    column = 0
    for (part, record, length), run in groupby(known, key=lambda c: (c["part"], c["record"], c["length_bytes"])):
        members = list(run)
        words = _run_words(part, record, length, len(members))
        left, right = x + column * _CELL + 1, x + (column + len(members)) * _CELL - 3
        line = element("path", d=f"M{left:g} {y + 36:g}v4H{right:g}v-4", class_="brace")
        label = text_element((left + right) / 2, y + 52, words, "small mid")
        drawn.append(element("g", line + label, data_step=members[-1]["step"]))
        column += len(members)
    return "".join(drawn)


def _run_words(part: str, record: int, length: int, num_cells: int) -> str:
    """The name of a run of cells, as long as its place allows."""
    if part == "lost":
        return "unreadable" if num_cells > 2 else "?"
    if part == "payload":
        return f"record {record}" if num_cells > 1 else f"r{record}"
    if num_cells < 2:
        return "len"
    return "length cut" if length < 0 else f"length {length}" if num_cells > 2 or length < 10 else "length"


def _badge(step: Model, found: Model | None, x: float, y: float) -> str:
    """The answer of one copy: the copy's number, mark and word."""
    kind = {"●": "full", "◆": "edge", "◐": "partial"}.get(result_symbol(step["result"]), "odd")
    is_different = found is not None and found["step"] == step["index"] and found["position"] is None
    shape = element("rect", x=x, y=y + 1, width=_BADGE_WIDTH, height=24, rx=12, class_=f"badge {kind}")
    copy = text_element(x + 12, y + 17, str(step["index"] + 1), "small soft")
    mark = text_element(x + 40, y + 17, result_symbol(step["result"]), "mid")
    words = step["result"] if len(step["result"]) <= 36 else step["result"][:35] + "…"
    label = text_element(x + 52, y + 17, words, "small mono")
    wrong = text_element(x + _BADGE_WIDTH - 10, y + 18, "≠", "name end") if is_different else ""
    return element("g", shape + copy + mark + label + wrong, data_step=step["index"], data_result=step["result"])


# -- the queue -------------------------------------------------------------------------------------


def _queue(lane: Model, model: Model, y: float) -> tuple[str, float]:
    """The subpartition's queue as it stands at the end; the head is on top."""
    size = model["segment_size_bytes"]
    last: Model = lane["steps"][-1] if lane["steps"] else {"queue": [], "backlog_buffers": 0}
    right = _QUEUE_X + _QUEUE_WIDTH
    head = text_element(_QUEUE_X, y + 20, "queue", "name") + text_element(
        right, y + 20, f"backlog {last['backlog_buffers']}", "soft end", data_field="backlog"
    )
    parts, top = [], y + 34
    for place in _kept(len(last["queue"]), _MAX_BUFFERS, _buffers_of_interest(model)):
        if place < 0:
            parts.append(text_element(_QUEUE_X, top + 12, f"⋯ {-place} more", "soft"))
            top += 24
            continue
        entry = last["queue"][place]
        at = {"x": _QUEUE_X, "y": top + 16, "height": 14, "rx": 4}
        level = _QUEUE_WIDTH * entry["written_bytes"] / size
        body = (
            text_element(_QUEUE_X, top + 10, f"{place or 'head'}: {fill_word(entry)}", "small", data_field="place")
            + element("rect", width=_QUEUE_WIDTH, class_="slot", **at)
            + element("rect", width=level, class_="level", **at)
            + element("rect", width=level, class_="mesh", **at)
            + element("rect", width=_QUEUE_WIDTH, class_="edge", **at)
        )
        state = "finished" if entry["is_finished"] else "open"
        parts.append(element("g", body, data_place=place, data_state=state))
        top += 42
    has_some = int(bool(last["queue"]))
    parts.append(text_element(_QUEUE_X, y + 44, "empty", "soft", data_field="nothing", data_later=has_some))
    return head + "".join(parts), max(top, y + 54) - y


def _legend(y: float) -> str:
    """What the marks mean."""
    parts, x = [], float(_LEFT)
    names = {"length": "length of a record", "payload p0": "payload, a colour for each record", "": "not written"}
    for kind, words in names.items():
        at = {"x": x, "y": y, "width": 20, "height": 20, "rx": 4}
        shape = element("rect", class_=f"byte {kind}" if kind else "empty", **at)
        shape += element("rect", class_="ruled", **at) if kind == "length" else ""
        parts.append(shape + text_element(x + 28, y + 14, words, "small"))
        x += 44 + _LETTER * len(words)
    pill = element("rect", x=x, y=y, width=44, height=20, rx=10, class_="badge partial")
    parts.append(pill + text_element(x + 10, y + 14, "2", "small soft") + text_element(x + 31, y + 15, "◐", "mid"))
    parts.append(text_element(x + 52, y + 14, "copy 2 and its answer", "small"))
    note = "Lengths and records are named as a receiver reads the bytes: it knows no other marks."
    parts.append(text_element(_LEFT, y + 42, note, "small soft"))
    return element("g", "".join(parts), class_="key", aria_hidden="true")
