"""The credit of each remote channel: where every promise stands, and which empty buffer backs it."""

from __future__ import annotations

from collections.abc import Mapping

from refimpl.exchange import ReaderSnapshot
from refimpl.job import JobSnapshot
from widgets.facts import GONE, MARGIN, Drawing, Facts, FactView, Pen, Table, paragraph
from widgets.svg import element, name_element, text_element
from widgets.view_models import Model, moment_of

__all__ = ["CreditView", "credit_model"]

_MAX_ROWS = 32
_MAX_TOKENS = 7
_MAX_FLOATING = 8
_ROW = 92
_STEP = 20
_BACKLOG_X = MARGIN + 242
_STATIONS = (("producer", "with the producer"), ("flight", "on the wire"), ("unannounced", "to be announced"))
_STATION_X = _BACKLOG_X + 132
_STATION_WIDTH = _MAX_TOKENS * _STEP + 20
_BUFFERS_X = _STATION_X + len(_STATIONS) * _STATION_WIDTH + 22
_WIDTH = _BUFFERS_X + 12 * _STEP + 20 + MARGIN
_TOKEN = ("off", "on")
_SQUARE = ("used", "own")
_FLOAT = ("absent", "floating")
_WAITS = ("off", "queued")
_NO_CREDIT = {
    "local": "No channel crosses from one TaskManager to another, and what is local needs no credit: the consumer "
    "reads the producer's queue. Run the job on two TaskManagers to see credit.",
    "before credits": "This job runs without credits (credit_based=False): what is sent waits in the connection.",
}


def credit_model(snapshot: JobSnapshot, known: Model, action: str = "") -> Model:
    """The ledger of each remote channel; what an event costs is nothing, so only data is counted."""
    readers = {reader.receiver: reader for part in snapshot.task_managers for reader in part.readers}
    subpartitions = [sub for partition in snapshot.partitions for sub in partition.subpartitions]
    channels = []
    for place, sub in zip(known["channels"], subpartitions, strict=True):
        if place["is_remote"]:
            ledger = _ledger(snapshot, place, readers)
            if ledger:
                task = known["tasks"][place["to_task"]]["name"]
                channels.append({"name": place["name"], "reader": task, "queued_buffers": sub.backlog, **ledger})
    reason = "" if channels else "before credits" if any(c["is_remote"] for c in known["channels"]) else "local"
    return {**moment_of("credits", snapshot, action), "channels": channels, "reason": reason}


def _ledger(snapshot: JobSnapshot, place: Model, readers: Mapping[bytes, ReaderSnapshot]) -> Model | None:
    channel = snapshot.gates[place["gate"]].channels[place["input"]]
    buffers = channel.buffers
    if buffers is None:
        return None
    reader = readers.get(channel.receiver)
    at_producer = min(reader.credit, buffers.num_promised) if reader is not None else 0
    is_over = channel.is_released
    return {
        "exclusive_buffers": buffers.num_exclusive,
        "empty_exclusive_buffers": buffers.num_exclusive_available,
        "empty_floating_buffers": buffers.num_floating_available,
        "wanted_buffers": buffers.num_required,
        "backlog_buffers": 0 if is_over else max(0, buffers.num_required - buffers.num_exclusive),
        "received_buffers": sum(entry.data_type.is_buffer for entry in channel.queue),
        "producer_credits": 0 if is_over else at_producer,
        # The two ends of a running job are looked at one after the other.
        "flight_credits": 0 if is_over else max(0, buffers.num_promised - at_producer),
        "unannounced_credits": 0 if is_over else buffers.num_unannounced,
        "is_waiting_for_floating": buffers.is_waiting_for_floating,
        "is_over": is_over,
        # Of a channel that reads it follows, and a stored picture is known by its model.
        **({"still_read_buffers": len(buffers.lent_segments)} if is_over else {}),
    }


