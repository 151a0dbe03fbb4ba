"""Event time: how far each task has come, how far each of its channels, and which one holds it back."""

from __future__ import annotations

from functools import partial

from refimpl.job import JobSnapshot
from refimpl.records import MIN_TIMESTAMP
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, cards, still
from widgets.recording import Recording
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model, event_time, moment_of, topology

__all__ = ["WatermarkView"]

_MAX_CHANNELS = 8
_AXIS_X, _AXIS = MARGIN + 300, 450
_WORD_X = _AXIS_X + _AXIS + 16
_MARK_X = _WORD_X + 124  # behind milliseconds since 1970
_WIDTH = _WORD_X + 260
_HEAD, _ROW = 30, 22
_STATES = ("none", "set", "end")
_ENDS = {"none": "none yet", "end": "the end", "source": "a source: reads no channel"}
_MARKS = ("", "▲ holds it back", "idle: does not count")


class WatermarkView(FactView):
    """The watermark of each task on one axis of event time, with those of its channels: the least of them counts.

    A source reads no channel, so it has none to show; how far it has come stands at the channels it feeds.

    ▼ is the task, ◆ a channel; the line between what has come and what may still come is where they stand. A channel
    that is idle does not count. `MomentView` says what can be shown, and the options.

        WatermarkView(Recording.of(Simulation(environment)))
    """

    default_title = "Watermarks"
    kind = "watermarks"

    def known_of(self, snapshot: JobSnapshot) -> Model:
        known = topology(snapshot)
        moments = [moment for moment, _ in self._source.moments] if isinstance(self._source, Recording) else []
        return {**known, "span": _span(moments)}

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        sources = {(c["to_task"], c["to_channel"]): c["name"] for c in known["channels"]}
        start, end = known["span"] or _span([snapshot]) or (None, None)
        tasks = []
        for number, task in enumerate(snapshot.tasks):
            idle, marks = set(task.idle_channels), task.channel_watermarks
            counting = [mark for place, mark in enumerate(marks) if place not in idle]
            least = min(counting, default=MIN_TIMESTAMP)
            is_apart = len(set(counting)) > 1
            channels = [
                {
                    "name": sources.get((number, place), f"channel {place}"),
                    **event_time(mark),
                    "is_idle": place in idle,
                    "is_least": is_apart and place not in idle and mark == least,
                }
                for place, mark in enumerate(marks)
            ]
            time = event_time(task.watermark) if channels else {"watermark_ms": None, "watermark_state": "source"}
            tasks.append({"name": task.name, **time, "channels": channels})
        return {**moment_of("watermarks", snapshot, action), "start_ms": start, "end_ms": end, "tasks": tasks}

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {"start": _end_words(model["start_ms"]), "end": _end_words(model["end_ms"])}
        for number, task in enumerate(model["tasks"]):
            facts[f"{number} words"] = _words(task)
            facts[f"{number} at"] = _pixels(task, model)
            facts[f"{number} state"] = _STATES.index(task["watermark_state"]) if task["channels"] else 0
            for place, channel in enumerate(task["channels"]):
                is_drawn = place < _MAX_CHANNELS
                facts[f"{number}.{place} words"] = _words(channel)
                if is_drawn:
                    facts[f"{number}.{place} at"] = _pixels(channel, model)
                facts[f"{number}.{place} mark"] = _mark(channel)
                if is_drawn:
                    facts[f"{number}.{place} state"] = _mark_number(channel)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        parts = [
            text_element(_AXIS_X, 10, "event time →", "small soft"),
            pen.words(_AXIS_X, 26, "start", "small soft"),
            pen.words(_AXIS_X + _AXIS, 26, "end", "small soft end"),
        ]
        drawn, y = cards(model["tasks"], partial(_task, pen), 40.0)
        return Drawing("".join([*parts, drawn, _key(y + 6)]), _WIDTH, y + 44)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        ends = [_end_words(model[name]) for name in ("start_ms", "end_ms")]
        lines = [f"event time from {ends[0]} to {ends[1]}" if all(ends) else "no watermark that is a time"]
        for task in model["tasks"]:
            lines.append(f"{task['name']}: {_words(task)}")
            for channel in task["channels"]:
                mark = f"  {_MARKS[_mark_number(channel)]}" if _mark_number(channel) else ""
                lines.append(f"    {channel['name']}: {_words(channel)}{mark}")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        reading = [task for task in model["tasks"] if task["channels"]]
        words = ", ".join(f"{task['name']} {_words(task)}" for task in reading[:4])
        held = [c["name"] for task in reading for c in task["channels"] if c["is_least"]]
        more = f"; held back by {', '.join(held[:3])}{' and more' if len(held) > 3 else ''}" if held else ""
        return f"{words or 'no task reads from another'}{more}"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        tasks = [[task["name"], pen.cell(f"{number} words")] for number, task in enumerate(model["tasks"])]
        channels = [
            [channel["name"], task["name"], pen.cell(f"{number}.{place} words"), pen.cell(f"{number}.{place} mark")]
            for number, task in enumerate(model["tasks"])
            for place, channel in enumerate(task["channels"])
        ]
        return [
            ("Watermarks of tasks", ["task", "watermark"], tasks),
            ("Watermarks of channels", ["channel", "to", "watermark", "mark"], channels),
        ]


