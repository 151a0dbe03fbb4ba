"""Your bytes above Flink's: where they differ first, and what probably happened there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from refimpl.memory import Buffer, BufferSlice
from widgets.facts import MARGIN, Drawing, Facts, FactView, Pen, Table, still
from widgets.recording import Recording
from widgets.svg import element, text_element
from widgets.text import shortened
from widgets.view_models import Model

__all__ = ["BytesBesideFlink", "bytes_model"]

_PER_ROW = 16
_ROWS = 4
_MAX_FRAMES = 200
_LEAST_ALIKE = 3
_MOST_MOVED = 64
_STATES = ("absent", "same", "differs", "missing")
_WORDS = ("", "the same", "differs", "not there")
_CELL, _TALL = 28, 24
_LINE = _TALL + 4
_BLOCK = 2 * _LINE + 30
_HEX_X = MARGIN + 148
_TEXT_X = _HEX_X + _PER_ROW * _CELL + 24
_WIDTH = _TEXT_X + _PER_ROW * 9 + 60

Given = bytes | bytearray | memoryview | Buffer | BufferSlice | str


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two byte strings, and which of their differences is looked at; 0 also where there is none."""

    names: tuple[str, str]
    both: tuple[bytes, bytes]
    differences: tuple[tuple[int, int], ...]
    number: int


def bytes_model(yours: bytes, flinks: bytes, names: Sequence[str] = ("yours", "Flink"), number: int = 0) -> Model:
    """The rows around one difference of two byte strings."""
    return _model(_Pair((names[0], names[1]), (yours, flinks), tuple(_differences(yours, flinks)), number))


