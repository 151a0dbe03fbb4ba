"""The race of the barriers: how far each is in its channel, who has it and waits, and where the cuts are."""

from __future__ import annotations

import struct
from functools import partial

from refimpl.checkpoint import SubtaskStats, size_words
from refimpl.config import CheckpointingMode
from refimpl.consumer.barrier_handler import AlignmentSnapshot
from refimpl.consumer.channel import ChannelSnapshot
from refimpl.job import JobSnapshot
from refimpl.producer.subpartition_snapshot import QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.task.snapshot import TaskSnapshot
from widgets.checkpoint_model import newest_of, newest_words
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, cards, still
from widgets.letters import fitting
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model, moment_of, topology

__all__ = ["AlignmentView"]

_MAX_CHANNELS = 8
_PLACES = 10  # drawn of a lane
_LOTS = ("none", "data", "barrier", "behind", "event")
_GLYPHS = dict(zip(_LOTS, "·▪◆▨○", strict=True))
_STATES = ("reads", "comes", "waits", "passed", "ended")
_STEP, _LOT = 24, 20
_LANE_X = MARGIN + 260
_GATE_X = _LANE_X + _PLACES * _STEP + 6
_WORD_X = _GATE_X + 22
_WIDTH = _WORD_X + 330
_HEAD, _ROW = 50, 30
_BARRIER = struct.Struct(">iq")  # what a barrier begins with: its code, and the number of the checkpoint
_NONE_SENT = "No barrier has been sent so far: sources send one every checkpoint_interval_ms of Config, with 0 none."


class AlignmentView(FactView):
    """For each channel what is between its producer and the task, with the barrier among it; for each task its cuts.

    A lane leads to the task on its right. ◆ is a barrier, ▪ a buffer before it. In exactly-once mode a channel whose
    barrier has come is shut until all have, and what waits behind it is hatched; in at-least-once mode it goes on. Of a
    run with a store the newest checkpoint is told from its trigger to its end, and the state of each task in it.
    Job option `checkpoint_interval_ms` makes the sources send barriers. `MomentView` says what can be shown, and the
    options.

        AlignmentView(Recording.of(Simulation(environment)))
    """

    default_title = "Barriers"
    kind = "alignment"
    styles = ("facts.css", "alignment.css")

    def known_of(self, snapshot: JobSnapshot) -> Model:
        return topology(snapshot)

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
        feeding: list[dict[int, Model]] = [{} for _ in snapshot.tasks]  # by the number of the channel at its task
        for place, sub in zip(known["channels"], subpartitions, strict=True):
            if place["gate"] >= 0:
                index, alignment = place["to_channel"], snapshot.tasks[place["to_task"]].alignment
                channel = snapshot.gates[place["gate"]].channels[place["input"]]
                state = _channel(alignment, index, channel, sub)
                feeding[place["to_task"]][index] = {"name": place["name"], **state}
        newest = newest_of(snapshot)
        history = () if snapshot.checkpoints is None else snapshot.checkpoints.history
        parts = {each.task: each for each in history[-1].subtasks} if history else {}
        checkpoint_id = history[-1].checkpoint_id if history else 0
        tasks = [
            {
                "name": task.name,
                **_task(task, len(channels)),
                **_part(parts.get(task.name), checkpoint_id),
                "channels": [channels[n] for n in sorted(channels)],
            }
            for task, channels in zip(snapshot.tasks, feeding, strict=True)
        ]
        return {**moment_of("alignment", snapshot, action), "newest": newest, "tasks": tasks}

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {"note": fitting(_note(model), _WIDTH - 2 * MARGIN)}
        for number, task in enumerate(model["tasks"]):
            facts[f"{number} words"] = _task_words(task)
            facts[f"{number} cut"] = _cut_words(task)
            for place, channel in enumerate(task["channels"]):
                name = f"{number}.{place}"
                facts[f"{name} words"] = _words(channel)
                facts[f"{name} state"] = _STATES.index(channel["state"])
                for at, lot in enumerate(channel["lane"] if place < _MAX_CHANNELS else ()):
                    facts[f"{name} lot {at}"] = _LOTS.index(lot)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        parts = [
            pen.words(MARGIN, 8, "note", "soft"),
            text_element(_GATE_X, 30, "from the producer's queue to the task →", "small soft end"),
        ]
        drawn, y = cards(model["tasks"], partial(_card, pen), 42.0)
        return Drawing("".join([*parts, drawn, _key(y + 6)]), _WIDTH, y + 44)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [note] if (note := _note(model)) else []
        for task in model["tasks"]:
            lines.append(f"{task['name']}: {_task_words(task)}; {_cut_words(task)}")
            for channel in task["channels"]:
                lane = "".join(_GLYPHS[lot] for lot in reversed(channel["lane"]))
                lines.append(f"    {lane} {channel['name']}: {_words(channel)}")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        if not _is_any(model):
            return "no barrier has been sent"
        racing = [task for task in model["tasks"] if task["num_arrived"]]
        words = "; ".join(f"{task['name']}: {_task_words(task)}" for task in racing[:3])
        last = max((task["cut"]["checkpoint"] for task in model["tasks"] if task["cut"]), default=0)
        return words or (f"no task waits for a barrier; the newest cut is {last}" if last else "no task has a barrier")

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        tasks = [
            [task["name"], pen.cell(f"{number} words"), pen.cell(f"{number} cut")]
            for number, task in enumerate(model["tasks"])
        ]
        channels = [
            [
                channel["name"],
                task["name"],
                pen.cell(f"{number}.{place} state", _STATES),
                pen.cell(f"{number}.{place} words"),
            ]
            for number, task in enumerate(model["tasks"])
            for place, channel in enumerate(task["channels"])
        ]
        return [
            ("Cuts", ["task", "barriers", "last cut"], tasks),
            ("Channels", ["channel", "to", "state", "what is on its way"], channels),
        ]


