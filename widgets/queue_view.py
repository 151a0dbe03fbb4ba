"""The queues of all channels: what waits at the producer, and what has come and waits at the consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refimpl.job import JobSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.svg import element, name_element, text_element
from widgets.text import queue_text
from widgets.view_models import Model, entry_state, moment_of, subpartition_state

__all__ = ["QueueView", "queue_model"]

_MAX_ROWS = 32
_NEAR, _FAR = 14, 8  # places drawn of a queue at its producer, and at its consumer
_STATES = ("none", "open", "finished", "event")
_FLAGS = ("down", "up")
_ROW = 70
_SLOT, _STEP, _TALL = 24, 28, 28
_LABEL = 226
_QUEUE_X = MARGIN + _LABEL
_WIRE_X = _QUEUE_X + _NEAR * _STEP + 40
_FAR_X = _WIRE_X + 64
_WIDTH = _FAR_X + _FAR * _STEP + 46 + MARGIN


def queue_model(snapshot: JobSnapshot, known: Model, action: str = "") -> Model:
    """Every channel with the queue at its producer, and, if it is remote, the one at its consumer."""
    subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
    channels = []
    for place, sub in zip(known["channels"], subpartitions, strict=True):
        received = snapshot.gates[place["gate"]].channels[place["input"]].queue if place["gate"] >= 0 else ()
        target = known["tasks"][place["to_task"]]["name"] if place["to_task"] >= 0 else "nobody"
        channels.append(
            {
                "name": place["name"],
                "reader": target,
                "is_remote": place["is_remote"],
                **subpartition_state(sub),
                "received": [entry_state(entry) for entry in received],
            }
        )
    return {**moment_of("queues", snapshot, action), "channels": channels}


class QueueView(FactView):
    """Each channel with its queues, the fill level of each buffer, the backlog, and who asked for a flush.

    A buffer fills from below; its outline is dashed while the producer still writes. Of a remote channel
    the queue at the consumer is shown too. `MomentView` says what can be shown, and the options.

        QueueView(ThreadedRun(environment).start())
    """

    default_title = "Queues"
    kind = "queues"

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        return queue_model(snapshot, known, action)

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, channel in enumerate(model["channels"]):
            facts[f"{number} backlog"] = channel["backlog_buffers"]
            facts[f"{number} sent"] = channel["num_bytes_total"]
            facts[f"{number} marks"] = _marks(channel)
            facts[f"{number} flush"] = int(channel["is_flush_requested"])
            facts[f"{number} queued"] = len(channel["queue"])
            if channel["is_remote"]:
                facts[f"{number} received"] = len(channel["received"])
            if number < _MAX_ROWS:
                facts |= _places(f"{number} near", channel["queue"], _NEAR)
                facts |= _places(f"{number} far", channel["received"], _FAR) if channel["is_remote"] else {}
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        shown = model["channels"][:_MAX_ROWS]
        head = [
            text_element(_QUEUE_X, 12, "queue at the producer, head on the right →", "small soft"),
            text_element(_FAR_X, 12, "come over, not yet read", "small soft")
            if any(channel["is_remote"] for channel in shown)
            else "",
        ]
        rows = [_row(pen, number, channel, model, 26 + number * _ROW) for number, channel in enumerate(shown)]
        bottom = 26 + len(shown) * _ROW
        if more := len(model["channels"]) - len(shown):
            rows.append(text_element(MARGIN, bottom + 14, f"… and {more} more channels, in the table", "soft"))
            bottom += 26
        return Drawing("".join([*head, *rows, _key(bottom + 6)]), _WIDTH, bottom + 44)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        return [_channel_words(channel) for channel in model["channels"]]

    @staticmethod
    def status_of(model: Model) -> str:
        fullest = max(model["channels"], key=lambda channel: len(channel["queue"]), default=None)
        if fullest is None:
            return "the job has no channels"
        queued = sum(len(channel["queue"]) for channel in model["channels"])
        received = sum(len(channel["received"]) for channel in model["channels"])
        far = f", {received} come over and not yet read" if any(c["is_remote"] for c in model["channels"]) else ""
        longest = f"; longest: {fullest['name']} with {len(fullest['queue'])}, backlog {fullest['backlog_buffers']}"
        return f"{queued} queued{far}{longest if fullest['queue'] else ''}"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        head = ["channel", "to", "queued", "backlog (buffers)", "sent (bytes)", "received, unread", "marks"]
        rows = [
            [channel["name"], channel["reader"], *_cells(pen, number, channel)]
            for number, channel in enumerate(model["channels"])
        ]
        return [("Queues", head, rows)]


# -- facts -----------------------------------------------------------------------------------------


def _places(name: str, queue: Sequence[Model], most: int) -> Facts:
    """State and bytes of each place that is drawn, the head first, and how many have none."""
    facts: Facts = {f"{name} more": f"+{len(queue) - most}" if len(queue) > most else ""}
    for place in range(most):
        entry = queue[place] if place < len(queue) else None
        state = "none" if entry is None else _state(entry)
        facts[f"{name} {place} state"] = _STATES.index(state)
        facts[f"{name} {place} bytes"] = entry["written_bytes"] if entry is not None else 0
    return facts


def _state(entry: Model) -> str:
    return "event" if entry["is_event"] else "finished" if entry["is_finished"] else "open"


def _marks(channel: Model) -> str:
    named = (("flush", "is_flush_requested"), ("blocked", "is_blocked"), ("ended", "is_finished"))
    return " · ".join(word for word, key in named if channel[key])


# -- words -----------------------------------------------------------------------------------------


def _channel_words(channel: Model) -> str:
    far = f"  received {queue_text({'queue': channel['received']})}" if channel["is_remote"] else ""
    is_open = bool(channel["queue"]) and _state(channel["queue"][-1]) == "open"
    marks = " · ".join(filter(None, ["tail open" if is_open else "", _marks(channel)]))
    return (
        f"{channel['name']} → {channel['reader']}: {queue_text(channel)}  backlog {channel['backlog_buffers']}  "
        f"sent {channel['num_bytes_total']} B{far}" + (f"  {marks}" if marks else "")
    )


def _cells(pen: Pen, number: int, channel: Model) -> list[Any]:
    received = pen.cell(f"{number} received") if channel["is_remote"] else "reads directly"
    cells = [pen.cell(f"{number} {fact}") for fact in ("queued", "backlog", "sent")]
    return [*cells, received, pen.cell(f"{number} marks")]


# -- the drawing -----------------------------------------------------------------------------------


def _row(pen: Pen, number: int, channel: Model, model: Model, y: float) -> str:
    """One channel: names on the left, then its queue, the way over, and the other queue."""
    size, middle = model["segment_size_bytes"], y + 22 + _TALL / 2
    right = _QUEUE_X + _NEAR * _STEP
    parts = [
        name_element(MARGIN, y + 28, channel["name"], _LABEL - 8, "name"),
        name_element(MARGIN, y + 47, f"→ {channel['reader']}", _LABEL - 42, "soft"),
        pen.words(_QUEUE_X, y + 14, f"{number} backlog", "small", before="backlog "),
        pen.words(_QUEUE_X + 84, y + 14, f"{number} sent", "small soft", before="sent ", after=" B"),
        pen.words(_QUEUE_X + 206, y + 14, f"{number} marks", "small"),
        element("path", d=f"M{_QUEUE_X - 6:g} {middle:g}H{_FAR_X - 16:g}", class_="track c0"),
        element("path", d=f"M{_FAR_X - 18:g} {middle - 7:g}l13 7l-13 7z", class_="tip"),
        *_slots(pen, f"{number} near", _NEAR, right, y + 22, size),
        _flag(pen, f"{number} flush", right + 10, y + 18),
    ]
    if channel["is_remote"]:
        parts += _slots(pen, f"{number} far", _FAR, _FAR_X + _FAR * _STEP, y + 22, size)
    else:
        parts.append(text_element(_FAR_X, middle + 5, "reads it where it stands", "soft"))
    return element("g", "".join(parts), data_row=number)


def _slots(pen: Pen, name: str, most: int, right: float, y: float, size: int) -> list[str]:
    """The places of a queue, the head at `right`."""
    parts = []
    for place in range(most):
        x = right - (place + 1) * _STEP
        parts.append(_slot(pen, f"{name} {place}", x, y, size))
    return [*parts, pen.words(right - most * _STEP - 8, y + 19, f"{name} more", "small halo end")]


def _slot(pen: Pen, name: str, x: float, y: float, size: int) -> str:
    at = {"x": x, "y": y, "width": _SLOT, "height": _TALL, "rx": 4}
    body = (
        pen.name(f"{name} bytes", " B")
        + element("rect", class_="slot", **at)
        + pen.level(f"{name} bytes", size, x, y, _SLOT, _TALL, "level")
        + pen.level(f"{name} bytes", size, x, y, _SLOT, _TALL, "mesh")
        + element("rect", class_="edge", **at)
        + element("path", d=f"M{x + 12:g} {y + 1:g}l13 13l-13 13l-13 -13z", class_="event")
    )
    return pen.group(f"{name} state", _STATES, body)


def _flag(pen: Pen, fact: str, x: float, y: float) -> str:
    """Up while a flush is asked for: what is written may be read although the buffer is not full."""
    pole = element("path", d=f"M{x:g} {y:g}v36", class_="pole")
    cloth = element("path", d=f"M{x:g} {y:g}h17l-5 6l5 6h-17z", class_="cloth")
    return pen.group(fact, _FLAGS, element("title", "flush asked for") + pole + cloth)


def _key(y: float) -> str:
    """What the marks mean."""
    parts, x = [], float(MARGIN)
    for state, words in (("open", "being written"), ("finished", "finished"), ("event", "event"), ("none", "free")):
        pen = Pen({" state": _STATES.index(state), " bytes": 6})
        parts.append(still(_slot(pen, "", x, y, 10)) + text_element(x + 32, y + 19, words, "small"))
        x += 50 + 7 * len(words)
    flag = still(_flag(Pen({"flag": 1}), "flag", x + 4, y))
    parts.append(flag + text_element(x + 30, y + 19, "flush: may be read before it is full", "small"))
    return element("g", "".join(parts), class_="key", aria_hidden="true")
