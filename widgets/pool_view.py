"""The memory of each TaskManager: which segment is where, and how large each pool may be just now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from refimpl.config import UNBOUNDED
from refimpl.job import JobSnapshot, TaskManagerSnapshot
from refimpl.memory import LocalPoolSnapshot
from refimpl.producer import QueuedBufferSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.letters import width_of
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model, moment_of

__all__ = ["PoolView", "pool_model"]

_STATES = ("free", "home", "queued", "reading", "own")
_WORDS = {
    "free": "free, for any pool",
    "home": "home in its pool",
    "queued": "waits in a queue",
    "reading": "being written or read",
    "own": "empty, with a channel",
}
_SQUARES = ("home", "queued", "reading", "own", "away", "absent")
_FACTS = ("home", "queued", "reading", "own", "marks")
_MAX_SQUARES = 16
_MAX_HOLDERS = 24
_MAX_SEGMENTS = 320
_ROW = 52
_CELL = 32
_PER_ROW = 16
_LIST_WIDTH = 510
_GRID_X = MARGIN + _LIST_WIDTH + 20
_WIDTH = _GRID_X + _PER_ROW * _CELL + MARGIN


def pool_model(snapshot: JobSnapshot, action: str = "") -> Model:
    """For each TaskManager its pools, the channels with buffers of their own, and who has each segment."""
    return {
        **moment_of("pools", snapshot, action),
        "task_managers": [_task_manager(each) for each in snapshot.task_managers],
    }


def _task_manager(part: TaskManagerSnapshot) -> Model:
    queued = _segments_in(sub.queue for partition in part.partitions for sub in partition.subpartitions)
    arrived = _segments_in(channel.queue for gate in part.gates for channel in gate.channels)
    segments: list[Model] = [{"holder": "", "state": "free"} for _ in range(part.pool.num_total)]
    pools = [partition.pool for partition in part.partitions] + list(part.gate_pools)
    buffers_of = [channel.buffers for gate in part.gates for channel in gate.channels if channel.buffers is not None]
    ready = {number for buffers in buffers_of for number in buffers.floating_segments}
    shown = [_pool(_letter(number), pool, queued | arrived, ready, segments) for number, pool in enumerate(pools)]
    channels: list[Model] = []
    for gate in part.gates:
        for channel in gate.channels:
            buffers = channel.buffers
            if buffers is None:
                continue
            letter = _letter(len(pools) + len(channels))
            states = dict.fromkeys(buffers.empty_segments, "own")
            states |= {number: "queued" if number in arrived else "reading" for number in buffers.lent_segments}
            for number, state in states.items():
                segments[number] = {"holder": letter, "state": state}
            channels.append(
                {
                    "name": f"{gate.name} from {channel.producer}",
                    "letter": letter,
                    "empty_buffers": len(buffers.empty_segments),
                    "used_buffers": len(buffers.lent_segments),
                }
            )
    return {
        "name": f"TaskManager {part.number}",
        "num_free_segments": part.pool.num_free,
        "num_total_segments": part.pool.num_total,
        "pools": shown,
        "channels": channels,
        "segments": segments,
    }


def _segments_in(queues: Iterable[Iterable[QueuedBufferSnapshot]]) -> set[int]:
    return {entry.segment_id for queue in queues for entry in queue if entry.data_type.is_buffer}


def _pool(letter: str, pool: LocalPoolSnapshot, waiting: set[int], ready: set[int], segments: list[Model]) -> Model:
    """One pool; what it has is written into `segments`. `waiting` are in a queue, `ready` empty with a channel."""
    states = dict.fromkeys(pool.idle_segments, "home")
    for number in pool.lent_segments:
        states[number] = "queued" if number in waiting else "own" if number in ready else "reading"
    for number, state in states.items():
        segments[number] = {"holder": letter, "state": state}
    counts = Counter(states.values())
    return {
        "name": pool.name,
        "letter": letter,
        "size_buffers": pool.size,
        "required_buffers": pool.num_required,
        "max_buffers": None if pool.num_max >= UNBOUNDED else pool.num_max,
        "home_buffers": counts["home"],
        "queued_buffers": counts["queued"],
        "reading_buffers": counts["reading"],
        "own_buffers": counts["own"],
        "num_waiting": pool.num_listeners,
        "is_available": pool.is_available,
    }


def _letter(number: int) -> str:
    """A, B, … Z, then AA, AB, …"""
    letters = chr(ord("A") + number % 26)
    return letters if number < 26 else _letter(number // 26 - 1) + letters


class PoolView(FactView):
    """Who holds each memory segment, how many, and how large each pool may be just now.

    Each small square on the left is a buffer a pool may have: it appears when the pool grows and goes when it
    shrinks. Each square on the right is a segment, with the letter of its holder. `MomentView` says what can be
    shown, and the options.

        PoolView(ThreadedRun(environment).start())
    """

    default_title = "Memory"
    kind = "pools"

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        return pool_model(snapshot, action)

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, part in enumerate(model["task_managers"]):
            facts[f"{number} free"] = part["num_free_segments"]
            for pool in part["pools"]:
                name = f"{number}{pool['letter']}"
                for fact in ("size", "home", "queued", "reading", "own"):
                    facts[f"{name} {fact}"] = pool[f"{fact}_buffers"]
                facts[f"{name} marks"] = _marks(pool)
                for place, state in enumerate(_square_states(pool)):
                    facts[f"{name} square {place}"] = _SQUARES.index(state)
                facts[f"{name} more"] = f"+{pool['size_buffers'] - _MAX_SQUARES}" if _is_large(pool) else ""
            for channel in part["channels"]:
                facts[f"{number}{channel['letter']} empty"] = channel["empty_buffers"]
                facts[f"{number}{channel['letter']} used"] = channel["used_buffers"]
            for place, segment in enumerate(part["segments"][:_MAX_SEGMENTS]):
                facts[f"{number} segment {place}"] = _STATES.index(segment["state"])
                facts[f"{number} holder {place}"] = segment["holder"]
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        parts, y = [], 0.0
        for number, part in enumerate(model["task_managers"]):
            drawn, height = _part(pen, number, part, y)
            parts.append(drawn)
            y += height + 22
        return Drawing("".join(parts) + _key(y), _WIDTH, y + 42)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = []
        for part in model["task_managers"]:
            lines.append(f"{part['name']}: {part['num_free_segments']} of {part['num_total_segments']} segments free")
            lines += [f"  {pool['letter']}  {_pool_words(pool)}" for pool in part["pools"]]
            lines += [f"  {each['letter']}  {_channel_words(each)}" for each in part["channels"]]
            lines.append(f"  segments: {_row_of_letters(part['segments'])}")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        parts = [
            f"{part['name']}: {part['num_free_segments']} of {part['num_total_segments']} segments free"
            + "".join(f", {pool['name']} has none left" for pool in part["pools"] if not pool["is_available"])
            for part in model["task_managers"]
        ]
        return "; ".join(parts)

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        tables: list[Table] = []
        for number, part in enumerate(model["task_managers"]):
            head = ["pool", "letter", "may have (buffers)", "requires", "at most", "home", "queued", "in use"]
            head += ["empty with channels", "marks"]
            rows = [
                [
                    pool["name"],
                    pool["letter"],
                    pen.cell(f"{number}{pool['letter']} size"),
                    pool["required_buffers"],
                    _most(pool),
                    *(pen.cell(f"{number}{pool['letter']} {fact}") for fact in _FACTS),
                ]
                for pool in part["pools"]
            ]
            tables.append((f"{part['name']}: pools", head, rows))
            if part["channels"]:
                rows = [
                    [
                        each["name"],
                        each["letter"],
                        *(pen.cell(f"{number}{each['letter']} {fact}") for fact in ("empty", "used")),
                    ]
                    for each in part["channels"]
                ]
                tables.append((f"{part['name']}: buffers of channels", ["channel", "letter", "empty", "full"], rows))
            rows = [
                [
                    str(place),
                    pen.cell(f"{number} segment {place}", tuple(_WORDS.values())),
                    pen.cell(f"{number} holder {place}"),
                ]
                for place in range(min(_MAX_SEGMENTS, part["num_total_segments"]))
            ]
            tables.append((f"{part['name']}: segments", ["segment", "where", "holder"], rows))
        return tables


# -- words -----------------------------------------------------------------------------------------


def _pool_words(pool: Model) -> str:
    words = (
        f"{pool['name']}: {pool['home_buffers']} home, {pool['queued_buffers']} queued, {pool['reading_buffers']} "
        f"in use, {pool['own_buffers']} empty with channels; "
        f"may have {pool['size_buffers']} ({pool['required_buffers']} to {_most(pool)})"
    )
    return f"{words}; {_marks(pool)}" if _marks(pool) else words


def _channel_words(channel: Model) -> str:
    return f"{channel['name']}: {channel['empty_buffers']} empty, {channel['used_buffers']} full, its own"


def _most(pool: Model) -> str:
    return "any number" if pool["max_buffers"] is None else str(pool["max_buffers"])


def _marks(pool: Model) -> str:
    waiting = f"{pool['num_waiting']} wait" if pool["num_waiting"] else ""
    return " · ".join(filter(None, ["" if pool["is_available"] else "▲ none left", waiting]))


def _row_of_letters(segments: list[Model], most: int = 64) -> str:
    """A letter for each segment, `.` for a free one; small where the buffer is home or empty."""
    marks = [
        (each["holder"].lower() if each["state"] in ("home", "own") else each["holder"]) or "."
        for each in segments[:most]
    ]
    more = f" … {len(segments) - most} more" if len(segments) > most else ""
    return " ".join(marks) + more


# -- the drawing -----------------------------------------------------------------------------------


def _square_states(pool: Model) -> list[str]:
    states = ["home"] * pool["home_buffers"] + ["queued"] * pool["queued_buffers"]
    states += ["reading"] * pool["reading_buffers"] + ["own"] * pool["own_buffers"]
    states += ["away"] * max(0, pool["size_buffers"] - len(states))
    return (states + ["absent"] * _MAX_SQUARES)[:_MAX_SQUARES]


def _is_large(pool: Model) -> bool:
    return bool(pool["size_buffers"] > _MAX_SQUARES)


def _part(pen: Pen, number: int, part: Model, y: float) -> tuple[str, float]:
    """One TaskManager: its holders on the left, its segments on the right."""
    total = f" of {part['num_total_segments']} segments free"
    drawn = [
        text_element(MARGIN, y + 16, part["name"], "name"),
        pen.words(MARGIN + 142, y + 16, f"{number} free", "soft", after=total),
    ]
    top = y + 34
    holders = [_pool_row(pen, number, pool, top + place * _ROW) for place, pool in enumerate(part["pools"])]
    top_of_channels = top + len(part["pools"]) * _ROW
    holders += [
        _channel_row(pen, number, channel, top_of_channels + place * 26)
        for place, channel in enumerate(part["channels"])
    ]
    drawn += holders[:_MAX_HOLDERS]
    num_channels_shown = max(0, min(len(part["channels"]), _MAX_HOLDERS - len(part["pools"])))
    bottom = top + min(_MAX_HOLDERS, len(part["pools"])) * _ROW + num_channels_shown * 26
    if (more := len(holders) - _MAX_HOLDERS) > 0:
        drawn.append(text_element(MARGIN, bottom + 14, f"… and {more} more holders, in the table", "soft"))
        bottom += 24
    shown = min(_MAX_SEGMENTS, part["num_total_segments"])
    drawn += [_segment(pen, number, place, top) for place in range(shown)]
    end_of_grid = top + -(-shown // _PER_ROW) * _CELL
    if more := part["num_total_segments"] - shown:
        drawn.append(text_element(_GRID_X, end_of_grid + 14, f"… and {more} more segments", "soft"))
        end_of_grid += 24
    return element("g", "".join(drawn), data_part=number), max(bottom, end_of_grid) - y


def _badge(letter: str, x: float, y: float) -> str:
    ring = element("rect", x=x, y=y, width=24, height=20, rx=6, class_="ring")
    return ring + text_element(x + 12, y + 15, letter, "small mid")


def _pool_row(pen: Pen, number: int, pool: Model, y: float) -> str:
    name = f"{number}{pool['letter']}"
    squares = []
    for place in range(_MAX_SQUARES):
        at = {"x": MARGIN + 34 + place * 20, "y": y + 23, "width": 15, "height": 15, "rx": 3}
        shape = element("rect", class_="square", **at) + element("rect", class_="square over", **at)
        squares.append(pen.group(f"{name} square {place}", _SQUARES, shape))
    limits = f" ({pool['required_buffers']} to {_most(pool)})"
    room = _LIST_WIDTH - 42 - width_of(f"may have 9999{limits}", "small")
    words = [
        name_element(MARGIN + 34, y + 13, pool["name"], room, "name"),
        pen.words(MARGIN + _LIST_WIDTH, y + 13, f"{name} size", "small soft end", before="may have ", after=limits),
        pen.words(MARGIN + 34 + _MAX_SQUARES * 20 + 4, y + 35, f"{name} more", "small"),
        pen.words(MARGIN + _LIST_WIDTH, y + 35, f"{name} marks", "small end"),
    ]
    return element("g", _badge(pool["letter"], MARGIN, y) + "".join(words + squares), data_pool=pool["letter"])


def _channel_row(pen: Pen, number: int, channel: Model, y: float) -> str:
    name = f"{number}{channel['letter']}"
    room = _LIST_WIDTH - 96 - width_of("999 empty ·", "small")
    words = name_element(MARGIN + 34, y + 15, channel["name"], room, "small")
    words += pen.words(MARGIN + _LIST_WIDTH - 54, y + 15, f"{name} empty", "small soft end", after=" empty ·")
    words += pen.words(MARGIN + _LIST_WIDTH, y + 15, f"{name} used", "small soft end", after=" full")
    return element("g", _badge(channel["letter"], MARGIN, y) + words, data_pool=channel["letter"])


def _segment(pen: Pen, number: int, place: int, top: float) -> str:
    x, y = _GRID_X + place % _PER_ROW * _CELL, top + place // _PER_ROW * _CELL
    return _cell(pen, f"{number} segment {place}", f"{number} holder {place}", x, y, f"segment {place}")


def _cell(pen: Pen, state: str, holder: str, x: float, y: float, name: str) -> str:
    at = {"x": x, "y": y, "width": _CELL - 4, "height": _CELL - 4, "rx": 4}
    body = (
        element("title", name)
        + element("rect", class_="square", **at)
        + element("rect", class_="square over", **at)
        + pen.words(x + _CELL / 2 - 2, y + 19, holder, "small mid holder")
    )
    return pen.group(state, _STATES, body)


def _key(y: float) -> str:
    """What the marks mean."""
    parts, x = [], float(MARGIN)
    for number, words in enumerate(_WORDS.values()):
        pen = Pen({"state": number, "holder": "" if number == 0 else "A"})
        parts.append(still(_cell(pen, "state", "holder", x, y, words)))
        parts.append(text_element(x + 34, y + 18, words, "small"))
        x += 46 + 6.4 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