class CreditView(FactView):
    """The ledger of each remote channel: backlog, credit with the producer, on the wire and not yet announced.

    Each disc is one credit, and each square on the right an empty buffer that backs it: there are as many of one as
    of the other. A square with a dashed outline is floating, which other channels may have next. A channel that has
    ended has none: its own have gone back to its TaskManager, each as soon as nobody read it any more. `MomentView`
    says what can be shown, and the options.

        CreditView(ThreadedRun(environment, num_task_managers=2).start())
    """

    default_title = "Credit"
    kind = "credits"

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        return credit_model(snapshot, known, action)

    @staticmethod
    def facts_of(model: Model) -> Facts:
        facts: Facts = {}
        for number, channel in enumerate(model["channels"]):
            for name, _ in _STATIONS:
                facts[f"{number} {name}"] = channel[f"{name}_credits"]
            facts[f"{number} backlog"] = channel["backlog_buffers"]
            facts[f"{number} own"] = "" if channel["is_over"] else channel["empty_exclusive_buffers"]
            facts[f"{number} floating"] = channel["empty_floating_buffers"]
            facts[f"{number} received"] = channel["received_buffers"]
            facts[f"{number} marks"] = _marks(channel)
            if number >= _MAX_ROWS:
                continue
            for name, _ in _STATIONS:
                count = channel[f"{name}_credits"]
                facts |= {f"{number} {name} {place}": int(place < count) for place in range(_MAX_TOKENS)}
                facts[f"{number} {name} more"] = _more(count, _MAX_TOKENS)
            num_empty = channel["empty_exclusive_buffers"]
            num_here = channel.get("still_read_buffers", channel["exclusive_buffers"])
            for place in range(min(4, channel["exclusive_buffers"])):
                facts[f"{number} own {place}"] = int(place < num_empty) if place < num_here else GONE
            for place in range(_MAX_FLOATING):
                facts[f"{number} floating {place}"] = int(place < channel["empty_floating_buffers"])
            for place in range(4):
                facts[f"{number} waits {place}"] = int(place < channel["backlog_buffers"])
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        if model["reason"]:
            return paragraph(_NO_CREDIT[model["reason"]])
        shown = model["channels"][:_MAX_ROWS]
        rows = [_row(pen, number, channel, 30 + number * _ROW) for number, channel in enumerate(shown)]
        bottom = 30 + len(shown) * _ROW
        if more := len(model["channels"]) - len(shown):
            rows.append(text_element(MARGIN, bottom + 14, f"… and {more} more channels, in the table", "soft"))
            bottom += 26
        return Drawing(_heads() + "".join(rows) + _key(bottom + 2), _WIDTH, bottom + 40)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        if model["reason"]:
            return [_NO_CREDIT[model["reason"]]]
        return [_channel_words(channel) for channel in model["channels"]]

    @staticmethod
    def status_of(model: Model) -> str:
        if model["reason"]:
            return "no channel has credit"
        total = {name: sum(c[f"{name}_credits"] for c in model["channels"]) for name, _ in _STATIONS}
        backlog = sum(channel["backlog_buffers"] for channel in model["channels"])
        stuck = [c["name"] for c in model["channels"] if _is_stuck(c)]
        waits = f"; without credit: {', '.join(stuck[:3])}{' and more' if len(stuck) > 3 else ''}" if stuck else ""
        return (
            f"credits: {total['producer']} with producers, {total['flight']} on the wire, "
            f"{total['unannounced']} to be announced; backlog {backlog}{waits}"
        )

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        head = [
            "channel", "to", "backlog", "credit with the producer", "on the wire", "to be announced",
            "empty own buffers", "empty floating buffers", "received, unread", "marks",
        ]  # fmt: skip
        names = ("backlog", *(name for name, _ in _STATIONS), "own", "floating", "received", "marks")
        rows = [
            [channel["name"], channel["reader"], *(pen.cell(f"{number} {name}") for name in names)]
            for number, channel in enumerate(model["channels"])
        ]
        return [("Credit of remote channels, in buffers", head, rows)]


# -- words -----------------------------------------------------------------------------------------


def _channel_words(channel: Model) -> str:
    marks = _marks(channel)
    own = f"{channel['empty_exclusive_buffers']} of {channel['exclusive_buffers']} own"
    if channel["is_over"]:
        still_read = channel.get("still_read_buffers", 0)
        own = "none of its own" + (f" ({still_read} still read)" if still_read else "")
    return (
        f"{channel['name']} → {channel['reader']}: backlog {channel['backlog_buffers']}; "
        f"credit {channel['producer_credits']} with the producer, {channel['flight_credits']} on the wire, "
        f"{channel['unannounced_credits']} to be announced; empty buffers "
        f"{own}, {channel['empty_floating_buffers']} floating; {channel['received_buffers']} received"
        + (f"; {marks}" if marks else "")
    )


def _is_stuck(channel: Model) -> bool:
    """Whether data waits at the producer and there is no promise it could use."""
    return bool(channel["queued_buffers"] and not channel["producer_credits"] and not channel["is_over"])


def _marks(channel: Model) -> str:
    if channel["is_over"]:
        return "✓ ended"
    stuck = "▲ no credit" if _is_stuck(channel) else ""
    waiting = "waits for a floating buffer" if channel["is_waiting_for_floating"] else ""
    return " · ".join(filter(None, [stuck, waiting]))


def _more(number: int, most: int) -> str:
    return f"+{number - most}" if number > most else ""


# -- the drawing -----------------------------------------------------------------------------------