# -- the model -------------------------------------------------------------------------------------


def _task(task: TaskSnapshot, num_channels: int) -> Model:
    alignment, cut = task.alignment, task.cut
    return {
        "num_channels": num_channels,
        "checkpoint": None if alignment is None or alignment.checkpoint_id < 0 else alignment.checkpoint_id,
        "num_arrived": 0 if alignment is None else len(alignment.arrived),
        "num_completed": 0 if alignment is None else alignment.num_completed,
        "num_aborted": 0 if alignment is None else alignment.num_aborted,
        "cut": None
        if cut is None
        else {
            "checkpoint": cut.checkpoint_id,
            "num_records_in": cut.num_records_in,
            "num_records_out": cut.num_records_out,
        },
    }


def _channel(
    alignment: AlignmentSnapshot | None, index: int, channel: ChannelSnapshot, sub: SubpartitionSnapshot
) -> Model:
    """What stands between a producer and its consumer: in the queue of the one, and of the other if it is remote."""
    entries = [] if channel.is_released else [*channel.queue, *sub.queue]
    numbers = [_checkpoint_of(entry) for entry in entries]
    first = next((at for at, number in enumerate(numbers) if number is not None), None)
    has_come = alignment is not None and index in alignment.arrived
    is_shut = has_come and alignment is not None and alignment.mode is CheckpointingMode.EXACTLY_ONCE
    buffers = [entry for entry in entries if entry.data_type.is_buffer]
    before = buffers if first is None else [entry for entry in entries[:first] if entry.data_type.is_buffer]
    ahead, behind = ([], buffers) if is_shut else (before, [])
    if channel.is_released:
        state = "ended"
    elif has_come:
        state = "waits" if is_shut else "passed"
    else:
        state = "reads" if first is None else "comes"
    checkpoint = None if first is None else numbers[first]
    if has_come and alignment is not None and state != "ended":
        checkpoint = alignment.checkpoint_id
    return {
        "state": state,
        "checkpoint": checkpoint,
        "ahead_buffers": len(ahead),
        "ahead_bytes": sum(entry.unread_bytes for entry in ahead),
        "behind_buffers": len(behind),
        "behind_bytes": sum(entry.unread_bytes for entry in behind),
        "lane": _lane(entries, numbers, is_shut),
    }


def _checkpoint_of(entry: QueuedBufferSnapshot) -> int | None:
    """The number of a barrier's checkpoint; of all else `None`."""
    if entry.data_type.is_buffer or len(entry.first_bytes) < _BARRIER.size:
        return None
    code, number = _BARRIER.unpack_from(entry.first_bytes)
    return int(number) if code == 1 else None


def _lane(entries: list[QueuedBufferSnapshot], numbers: list[int | None], is_shut: bool) -> list[str]:
    """What is drawn of it, the place before the task first; a barrier that has come holds that place."""
    lots = ["barrier"] if is_shut else []
    for entry, number in zip(entries, numbers, strict=True):
        if entry.data_type.is_buffer:
            lots.append("behind" if is_shut else "data")
        else:
            lots.append("event" if number is None else "barrier")
    return [*lots, *["none"] * _PLACES][:_PLACES]


def _part(part: SubtaskStats | None, checkpoint_id: int) -> Model:
    """What the newest checkpoint has of a task, once it is acknowledged."""
    has_acked = part is not None and part.acked_ms is not None
    return {
        "acked_checkpoint": checkpoint_id if has_acked else None,
        "state_bytes": part.state_bytes if part is not None else 0,
    }


# -- words -----------------------------------------------------------------------------------------


def _note(model: Model) -> str:
    """The newest checkpoint, or why there is nothing to see."""
    if model["newest"] is not None:
        return newest_words(model["newest"])
    return "" if _is_any(model) else _NONE_SENT


def _is_any(model: Model) -> bool:
    """Whether there is, or was, a barrier anywhere."""
    return any(
        task["cut"] or task["num_aborted"] or any(channel["checkpoint"] is not None for channel in task["channels"])
        for task in model["tasks"]
    )


