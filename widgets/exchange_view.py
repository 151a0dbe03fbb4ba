"""Two TaskManagers and the wire between them: what each has of a channel, and which frames are on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from refimpl.consumer import ChannelSnapshot
from refimpl.exchange import FrameSnapshot, ReaderSnapshot
from refimpl.job import JobSnapshot
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, paragraph, still
from widgets.moment_view import Source
from widgets.svg import element, name_element, text_element
from widgets.text import step_words
from widgets.view_models import Model, moment_of, topology

__all__ = ["ExchangeView", "exchange_model"]

_LATELY_MS = 200.0
_MAX_CONNECTIONS = 6
_MAX_CHANNELS = 8
_PLACES = 6
_MOST = 60
_CARD, _WIRE = 316, 428
_ROW, _HEAD = 40, 36
_STEP, _BOX, _TALL = 64, 58, 30
_WIRE_X = MARGIN + _CARD
_RIGHT_X = _WIRE_X + _WIRE
_WIDTH = _RIGHT_X + _CARD + MARGIN
_KINDS = ("none", "buffer", "event", "credit", "request", "other")
_KIND_WORDS = ("", "a buffer of data", "an event", "credit", "a request", "another message")
_End = tuple[ChannelSnapshot, ChannelSnapshot, ReaderSnapshot | None]  # a channel now, before, and its reader
_KIND_OF = {"Buffer": "buffer", "Event": "event", "AddCredit": "credit", "PartitionRequest": "request"}
_OTHERS = {
    "CancelPartitionRequest": "cancel", "CloseRequest": "close", "ResumeConsumption": "resume",
    "ErrorResponse": "error", "BacklogAnnouncement": "backlog",
}  # fmt: skip
_NONE = (
    "No channel crosses from one TaskManager to another, so there is no wire. Run the job on two TaskManagers: "
    "Simulation(job, num_task_managers=2), ThreadedRun(job, num_task_managers=2)."
)


def exchange_model(snapshot: JobSnapshot, known: Model, action: str = "", before: JobSnapshot | None = None) -> Model:
    """Each pair of TaskManagers of which one reads from the other.

    A simulation says which frames are on the wire. Of a real connection it is what one end has sent and the other
    has not got: numbers of buffers or events one way, credit the other way. A real wire is nearly always empty when
    one looks, so with a moment `before` it is also what has come since then.
    """
    then = [gate.channels for gate in (before or snapshot).gates]
    readers = {reader.receiver: reader for part in snapshot.task_managers for reader in part.readers}
    wires = {(wire.consumer, wire.producer): wire for wire in snapshot.wires}
    subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
    connections = []
    for consumer, producer in known["connections"]:
        channels, found = [], []
        for number in known["connections"][consumer, producer]:
            place, sub = known["channels"][number], subpartitions[number]
            channel = snapshot.gates[place["gate"]].channels[place["input"]]
            reader = readers.get(channel.receiver)
            queued = sum(entry.data_type.is_buffer for entry in sub.queue)
            channels.append(_channel(place, known, queued, sub.backlog, channel, reader))
            found.append((channel, then[place["gate"]][place["input"]], reader))
        wire = wires.get((consumer, producer))
        letters = {channel.receiver: number for number, (channel, *_) in enumerate(found)}
        responses, num_more = (_frames(wire.responses, letters), 0) if wire else _sent(found)
        connections.append(
            {
                "consumer": f"TaskManager {consumer}",
                "producer": f"TaskManager {producer}",
                "channels": channels,
                "responses": responses,
                "num_more_responses": num_more,
                "requests": _frames(wire.requests, letters) if wire else _promised(found),
                "num_more_requests": 0,
            }
        )
    lately = 0 if before is None else max(1, round(snapshot.time_ms - before.time_ms))
    return {**moment_of("exchange", snapshot, action), "lately_ms": lately, "connections": connections}


def _channel(
    place: Model, known: Model, queued: int, backlog: int, channel: ChannelSnapshot, reader: ReaderSnapshot | None
) -> Model:
    buffers = channel.buffers
    return {
        "name": place["name"],
        "reader": known["tasks"][place["to_task"]]["name"],
        "queued_buffers": queued,
        "backlog_buffers": backlog,
        "producer_credits": reader.credit if reader else 0,
        "is_in_line": bool(reader and reader.is_enqueued),
        "is_over": channel.is_released,
        "received_buffers": sum(entry.data_type.is_buffer for entry in channel.queue),
        "empty_buffers": buffers.num_available if buffers else 0,
        "unannounced_credits": buffers.num_unannounced if buffers else 0,
    }


def _frames(frames: Sequence[FrameSnapshot], letters: Mapping[bytes, int]) -> list[Model]:
    return [
        {
            "kind": _KIND_OF.get(frame.kind, "other"),
            "name": frame.kind,
            "channel": letters.get(frame.receiver, -1),
            "sequence": frame.sequence_number,
            "num_credits": max(0, frame.credit),
            "num_bytes": max(0, frame.num_bytes),
        }
        for frame in frames
    ]


def _sent(found: Sequence[_End]) -> tuple[list[Model], int]:
    """What producers have sent and consumers had not got before, by sequence number: the newest, and how many more."""
    whole = [
        range(before.num_received, reader.last_sequence_number + 1) if reader and not channel.is_released else range(0)
        for channel, before, reader in found
    ]
    aged = sorted(
        ((part[-1] - sequence, number, sequence) for number, part in enumerate(whole) for sequence in part[-_PLACES:]),
        reverse=True,
    )
    frames = [
        {"kind": "buffer", "name": "Buffer", "channel": number, "sequence": sequence, "num_credits": 0, "num_bytes": 0}
        for _age, number, sequence in aged[-_MOST:]
    ]
    return frames, sum(map(len, whole)) - len(frames)


def _promised(found: Sequence[_End]) -> list[Model]:
    """Credit that was announced, and that producers neither had before nor have used."""
    frames = []
    for number, (channel, before, reader) in enumerate(found):
        if channel.buffers is None or before.buffers is None or channel.is_released or reader is None:
            continue
        if before is channel:
            on_the_way = max(0, reader.last_sequence_number + 1 - channel.num_received)
            credit = channel.buffers.num_promised - reader.credit - on_the_way
        else:  # what came has used credit; an event is taken for data, as numbers do not tell
            used = channel.num_received - before.num_received
            credit = channel.buffers.num_promised - before.buffers.num_promised + used
        if credit > 0:
            frame = {"kind": "credit", "name": "AddCredit", "channel": number, "sequence": -1, "num_credits": credit}
            frames.append({**frame, "num_bytes": 0})
    return frames


class ExchangeView(FactView):
    """Two TaskManagers, the queues and credit of each channel between them, and the frames on the wire both ways.

    A frame is named after its channel: `a 12` is buffer 12 of channel a, `a +2` is credit for two more. A real wire is
    empty nearly always: of a job that runs the frames of the last fifth of a second are shown. `MomentView` says what
    can be shown, and the options.

        ExchangeView(Recording.of(Simulation(environment, num_task_managers=2, max_delay_ms=0.05)))
    """

    default_title = "Exchange"
    kind = "exchange"

    def __init__(self, source: Source, **given: Any) -> None:
        self._looks: deque[JobSnapshot] = deque(maxlen=_MOST)
        super().__init__(source, **given)

    def known_of(self, snapshot: JobSnapshot) -> Model:
        known = topology(snapshot)
        makers = [part.number for part in snapshot.task_managers for _ in part.partitions]
        takers = [part.number for part in snapshot.task_managers for _ in part.gates]
        connections: dict[tuple[int, int], list[int]] = {}
        for number, channel in enumerate(known["channels"]):
            if channel["is_remote"]:
                connections.setdefault((takers[channel["gate"]], makers[channel["output"]]), []).append(number)
        return {**known, "connections": dict(sorted(connections.items()))}

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        return exchange_model(snapshot, known, action, self._look_before(snapshot) if self._sampler else None)

    def _look_before(self, snapshot: JobSnapshot) -> JobSnapshot | None:
        """The first look of those that are not long ago, while the job runs."""
        if getattr(self._source, "is_done", False):
            return None
        lately = [each for each in list(self._looks) if 0 < snapshot.time_ms - each.time_ms <= _LATELY_MS]
        if not self._looks or self._looks[-1].time_ms < snapshot.time_ms:
            self._looks.append(snapshot)
        return lately[0] if lately else None

    @staticmethod
    def moment_words(model: Model) -> str:
        lately = _lately_words(model)
        return step_words(model) + (f" · on the wires {lately}" if lately else "")

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, connection in enumerate(model["connections"]):
            for place, channel in enumerate(connection["channels"]):
                facts[f"{number} sends {place}"] = _producer_words(channel)
                facts[f"{number} takes {place}"] = _consumer_words(channel)
            for way in ("responses", "requests"):
                frames = connection[way][-_PLACES:] if model["lately_ms"] else connection[way]
                more = _num_frames(connection, way) - _PLACES
                facts[f"{number} {way} more"] = f"+{more}" if more > 0 else ""
                for place in range(_PLACES):
                    frame = frames[place] if place < len(frames) else None
                    facts[f"{number} {way} {place}"] = _KINDS.index(frame["kind"] if frame else "none")
                    facts[f"{number} {way} {place} label"] = _label(frame) if frame else ""
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        if not model["connections"]:
            return paragraph(_NONE)
        parts, y = [], 0.0
        for number, connection in enumerate(model["connections"][:_MAX_CONNECTIONS]):
            drawn, height = _connection(pen, number, connection, y)
            parts.append(drawn)
            y += height + 20
        if more := len(model["connections"]) - _MAX_CONNECTIONS:
            words = f"… and {more} more connections, in the table" if more > 0 else ""
            parts.append(text_element(MARGIN, y + 6, words, "soft"))
            y += 20
        return Drawing("".join(parts) + _key(y + 4), _WIDTH, y + 50)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lines = [] if model["connections"] else [_NONE]
        for connection in model["connections"]:
            lines.append(f"{connection['producer']} → {connection['consumer']}")
            for number, channel in enumerate(connection["channels"]):
                lines.append(f"  {_letter(number)}  {channel['name']}: {_producer_words(channel)}")
                lines.append(f"     {channel['reader']}: {_consumer_words(channel)}")
            where = _lately_words(model) or "on the wire"
            for way, sign in (("responses", "→"), ("requests", "←")):
                more = connection[f"num_more_{way}"]
                lines.append(
                    f"  {where} {sign}  {_wire_words(connection[way])}" + (f" and {more} more" if more else "")
                )
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        if not model["connections"]:
            return "nothing crosses a wire"
        data = sum(_num_frames(connection, "responses") for connection in model["connections"])
        requests = sum(_num_frames(connection, "requests") for connection in model["connections"])
        channels = [channel for connection in model["connections"] for channel in connection["channels"]]
        stuck = [channel["name"] for channel in channels if _is_stuck(channel)]
        waits = f"; without credit: {', '.join(stuck[:3])}{' and more' if len(stuck) > 3 else ''}" if stuck else ""
        how = "went to consumers" if model["lately_ms"] else "on their way to consumers"
        return f"{data} frames {how}, {requests} to producers{waits}"

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        tables: list[Table] = []
        for number, connection in enumerate(model["connections"]):
            name = f"{connection['producer']} → {connection['consumer']}"
            rows = [
                [
                    channel["name"],
                    _letter(place),
                    pen.cell(f"{number} sends {place}"),
                    channel["reader"],
                    pen.cell(f"{number} takes {place}"),
                ]
                for place, channel in enumerate(connection["channels"])
            ]
            head = ["channel", "letter", "at the producer", "reader", "at the consumer"]
            tables.append((f"{name}: channels", head, rows))
            for way, words in (("responses", "to the consumer"), ("requests", "to the producer")):
                cells: list[list[Any]] = [
                    [str(place), pen.cell(fact, _KIND_WORDS), pen.cell(f"{fact} label")]
                    for place, fact in enumerate(f"{number} {way} {place}" for place in range(_PLACES))
                ]
                caption = f"{name}: on the wire {words}, the next to arrive first"
                tables.append((caption, ["place", "what", "label"], cells))
        return tables


# -- words -----------------------------------------------------------------------------------------


def _letter(number: int) -> str:
    """a, b, … z, then aa, ab, …; a dash for what belongs to no channel."""
    if number < 0:
        return "-"
    return chr(ord("a") + number) if number < 26 else _letter(number // 26 - 1) + _letter(number % 26)


def _label(frame: Model) -> str:
    letter = _letter(frame["channel"])
    match frame["kind"]:
        case "buffer":
            return f"{letter} {frame['sequence']}"
        case "event":
            return f"{letter} E{frame['sequence']}"
        case "credit":
            return f"{letter} +{frame['num_credits']}"
        case "request":
            return f"{letter} ?+{frame['num_credits']}"
    return f"{letter} {_OTHERS.get(frame['name'], frame['name'])}"


def _frame_words(frame: Model) -> str:
    of = f" of {_letter(frame['channel'])}" if frame["channel"] >= 0 else ""
    match frame["kind"]:
        case "buffer" | "event":
            size = f" ({frame['num_bytes']} B)" if frame["num_bytes"] else ""
            return f"{frame['kind']} {frame['sequence']}{of}{size}"
        case "credit":
            return f"credit +{frame['num_credits']}{of}"
        case "request":
            return f"request{of} with credit {frame['num_credits']}"
    return f"{frame['name']}{of}"


def _lately_words(model: Model) -> str:
    """Of which time the frames of a running job are; "" if they are those on the wire now."""
    return f"in the last {model['lately_ms'] / 1_000:.1f} s" if model["lately_ms"] else ""


def _num_frames(connection: Model, way: str) -> int:
    return len(connection[way]) + int(connection[f"num_more_{way}"])


def _wire_words(frames: Sequence[Model]) -> str:
    return ", ".join(map(_frame_words, frames)) or "nothing"


def _is_stuck(channel: Model) -> bool:
    return bool(channel["backlog_buffers"] and not channel["producer_credits"] and not channel["is_over"])


def _producer_words(channel: Model) -> str:
    marks = "✓ ended" if channel["is_over"] else "▲ no credit" if _is_stuck(channel) else ""
    marks = marks or ("its turn comes" if channel["is_in_line"] else "")
    queued, backlog, credit = channel["queued_buffers"], channel["backlog_buffers"], channel["producer_credits"]
    return f"queued {queued}, backlog {backlog}, credit {credit}" + (f" · {marks}" if marks else "")


def _consumer_words(channel: Model) -> str:
    return (
        f"received {channel['received_buffers']}, empty {channel['empty_buffers']}, "
        f"to announce {channel['unannounced_credits']}"
    )


# -- the drawing -----------------------------------------------------------------------------------


def _connection(pen: Pen, number: int, connection: Model, y: float) -> tuple[str, float]:
    """One pair: the producer on the left, the consumer on the right, the wire between them."""
    shown = connection["channels"][:_MAX_CHANNELS]
    more = len(connection["channels"]) - len(shown)
    tall = max(150.0, _HEAD + len(shown) * _ROW + (24 if more else 8))
    parts = []
    for x, name, role in (
        (MARGIN, connection["producer"], "produces"),
        (_RIGHT_X, connection["consumer"], "consumes"),
    ):
        parts.append(element("rect", x=x, y=y, width=_CARD, height=tall, rx=12, class_="card"))
        parts.append(text_element(x + 14, y + 24, name, "name"))
        parts.append(text_element(x + _CARD - 14, y + 24, role, "small soft end"))
        if more:
            parts.append(text_element(x + 14, y + tall - 8, f"… and {more} more channels, in the table", "small soft"))
    for place, channel in enumerate(shown):
        row = y + _HEAD + place * _ROW
        for x, words, fact in ((MARGIN, channel["name"], "sends"), (_RIGHT_X, channel["reader"], "takes")):
            parts.append(text_element(x + 14, row + 16, _letter(place), "name"))
            parts.append(name_element(x + 36, row + 16, words, _CARD - 44, "small"))
            parts.append(pen.words(x + 36, row + 32, f"{number} {fact} {place}", "small soft"))
    middle = y + tall / 2
    parts.append(_way(pen, f"{number} responses", middle - 42, is_to_right=True))
    parts.append(_way(pen, f"{number} requests", middle + 34, is_to_right=False))
    return element("g", "".join(parts), data_connection=number), tall


def _way(pen: Pen, name: str, y: float, *, is_to_right: bool) -> str:
    """One direction of a wire, the frame that arrives next nearest to where it goes."""
    left, right = _WIRE_X + 4, _RIGHT_X - 4
    words = "data and events →" if is_to_right else "← credit and requests"
    tip = f"M{right - 14:g} {y - 8:g}l14 8l-14 8z" if is_to_right else f"M{left + 14:g} {y - 8:g}l-14 8l14 8z"
    parts = [
        element("path", d=f"M{left:g} {y:g}H{right:g}", class_="track c0" if is_to_right else "track c1"),
        element("path", d=tip, class_="tip"),
        text_element((left + right) / 2, y - 22, words, "small soft mid"),
    ]
    for place in range(_PLACES):
        x = right - 20 - (place + 1) * _STEP if is_to_right else left + 20 + place * _STEP
        parts.append(_frame(pen, f"{name} {place}", f"{name} {place} label", x, y - _TALL / 2))
    more = left + 8 if is_to_right else right - 8
    parts.append(pen.words(more, y - 8, f"{name} more", f"small halo{'' if is_to_right else ' end'}"))
    return "".join(parts)


def _frame(pen: Pen, kind: str, label: str, x: float, y: float) -> str:
    at = {"x": x, "y": y, "width": _BOX, "height": _TALL, "rx": 4}
    body = element("rect", class_="parcel", **at) + element("rect", class_="parcel over", **at)
    return pen.group(kind, _KINDS, body + pen.words(x + _BOX / 2, y + 20, label, "small mid octal"))


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    samples = (("buffer", "a 12", "buffer 12 of channel a"), ("event", "a E13", "an event: needs no credit"),
               ("credit", "a +2", "credit for two buffers"), ("request", "a ?+2", "asks for a, with credit"),
               ("other", "a cancel", "another message"))  # fmt: skip
    for kind, label, words in samples:
        pen = Pen({"kind": _KINDS.index(kind), "label": label})
        parts.append(still(_frame(pen, "kind", "label", x, y)) + text_element(x + _BOX + 8, y + 19, words, "small"))
        x += _BOX + 20 + 6.1 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