def _heads() -> str:
    heads = [text_element(_BACKLOG_X, 10, "backlog", "small soft")]
    for place, (_, words) in enumerate(_STATIONS):
        heads.append(text_element(_STATION_X + place * _STATION_WIDTH, 10, f"credit {words}", "small soft"))
    heads.append(text_element(_BUFFERS_X, 10, "empty buffers", "small soft"))
    return "".join(heads)


def _row(pen: Pen, number: int, channel: Model, y: float) -> str:
    """One channel: what waits, where its credit stands, which buffers back it."""
    at = {"x": MARGIN - 8, "y": y, "width": _WIDTH - 2 * MARGIN + 16, "height": _ROW - 10, "rx": 10}
    parts = [
        element("rect", class_="card", **at),
        name_element(MARGIN + 6, y + 26, channel["name"], _BACKLOG_X - MARGIN - 14, "name"),
        name_element(MARGIN + 6, y + 45, f"→ {channel['reader']}", _BACKLOG_X - MARGIN - 14, "soft"),
        pen.words(MARGIN + 6, y + 67, f"{number} marks", "small"),
        pen.words(_BACKLOG_X, y + 28, f"{number} backlog", "big"),
    ]
    for place in range(4):
        square = {"x": _BACKLOG_X + 28 + place * _STEP, "y": y + 14, "width": 15, "height": 15, "rx": 3}
        shape = element("rect", class_="square", **square) + element("rect", class_="square over", **square)
        parts.append(pen.group(f"{number} waits {place}", _WAITS, shape))
    parts.append(pen.words(_BACKLOG_X, y + 56, f"{number} received", "small soft", after=" received, unread"))
    parts += [_station(pen, number, name, _STATION_X + n * _STATION_WIDTH, y) for n, (name, _) in enumerate(_STATIONS)]
    return element("g", "".join([*parts, _buffers(pen, number, channel, y)]), data_row=number)


def _station(pen: Pen, number: int, name: str, x: float, y: float) -> str:
    """One place where credit can be: a disc for each, and the number."""
    rail = element("rect", x=x - 4, y=y + 38, width=_MAX_TOKENS * _STEP + 6, height=24, rx=12, class_="rail")
    discs = [
        pen.group(f"{number} {name} {place}", _TOKEN, _disc(x + 10 + place * _STEP, y + 50))
        for place in range(_MAX_TOKENS)
    ]
    words = pen.words(x, y + 28, f"{number} {name}", "big")
    more = pen.words(x + _MAX_TOKENS * _STEP, y + 28, f"{number} {name} more", "small end")
    return rail + "".join(discs) + words + more


def _disc(x: float, y: float) -> str:
    return element("circle", cx=x, cy=y, r=7, class_="disc")


def _buffers(pen: Pen, number: int, channel: Model, y: float) -> str:
    """The empty buffers: own ones first, then floating ones."""
    num_own = min(4, channel["exclusive_buffers"])
    parts = [
        pen.group(f"{number} own {place}", _SQUARE, _square(_BUFFERS_X + place * _STEP, y + 42, ""))
        for place in range(num_own)
    ]
    start = _BUFFERS_X + num_own * _STEP + 12
    for place in range(_MAX_FLOATING):
        square = _square(start + place * _STEP, y + 42, " dashed")
        parts.append(pen.group(f"{number} floating {place}", _FLOAT, square))
    own = pen.words(_BUFFERS_X, y + 28, f"{number} own", "small", after=f" of {channel['exclusive_buffers']} own")
    return own + pen.words(_BUFFERS_X + 96, y + 28, f"{number} floating", "small", after=" floating") + "".join(parts)


def _square(x: float, y: float, class_: str) -> str:
    at = {"x": x, "y": y, "width": 16, "height": 16, "rx": 3}
    return element("rect", class_=f"square{class_}", **at) + element("rect", class_=f"square over{class_}", **at)


def _key(y: float) -> str:
    disc = element("g", _disc(MARGIN + 8, y + 12), data_state="on")
    parts = [disc, text_element(MARGIN + 24, y + 16, "one credit: the producer may send one buffer of data", "small")]
    for x, state, class_, words in (
        (MARGIN + 376, "own", "", "empty buffer of the channel"),
        (MARGIN + 586, "floating", " dashed", "floating, empty"),
        (MARGIN + 726, "used", "", "own, in use"),
        (MARGIN + 846, "queued", "", "waits at the producer"),
    ):
        parts.append(element("g", _square(x, y + 4, class_), data_state=state))
        parts.append(text_element(x + 24, y + 16, words, "small"))
    return element("g", "".join(parts), class_="key", aria_hidden="true")
