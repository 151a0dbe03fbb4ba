"""The bytes of a segment: where writer and reader stand in it, and what each byte is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from refimpl.memory import Buffer, BufferBuilder, BufferConsumer, BufferSlice, MemorySegment
from refimpl.producer import FIRST_BYTES, QueuedBufferSnapshot
from widgets.byte_parts import (
    KINDS,
    TypeNames,
    hex_rows,
    kind_of_each_byte,
    parts_of_record_bytes,
    parts_of_types,
)
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.moment_view import Source
from widgets.svg import element, name_element, text_element
from widgets.text import shortened, step_words
from widgets.view_models import Model, moment_of, topology

__all__ = ["Memory", "MemorySnapshot", "SegmentView", "segment_model"]

_MOST_BYTES = 256
_BYTES = 48
_CELL, _TALL, _ROW = 26, 26, 46
_LEFT = MARGIN + 48
_STATES = tuple(KINDS)
_SHOWN = ("length", "tag", "time", "value", "other", "partial", "event", "free")

Plain = bytes | bytearray | memoryview
Bare = MemorySegment | Buffer | BufferSlice | BufferBuilder | BufferConsumer | Plain


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """A piece of memory at one moment; below 0 it is not known how far it is written, or read.

    `num_changes` counts how often it was found changed, `last_change` is from which byte to which.
    """

    name: str
    segment_id: int
    state: str
    written_bytes: int
    read_bytes: int
    capacity_bytes: int
    data: bytes
    num_changes: int
    last_change: tuple[int, int]


class Memory:
    """A segment, a buffer, one of its two ends, or plain bytes, to be looked at again and again.

    Raises:
        LocalUsageError: it is none of these.
    """

    is_done = False

    def __init__(self, source: Bare, num_bytes: int = _MOST_BYTES, start: int = 0) -> None:
        self._source = source
        self._start, self._end = start, start + num_bytes
        self._num_changes = 0
        self._last_change = (-1, -1)
        self._before: bytes | None = None

    def snapshot(self) -> MemorySnapshot:
        """What is there now."""
        name, segment, state, written, read = _look(self._source)
        view = segment.view if isinstance(segment, MemorySegment) else memoryview(segment).cast("B")
        data = bytes(view[self._start : self._end]) if view is not None else b""
        self._note_change(data)
        number = segment.id if isinstance(segment, MemorySegment) else -1
        capacity = segment.size if isinstance(segment, MemorySegment) else len(memoryview(segment).cast("B"))
        state = "freed" if view is None else state
        return MemorySnapshot(name, number, state, written, read, capacity, data, self._num_changes, self._last_change)

    def _note_change(self, data: bytes) -> None:
        if self._before is not None and data != self._before:
            pairs = zip(self._before.ljust(len(data), b"\0"), data.ljust(len(self._before), b"\0"), strict=True)
            changed = [place for place, (old, new) in enumerate(pairs) if old != new]
            self._num_changes += 1
            self._last_change = (changed[0], changed[-1] + 1) if changed else (0, len(data))
        self._before = data


def _look(source: Bare) -> tuple[str, MemorySegment | Plain, str, int, int]:
    """A name, the memory, a state, how far it is written and read; -1 where that has no meaning."""
    match source:
        case MemorySegment():
            return f"segment {source.id}" if source.id >= 0 else "a segment", source, "", -1, -1
        case Buffer():
            return "a buffer", source.segment, f"{source.num_references} references", source.size, -1
        case BufferSlice():
            return "part of a buffer", source.segment, f"bytes {source.start} to {source.end}", source.end, source.start
        case BufferBuilder():
            uncommitted = source.written_bytes - source.committed_bytes
            words = "finished" if source.is_finished else "open"
            words += f", {uncommitted} B not committed" if uncommitted else ""
            return "a buffer and its writer", source.buffer.segment, words, source.written_bytes, -1
        case BufferConsumer():
            written = source.read_position + source.unread_bytes
            words = "finished" if source.is_finished else "open"
            return "a buffer and its reader", source.buffer.segment, words, written, source.read_position
        case bytes() | bytearray() | memoryview():
            return "bytes", source, "", -1, -1
    raise LocalUsageError(
        f"a {type(source).__name__} has no bytes to show; give a MemorySegment, a Buffer, its builder or consumer, "
        "bytes, or a job"
    )


# -- models ----------------------------------------------------------------------------------------


def segment_model(snapshot: JobSnapshot, known: Model, action: str = "") -> Model:
    """The first buffers of one queue, the head first, with what each byte is; `known` says which queue."""
    subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
    queue = subpartitions[known["channel"]].queue
    places = [_queued(queue[place] if place < len(queue) else None, known) for place in range(known["num_places"])]
    return {
        **moment_of("segments", snapshot, action),
        "what": known["name"],
        "places": places,
        "num_more_buffers": max(0, len(queue) - len(places)),
    }


def _queued(entry: QueuedBufferSnapshot | None, known: Model) -> Model:
    if entry is None:
        return _place("none", -1, 0, 0, known["segment_size_bytes"], b"", [])
    data = entry.first_bytes[: known["num_shown_bytes"]]
    if entry.data_type.is_event:
        parts = [{"kind": "event", "start_byte": 0, "num_bytes": len(data), "words": "event"}]
    else:
        parts = parts_of_record_bytes(data, entry.partial_record_bytes)
    state = "event" if entry.data_type.is_event else "finished" if entry.is_finished else "open"
    read = entry.written_bytes - entry.unread_bytes
    return _place(state, entry.segment_id, entry.written_bytes, read, entry.capacity_bytes, data, parts)


def _place(state: str, segment: int, written: int, read: int, capacity: int, data: bytes, parts: list[Model]) -> Model:
    return {
        "state": state,
        "segment_id": segment,
        "written_bytes": written,
        "read_bytes": read,
        "capacity_bytes": capacity,
        "bytes_hex": data.hex(),
        "parts": parts,
        "change": "",
    }


def _memory_model(found: MemorySnapshot, types: TypeNames | None, start: int) -> Model:
    is_all = found.written_bytes < 0
    written = found.capacity_bytes if is_all else found.written_bytes
    known = found.data[: max(0, written - start)] if isinstance(types, str) else found.data
    place = _place(
        found.state,
        found.segment_id,
        written,
        found.read_bytes,
        found.capacity_bytes,
        found.data,
        parts_of_types(types, known) if known else [],
    )
    place["is_all_shown"] = is_all
    first, end = found.last_change
    place["change"] = f"last change: bytes {start + first} to {start + end}" if first >= 0 else ""
    place["num_bytes_before"] = start
    return {
        "kind": "segments",
        "action": "",
        "time_ms": 0.0,
        "num_steps": found.num_changes,
        "what": found.name,
        "segment_size_bytes": found.capacity_bytes,
        "places": [place],
        "num_more_buffers": 0,
        "is_bare": True,
    }


class SegmentView(FactView):
    """Bytes in hex, each with what it is: a length (hatched), a tag, a time, a value; ▼ the writer, ▲ the reader.

    Of a job it shows the first buffers of one queue. Options besides those of `MomentView`: `channel`, by number
    or name (0); `num_places`, how many buffers (3); `num_bytes` of each (48, at most 64).

        SegmentView(Recording.of(Simulation(environment)), channel="source-0 → map[0]")

    A `MemorySegment`, `Buffer`, `BufferBuilder`, `BufferConsumer` or plain `bytes` it shows as it is, and again
    whenever it has changed. Options: `types`, what stands where, such as `{0: "int", 4: "long big", 12: "text 5"}`,
    "records" or "elements"; `num_bytes` (at most 256) from `start` on.

        SegmentView(MemorySegment.allocate(32), types={0: "int"})

    Raises:
        LocalUsageError: there is no such channel or type, or the source has no bytes.
    """

    default_title = "Bytes"
    kind = "segments"
    own_options = {"channel": 0, "num_places": 3, "num_bytes": None, "types": None, "start": 0}  # noqa: RUF012

    def __init__(self, source: Source | Bare, **given: Any) -> None:
        if isinstance(source, Bare):
            num_bytes = _count("num_bytes", given.get("num_bytes") or _MOST_BYTES, _MOST_BYTES)
            memory = Memory(source, num_bytes, _count("start", given.get("start", 0), 2**31, least=0))
            super().__init__(memory, **given)  # type: ignore[arg-type]  # of moments of memory, which `model_of` knows too
        else:
            super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot | MemorySnapshot) -> Model:
        if isinstance(snapshot, MemorySnapshot):
            return {"name": snapshot.name, "types": self.options["types"], "start": self.options["start"]}
        known = topology(snapshot)
        number = _channel(self.options["channel"], [channel["name"] for channel in known["channels"]])
        most = min(FIRST_BYTES, known["segment_size_bytes"])
        return {
            **known,
            "channel": number,
            "name": known["channels"][number]["name"],
            "num_places": _count("num_places", self.options["num_places"], 8),
            "num_shown_bytes": min(most, _count("num_bytes", self.options["num_bytes"] or _BYTES, FIRST_BYTES)),
        }

    def model_of(self, snapshot: JobSnapshot | MemorySnapshot, action: str, known: Model) -> Model:
        if isinstance(snapshot, MemorySnapshot):
            return _memory_model(snapshot, known["types"], known["start"])
        return {**segment_model(snapshot, known, action), "num_shown_bytes": known["num_shown_bytes"]}

    @staticmethod
    def moment_words(model: Model) -> str:
        if not model.get("is_bare"):
            return step_words(model)
        return ("as it was at first", "changed once")[n] if (n := model["num_steps"]) < 2 else f"changed {n} times"

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {"more": f"and {model['num_more_buffers']} more in the queue" if _more(model) else ""}
        for number, place in enumerate(model["places"]):
            facts[f"{number} title"] = _title(place)
            facts[f"{number} parts"] = _parts_words(place)
            facts[f"{number} change"] = place["change"]
            data, kinds, start = *_bytes_and_kinds(place), place.get("num_bytes_before", 0)
            shown = _num_shown(model)
            is_there = place["state"] != "none" and not place.get("is_all_shown")
            facts[f"{number} writer"] = _cursor(place["written_bytes"] - start, shown, is_there)
            facts[f"{number} reader"] = _cursor(place["read_bytes"] - start, shown, is_there)
            for at in range(shown):
                kind = kinds[at] if at < len(data) else _beyond(place, start + at)
                facts[f"{number} byte {at}"] = f"{data[at]:02x}" if kind not in ("free", "absent") else ""
                facts[f"{number} kind {at}"] = _STATES.index(kind)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        shown = _num_shown(model)
        per_row = 24 if shown in (24, 48) else 32 if shown > 32 else 16
        tall = 66 + -(-shown // per_row) * _ROW
        parts = [name_element(MARGIN, 14, model["what"], 860, "name")]
        parts += [_grid(pen, number, model, 30 + number * tall, per_row) for number in range(len(model["places"]))]
        bottom = 30.0 + len(model["places"]) * tall
        parts.append(pen.words(MARGIN, bottom + 2, "more", "soft"))
        return Drawing("".join(parts) + _key(bottom + 14), max(_LEFT + per_row * _CELL + MARGIN, 900), bottom + 70)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [model["what"]]
        for number, place in enumerate(model["places"]):
            name = "" if model.get("is_bare") else f"{'head' if number == 0 else f'place {number}'}: "
            lines.append(f"{name}{_title(place)}" + (f"; {place['change']}" if place["change"] else ""))
            data, kinds = _bytes_and_kinds(place)
            lines += hex_rows(data, kinds, place.get("num_bytes_before", 0))
            words = " · ".join(f"{_range(part)} {part['words']}" for part in place["parts"])
            lines += wrap(words, 96, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)
        if _more(model):
            lines.append(f"and {model['num_more_buffers']} more in the queue")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        places = [place for place in model["places"] if place["state"] != "none"]
        if not places:
            return f"{model['what']}: the queue is empty"
        return f"{model['what']}: {_title(places[0])}; {_parts_words(places[0], 160)}".rstrip("; ")

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        tables: list[Table] = []
        for number, _ in enumerate(model["places"]):
            rows = [
                [str(at), pen.cell(f"{number} byte {at}"), pen.cell(f"{number} kind {at}", tuple(KINDS.values()))]
                for at in range(_num_shown(model))
            ]
            name = model["what"] if model.get("is_bare") else f"{model['what']}, place {number}"
            tables.append((f"{name}: bytes", ["byte", "in hex", "what it is"], rows))
        return tables


# -- words and numbers -----------------------------------------------------------------------------


def _channel(wanted: int | str, names: Sequence[str]) -> int:
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < len(names):
        return wanted
    if not names:
        raise LocalUsageError(
            "this job has no channels, so no bytes: all its operators are chained, and hand records on as they are; "
            "rebalance() or key_by() between two of them makes channels"
        )
    known = ", ".join(f"{number} {name!r}" for number, name in enumerate(names))
    raise LocalUsageError(f"channel={wanted!r}: the channels are {known}")


def _count(name: str, value: object, most: int, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LocalUsageError(f"{name}={value!r} cannot work: from {least} to {most}")
    return value


def _more(model: Model) -> bool:
    return bool(model["num_more_buffers"])


def _num_shown(model: Model) -> int:
    """How many bytes of each place are drawn: always the same while one thing is looked at."""
    if "num_shown_bytes" in model:
        return int(model["num_shown_bytes"])
    left: int = model["segment_size_bytes"] - model["places"][0]["num_bytes_before"]
    return min(_MOST_BYTES, left)


def _bytes_and_kinds(place: Model) -> tuple[bytes, list[str]]:
    data = bytes.fromhex(place["bytes_hex"])
    written = place["written_bytes"] - place.get("num_bytes_before", 0)
    return data, kind_of_each_byte(place["parts"], len(data), written)


def _beyond(place: Model, at: int) -> str:
    """What is drawn where no byte is shown."""
    return "free" if place["state"] not in ("none", "event", "freed") and at < place["capacity_bytes"] else "absent"


def _cursor(at: int, shown: int, is_there: bool) -> int:
    return at if is_there and 0 <= at < shown else -1


def _title(place: Model) -> str:
    if place["state"] == "none":
        return "no buffer"
    segment = f"segment {place['segment_id']}" if place["segment_id"] >= 0 else "memory of its own"
    read = f", {place['read_bytes']} read" if place["read_bytes"] >= 0 else ""
    state = f", {place['state']}" if place["state"] else ""
    if place.get("is_all_shown"):
        return f"{segment}, {place['capacity_bytes']} B{state}"
    return f"{segment}: {place['written_bytes']} of {place['capacity_bytes']} B written{read}{state}"


def _range(part: Model) -> str:
    end = part["start_byte"] + part["num_bytes"] - 1
    return f"{part['start_byte']}" if part["num_bytes"] == 1 else f"{part['start_byte']}-{end}"


def _parts_words(place: Model, most: int = 118) -> str:
    return shortened(" · ".join(f"{_range(part)} {part['words']}" for part in place["parts"]), most)


# -- the drawing -----------------------------------------------------------------------------------


def _grid(pen: Pen, number: int, model: Model, y: float, per_row: int) -> str:
    """One buffer: its name, its bytes in rows, the two cursors, and what the bytes are."""
    parts = [pen.words(MARGIN, y + 14, f"{number} title"), pen.words(900, y + 14, f"{number} change", "small end")]
    top = y + 38
    start = model["places"][number].get("num_bytes_before", 0)
    shown = _num_shown(model)
    parts += [
        text_element(_LEFT - 8, top + first // per_row * _ROW + 18, str(start + first), "small soft end")
        for first in range(0, shown, per_row)
    ]
    for at in range(shown):
        x, row = _LEFT + at % per_row * _CELL, top + at // per_row * _ROW
        parts.append(_byte(pen, f"{number} kind {at}", f"{number} byte {at}", x, row))
    writer = element("path", d=f"M{_LEFT - 6} {top - 11}h12l-6 9z", class_="cursor")
    reader = element("path", d=f"M{_LEFT - 6} {top + _TALL + 11}h12l-6 -9z", class_="cursor")
    parts.append(pen.moving(f"{number} writer", per_row, _CELL, _ROW, element("title", "the writer") + writer))
    parts.append(pen.moving(f"{number} reader", per_row, _CELL, _ROW, element("title", "the reader") + reader))
    bottom = top + -(-shown // per_row) * _ROW
    parts.append(pen.words(_LEFT, bottom + 4, f"{number} parts", "small soft"))
    return element("g", "".join(parts), data_place=number)


def _byte(pen: Pen, kind: str, byte: str, x: float, y: float) -> str:
    at = {"x": x, "y": y, "width": _CELL - 2, "height": _TALL, "rx": 3}
    body = element("rect", class_="octet", **at) + element("rect", class_="octet over", **at)
    return pen.group(kind, _STATES, body + pen.words(x + _CELL / 2 - 1, y + 18, byte, "small mid mono octal"))


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    marks = text_element(900, y + 44, "▼ the writer stands here   ▲ the reader stands here", "small end")
    for kind in _SHOWN:
        words = KINDS[kind]
        pen = Pen({"kind": _STATES.index(kind), "byte": "" if kind == "free" else "0a"})
        parts.append(still(_byte(pen, "kind", "byte", x, y)) + text_element(x + 32, y + 18, words, "small"))
        x += 46 + 6.3 * len(words)
    return element("g", "".join(parts) + marks, class_="key", aria_hidden="true")