def _model(pair: _Pair) -> Model:
    places = pair.differences
    start, end = places[pair.number] if places else (-1, -1)
    first = max(0, start // _PER_ROW - 1) * _PER_ROW
    return {
        "kind": "beside",
        "action": "",
        "time_ms": 0.0,
        "num_steps": pair.number,
        "num_differences": len(places),
        "sentence": _sentence(pair, start, end),
        "hint": _hint(*pair.both, places[0][0]) if places else "",
        "start_byte": first,
        "difference_bytes": start,
        "lanes": [
            {"name": name, "num_bytes": len(data), "bytes_hex": data[first : first + _ROWS * _PER_ROW].hex()}
            for name, data in zip(pair.names, pair.both, strict=True)
        ],
    }


def _differences(yours: bytes, flinks: bytes) -> list[tuple[int, int]]:
    """Runs of places that differ, from byte to byte; where one string has ended it differs."""
    runs: list[tuple[int, int]] = []
    for place, (mine, theirs) in enumerate(zip_longest(yours, flinks)):
        if mine == theirs:
            continue
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _sentence(pair: _Pair, start: int, end: int) -> str:
    (mine, theirs), (yours, flinks) = pair.names, pair.both
    if start < 0:
        return f"no difference in {len(yours)} bytes"
    if start >= min(len(yours), len(flinks)):
        (short, _), (long, data) = sorted(((mine, yours), (theirs, flinks)), key=lambda item: len(item[1]))
        return f"byte {start}: {short} ends here, {long} has {len(data) - start} more, from {data[start]:02x} on"
    which = "first difference" if pair.number == 0 else f"difference {pair.number + 1}"
    more = f" ({end - start} bytes differ)" if end - start > 1 else ""
    return f"{which} at byte {start} (0x{start:x}): {mine} {yours[start]:02x}, {theirs} {flinks[start]:02x}{more}"


def _hint(yours: bytes, flinks: bytes, start: int) -> str:
    """What one change would explain the rest; nothing if none would, or too little is left to tell."""
    mine, theirs = yours[start:], flinks[start:]
    for moved in range(1, _MOST_MOVED + 1):
        if len(theirs) >= _LEAST_ALIKE and mine[moved:] == theirs:
            return f"without {_bytes(moved)} at byte {start} the rest would be the same"
        if len(mine) >= _LEAST_ALIKE and theirs[moved:] == mine:
            return f"with {_bytes(moved)} more at byte {start} ({theirs[:moved].hex(' ')}) the rest would be the same"
    for width in (8, 4, 2):
        at = start - start % width if (start % width) else start
        for first in sorted({start, at, max(0, start - width + 1)}):
            turned = yours[first : first + width][::-1]
            if len(turned) == width and turned == flinks[first : first + width] and turned != turned[::-1]:
                return f"bytes {first} to {first + width}: the same, the other way round: big-endian and little-endian"
    return ""


def _bytes(number: int) -> str:
    return "this one byte" if number == 1 else f"these {number} bytes"


class BytesBesideFlink(FactView):
    """Two byte strings above each other, in hex and as text, with a caret below their first difference.

    The slider goes from difference to difference. `yours` and `flinks` are bytes, a `Buffer`, or words in hex.
    Options: `names`, what the two are called; `at`, the difference to begin with; `title`.

        BytesBesideFlink(bytes.fromhex("0000000568656c6c6f"), "00000005 68656c6c6f")

    Raises:
        LocalUsageError: one of the two is no bytes and no hex, or there is no such option.
    """

    default_title = "Bytes beside Flink's"
    kind = "beside"
    own_options = {"names": ("yours", "Flink")}  # noqa: RUF012

    def __init__(self, yours: Given, flinks: Given, **given: Any) -> None:
        both = _as_bytes("yours", yours), _as_bytes("flinks", flinks)
        names = given.get("names", self.own_options["names"])
        if not isinstance(names, tuple | list) or len(names) != 2:
            raise LocalUsageError(f"names={names!r}: give two, one for each")
        differences = tuple(_differences(*both))
        recording = Recording({}, _MAX_FRAMES)
        for number in range(min(_MAX_FRAMES, max(1, len(differences)))):
            pair = _Pair((str(names[0]), str(names[1])), both, differences, number)
            recording.add(pair)  # type: ignore[arg-type]  # no moment of a running job, and read by this view alone
        at = given.pop("at", None)
        super().__init__(recording, at=0 if at is None else at, **given)

    def known_of(self, snapshot: JobSnapshot | _Pair) -> Model:
        return {}

    def model_of(self, snapshot: JobSnapshot | _Pair, action: str, known: Model) -> Model:
        assert isinstance(snapshot, _Pair), "this view makes all of its moments itself"
        return _model(snapshot)

    @staticmethod
    def moment_words(model: Model) -> str:
        if not model["num_differences"]:
            return "equal"
        return f"difference {model['num_steps'] + 1} of {model['num_differences']}"

    @staticmethod
    def facts_of(model: Model) -> Facts:
        cells = _cells(model)
        at = model["difference_bytes"] - model["start_byte"]
        facts: Facts = {"sentence": model["sentence"], "caret": at if model["difference_bytes"] >= 0 else -1}
        for row in range(_ROWS):
            is_there = model["start_byte"] + row * _PER_ROW < max(lane["num_bytes"] for lane in model["lanes"])
            facts[f"{row} offset"] = str(model["start_byte"] + row * _PER_ROW) if is_there else ""
            for number in range(2):
                facts[f"{row} {number} name"] = shortened(model["lanes"][number]["name"], 12) if is_there else ""
                line = cells[number][row * _PER_ROW : (row + 1) * _PER_ROW]
                facts[f"{row} {number} text"] = _printable([byte for byte, _ in line])
                for column, (byte, state) in enumerate(line):
                    facts[f"{row} {number} {column}"] = "" if byte is None else f"{byte:02x}"
                    facts[f"{row} {number} {column} state"] = _STATES.index(state)
        return facts

    @staticmethod
    def draw(pen: Pen, model: Model) -> Drawing:
        parts = [pen.words(MARGIN, 14, "sentence", "name")]
        parts.append(text_element(MARGIN, 36, model["hint"], "soft"))
        top, num_rows = 58, _num_rows(model)
        for row in range(num_rows):
            y = top + row * _BLOCK
            parts.append(pen.words(MARGIN + 48, y + 17, f"{row} offset", "small soft end"))
            for number in range(2):
                line = y + number * _LINE
                parts.append(pen.words(MARGIN + 60, line + 17, f"{row} {number} name", "small"))
                parts += [_cell(pen, f"{row} {number} {column}", column, line) for column in range(_PER_ROW)]
                parts.append(pen.words(_TEXT_X, line + 17, f"{row} {number} text", "small mono"))
        caret = element("path", d=f"M{_HEX_X + 5:g} {top + 2 * _LINE + 14:g}l8 -12l8 12z", class_="cursor")
        parts.append(pen.moving("caret", _PER_ROW, _CELL, _BLOCK, element("title", "the difference") + caret))
        bottom = top + num_rows * _BLOCK
        return Drawing("".join(parts) + _key(bottom), _WIDTH, bottom + 42)

    @staticmethod
    def words_of(model: Model) -> list[str]:
        lanes = ", ".join(f"{lane['name']} {lane['num_bytes']} B" for lane in model["lanes"])
        lines = [lanes, model["sentence"], *([model["hint"]] if model["hint"] else [])]
        width = max(len(lane["name"]) for lane in model["lanes"])
        caret = model["difference_bytes"] - model["start_byte"]
        for row in range(_ROWS):
            first = row * _PER_ROW
            shown = [bytes.fromhex(lane["bytes_hex"])[first : first + _PER_ROW] for lane in model["lanes"]]
            if not any(shown):
                break
            for number, (lane, data) in enumerate(zip(model["lanes"], shown, strict=True)):
                offset = f"{model['start_byte'] + first:>6}" if number == 0 else " " * 6
                words = f"{offset}  {lane['name']:<{width}}  {data.hex(' '):<47}  {_printable(list(data))}"
                lines.append(words.rstrip())
            if model["difference_bytes"] >= 0 and 0 <= caret - first < _PER_ROW:
                lines.append(" " * (10 + width + 3 * (caret - first)) + "^^")
        return lines

    @staticmethod
    def status_of(model: Model) -> str:
        return str(model["sentence"]) + (f"; {model['hint']}" if model["hint"] else "")

    @staticmethod
    def tables_of(pen: Pen, model: Model) -> list[Table]:
        rows = [
            [
                pen.cell(f"{row} offset"),
                str(column),
                pen.cell(f"{row} 0 {column}"),
                pen.cell(f"{row} 1 {column}"),
                pen.cell(f"{row} 0 {column} state", _WORDS),
                pen.cell(f"{row} 1 {column} state", _WORDS),
            ]
            for row in range(_num_rows(model))
            for column in range(_PER_ROW)
        ]
        mine, theirs = (lane["name"] for lane in model["lanes"])
        head = ["row from byte", "and", mine, theirs, f"{mine} is", f"{theirs} is"]
        return [("Bytes around the difference", head, rows)]


# -- cells -----------------------------------------------------------------------------------------


def _as_bytes(name: str, given: Given) -> bytes:
    match given:
        case bytes() | bytearray() | memoryview():
            return bytes(given)
        case Buffer() | BufferSlice():
            return bytes(given.data)
        case str():
            try:
                return bytes.fromhex(given)
            except ValueError as error:
                raise LocalUsageError(f"{name}={shortened(repr(given), 40)} is no hex: {error}") from None
    raise LocalUsageError(f"{name} is a {type(given).__name__}; give bytes, a Buffer, or words in hex")


def _num_rows(model: Model) -> int:
    """How many rows there are to see; the same at every difference."""
    longest: int = max(lane["num_bytes"] for lane in model["lanes"])
    return max(1, min(_ROWS, -(-longest // _PER_ROW)))


def _cells(model: Model) -> list[list[tuple[int | None, str]]]:
    """For each lane the bytes of the window with their states."""
    both = [bytes.fromhex(lane["bytes_hex"]) for lane in model["lanes"]]
    lanes: list[list[tuple[int | None, str]]] = [[], []]
    for place in range(_ROWS * _PER_ROW):
        pair = [data[place] if place < len(data) else None for data in both]
        for lane, byte in zip(lanes, pair, strict=True):
            if pair == [None, None]:
                lane.append((None, "absent"))
            else:
                lane.append((byte, "missing" if byte is None else "same" if pair[0] == pair[1] else "differs"))
    return lanes


def _printable(line: Sequence[int | None]) -> str:
    return "".join(chr(byte) if 33 <= byte < 127 else "·" for byte in line if byte is not None)


def _cell(pen: Pen, fact: str, column: int, y: float) -> str:
    x = _HEX_X + column * _CELL
    at = {"x": x, "y": y, "width": _CELL - 2, "height": _TALL, "rx": 3}
    shape = element("rect", class_="pair", **at) + element("rect", class_="pair over", **at)
    return pen.group(f"{fact} state", _STATES, shape + pen.words(x + _CELL / 2 - 1, y + 17, fact, "small mid mono"))


def _key(y: float) -> str:
    parts, x = [], float(MARGIN)
    for state, words, value in (("same", "the same", "0a"), ("differs", "differs", "1b"), ("missing", "not there", "")):
        pen = Pen({" state": _STATES.index(state), "": value})
        cell = element("g", _cell(pen, "", 0, y), transform=f"translate({x - _HEX_X:g} 0)")
        parts.append(still(cell) + text_element(x + 34, y + 17, words, "small"))
        x += 60 + 6.4 * len(words)
    return element("g", "".join(parts), class_="key", aria_hidden="true")