def _task_words(task: Model) -> str:
    if not task["num_channels"]:
        return "a source: sends its barriers itself"
    done = f"{task['num_completed']} completed" + (f", {task['num_aborted']} given up" if task["num_aborted"] else "")
    if task["checkpoint"] is None:
        return f"no barrier is here · {done}"
    return f"barrier {task['checkpoint']}: {task['num_arrived']} of {task['num_channels']} are here · {done}"


def _cut_words(task: Model) -> str:
    cut = task["cut"]
    if cut is None:
        return "not cut yet"
    words = f"cut {cut['checkpoint']} after {cut['num_records_in']} records in, {cut['num_records_out']} out"
    if task["acked_checkpoint"] is None:
        return words
    return f"{words} · {size_words(task['state_bytes'])} of state in checkpoint {task['acked_checkpoint']}"


def _words(channel: Model) -> str:
    number, ahead = channel["checkpoint"], _load(channel["ahead_buffers"], channel["ahead_bytes"])
    match channel["state"]:
        case "ended":
            return "ended"
        case "waits":
            behind = _load(channel["behind_buffers"], channel["behind_bytes"])
            return f"waits with barrier {number}, {behind} behind it"
        case "passed":
            return f"barrier {number} has come, reads on, {ahead}"
        case "comes":
            return f"barrier {number} behind {ahead}" if channel["ahead_buffers"] else f"barrier {number} comes next"
    return f"no barrier, {ahead}"


def _load(num_buffers: int, num_bytes: int) -> str:
    """What stands in a channel."""
    return _count(num_buffers, "buffer") + (f", {size_words(num_bytes)}" if num_buffers else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# -- the drawing -----------------------------------------------------------------------------------


def _card(pen: Pen, number: int, task: Model, y: float) -> tuple[str, float]:
    shown = task["channels"][:_MAX_CHANNELS]
    more = len(task["channels"]) - len(shown)
    tall = _HEAD + len(shown) * _ROW + (20 if more else 4 if shown else 0)
    parts = [
        element("rect", x=MARGIN - 8, y=y, width=_WIDTH - 2 * MARGIN + 16, height=tall, rx=10, class_="card"),
        name_element(MARGIN + 4, y + 20, task["name"], _LANE_X - MARGIN - 12, "name"),
        pen.words(_LANE_X, y + 20, f"{number} words", "name"),
        pen.words(_LANE_X, y + 38, f"{number} cut", "small"),
    ]
    for place, channel in enumerate(shown):
        parts.append(_lane_of(pen, f"{number}.{place}", channel, y + _HEAD + place * _ROW))
    if more > 0:
        parts.append(text_element(MARGIN + 20, y + tall - 6, f"… and {more} more channels", "small soft"))
    return element("g", "".join(parts), data_task=number), tall


def _lane_of(pen: Pen, name: str, channel: Model, y: float) -> str:
    middle = y + _LOT / 2
    return "".join(
        [
            name_element(MARGIN + 20, middle + 5, channel["name"], _LANE_X - MARGIN - 28, "small soft"),
            element("path", d=f"M{_LANE_X} {middle:g}H{_GATE_X:g}", class_="grid"),
            *(_lot(pen, f"{name} lot {at}", _GATE_X - 6 - (at + 1) * _STEP, y) for at in range(_PLACES)),
            _gate(pen, f"{name} state", _GATE_X, y),
            pen.words(_WORD_X, middle + 5, f"{name} words", "small"),
        ]
    )


def _lot(pen: Pen, fact: str, x: float, y: float) -> str:
    at = {"x": x, "y": y, "width": _LOT, "height": _LOT, "rx": 4}
    middle = f"M{x + _LOT / 2:g} {y - 1:g}l11 11l-11 11l-11 -11z"
    body = (
        element("rect", class_="lot", **at)
        + element("rect", class_="lot over", **at)
        + element("path", d=middle, class_="stop")
    )
    return pen.group(fact, _LOTS, body)


def _gate(pen: Pen, fact: str, x: float, y: float) -> str:
    """Shut while the channel waits."""
    return pen.group(fact, _STATES, element("path", d=f"M{x:g} {y - 3:g}v{_LOT + 6}", class_="gate"))


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    words = {"barrier": "a barrier", "data": "a buffer before it", "behind": "waits behind it", "event": "the end"}
    for lot, meaning in words.items():
        shown = still(_lot(Pen({"lot": _LOTS.index(lot)}), "lot", x, y))
        parts.append(shown + text_element(x + 28, y + 15, meaning, "small"))
        x += 54 + 6.4 * len(meaning)
    shut = still(_gate(Pen({"state": _STATES.index("waits")}), "state", x + 4, y))
    parts.append(shut + text_element(x + 16, y + 15, "shut until the others have it", "small"))
    return element("g", "".join(parts), class_="key", aria_hidden="true")