# -- times and words -------------------------------------------------------------------------------


def _span(moments: list[JobSnapshot]) -> tuple[int, int] | None:
    """From the least to the greatest watermark that is a time; `None` if there is none."""
    marks = {
        mark
        for moment in moments
        for task in moment.tasks
        for mark in (task.watermark, *task.channel_watermarks)
        if event_time(mark)["watermark_state"] == "set"
    }
    return (min(marks), max(marks)) if marks else None


def _words(each: Model) -> str:
    if each["watermark_state"] == "set":
        return f"{each['watermark_ms']} ms"
    return _ENDS[each["watermark_state"]]


def _end_words(time_ms: int | None) -> str:
    """An end of the axis; nothing where there is no time to show."""
    return "" if time_ms is None else f"{time_ms} ms"


def _mark_number(channel: Model) -> int:
    return 2 if channel["is_idle"] else int(channel["is_least"])


def _mark(channel: Model) -> str:
    return _MARKS[_mark_number(channel)]


def _pixels(each: Model, model: Model) -> int:
    if each["watermark_state"] == "source":
        return -1
    if each["watermark_state"] != "set":
        return 0 if each["watermark_state"] == "none" else _AXIS
    span = model["end_ms"] - model["start_ms"]
    return max(0, min(_AXIS, round(_AXIS * (each["watermark_ms"] - model["start_ms"]) / span))) if span > 0 else _AXIS


# -- the drawing -----------------------------------------------------------------------------------


def _task(pen: Pen, number: int, task: Model, y: float) -> tuple[str, float]:
    shown = task["channels"][:_MAX_CHANNELS]
    more = len(task["channels"]) - len(shown)
    tall = _HEAD + len(shown) * _ROW + (20 if more else 6)
    parts = [
        element("rect", x=MARGIN - 8, y=y, width=_WIDTH - 2 * MARGIN + 16, height=tall, rx=10, class_="card"),
        name_element(MARGIN + 4, y + 20, task["name"], _AXIS_X - MARGIN - 18, "name"),
        pen.words(_WORD_X, y + 20, f"{number} words", "name"),
        element("path", d=f"M{_AXIS_X} {y + 20:g}h{_AXIS}", class_="axis"),
        pen.moving(f"{number} at", 10_000, 1, 0, pen.group(f"{number} state", _STATES, _flag(_AXIS_X, y + 18))),
    ]
    for place, channel in enumerate(shown):
        row = y + _HEAD + place * _ROW + 12
        parts += [
            name_element(MARGIN + 20, row + 4, channel["name"], _AXIS_X - MARGIN - 34, "small soft"),
            element("path", d=f"M{_AXIS_X} {row:g}h{_AXIS}", class_="grid"),
            pen.moving(f"{number}.{place} at", 10_000, 1, 0, _held(pen, f"{number}.{place} state", _AXIS_X, row)),
            pen.words(_WORD_X, row + 4, f"{number}.{place} words", "small"),
            pen.words(_MARK_X, row + 4, f"{number}.{place} mark", "small"),
        ]
    if more > 0:
        parts.append(text_element(MARGIN + 20, y + tall - 6, f"… and {more} more channels", "small soft"))
    return element("g", "".join(parts), data_task=number), tall


def _flag(x: float, y: float) -> str:
    return element("path", d=f"M{x - 7:g} {y - 13:g}h14l-7 13z", class_="cursor task")


def _held(pen: Pen, fact: str, x: float, y: float) -> str:
    shape = element("path", d=f"M{x:g} {y - 7:g}l7 7l-7 7l-7 -7z", class_="gem")
    return pen.group(fact, ("counts", "least", "idle"), shape)


def _key(y: float) -> str:
    flag = element("g", _flag(MARGIN + 10, y + 16), data_state="set")
    parts = [flag, text_element(MARGIN + 26, y + 16, "a task", "small")]
    x = MARGIN + 100.0
    for number, words in enumerate(("a channel", "the least of several: holds the task back", "idle: does not count")):
        parts.append(still(_held(Pen({"state": number}), "state", x, y + 11)))
        parts.append(text_element(x + 16, y + 16, words, "small"))
        x += 60 + 6.4 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
