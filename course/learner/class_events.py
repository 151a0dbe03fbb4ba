"""What travels from a learner to a class: events of the progress file, reduced to the fields a class shows.

Both ends call `clean`: the learner's so that nothing else leaves the machine (no source, no prediction), the class's
because it trusts nobody. What is no event after that does not exist. An event's id follows from what it says, so the
same event sent twice, or sent and imported, is one event.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "ALPHABET", "DEFAULT_PORT", "FORMAT", "KINDS", "LATEST", "MAX_EVENTS", "SECRET", "bad_handle", "by_sight", "clean",
    "event_id", "folded", "number", "plain_json", "spoken",
]  # fmt: skip

FORMAT = "sluice-class/1"
DEFAULT_PORT = 8765
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of codes: without 0 1 I L O, which are mistaken for each other on a projector."""
MAX_EVENTS = 200
"""How many events one request may bring."""
KINDS = frozenset({"check", "hint", "reset", "swap", "catchup"})
SECRET = re.compile(r"[0-9a-f]{64}")
"""What a learner proves to be the one who joined with: 256 random bits of the learner's own machine."""

MAX_HANDLE = 24
_STATUSES = frozenset({"passed", "failed", "error", "timeout", "not_started"})
LATEST = 4_102_444_800.0  # the year 2100: no clock is that wrong by accident


def _text(pattern: str) -> Callable[[object], bool]:
    known = re.compile(pattern)
    return lambda value: isinstance(value, str) and known.fullmatch(value) is not None


def _whole(least: int, most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and least <= value <= most


_FIELDS: dict[str, Callable[[object], bool]] = {
    "exercise": _text(r"[0-9]{1,2}\.[0-9]{1,2}"),
    "status": lambda value: isinstance(value, str) and value in _STATUSES,
    "rule": _text(r"[A-Za-z0-9]{1,4}"),
    "code_hash": _text(r"(sha256:)?[0-9a-f]{6,64}"),
    "vectors": _text(r"[A-Za-z0-9][A-Za-z0-9._+ -]{0,39}"),
    "seed": _whole(-(2**63), 2**63 - 1),
    "rung": _whole(1, 5),
    "rules_passed": _whole(0, 99),
    "rules_total": _whole(0, 99),
}


def clean(event: object) -> dict[str, Any] | None:
    """The event with the fields a class knows; None if it is none of those a class takes.

    A field that is not what it should be is left out, like the ones that stay at home. A time nobody could have
    meant becomes 0, which stands for "when it arrived".
    """
    if not isinstance(event, Mapping) or not isinstance(event.get("event"), str) or event["event"] not in KINDS:
        return None
    found = {name: event[name] for name, is_right in _FIELDS.items() if is_right(event.get(name))}
    if "exercise" not in found or (event["event"] == "check" and "status" not in found):
        return None
    return {"event": event["event"], "time": number(event.get("time"), LATEST) or 0.0, **found}


def number(value: object, most: float) -> float | None:
    """This as a float, if it is a number from 0 to `most`; of a NaN neither bound holds."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= most else None


def event_id(cleaned: Mapping[str, Any]) -> str:
    """A name that two events share only if they say the same."""
    text = json.dumps(cleaned, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def bad_handle(handle: str) -> str | None:
    """Why this cannot be a handle, as a sentence; None if it can.

    A handle is shown to a whole room: letters, digits and `- _ .`, beginning with a letter or digit. So it can hold
    neither markup nor a spreadsheet's formula, nor turn the direction of the line it stands in.
    """
    if not 1 <= len(handle) <= MAX_HANDLE:
        return f"a handle has 1 to {MAX_HANDLE} characters, this one {len(handle)}"
    kinds = [unicodedata.category(letter)[0] for letter in handle]
    if kinds[0] not in "LN" or any(
        kind not in "LMN" and letter not in "-_." for kind, letter in zip(kinds, handle, strict=True)
    ):
        return "a handle is letters, digits, and - _ . inside, such as ada or team-7"
    if "MMM" in "".join(kinds):
        return "a handle has no more than two marks on a letter"
    return None


# Letters of other scripts that look like one of ours, as they are written and not as they sound.
_LOOKS_LIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјорсухԁԛԝһԍΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχϲϳԱՕՏՍհոսցօՈᎪᏴᎬᎻᎫᏦᎷᏢᎡᏚᎢᏙᎳᏃ",
    "ABESIJKMHOPCTXYaesijopcyxdqwhgABEZHIKMNOPTYXaeikvoptuxcjUOSUhnugoUABEHJKMPRSTVWZ",
)
_DIGITS = str.maketrans("10", "lo")


def folded(handle: str) -> str:
    """What two handles that look the same have in common: case, composed letters, look-alikes of other scripts.

    Source:  Unicode Technical Standard 39, confusables; those that a room can mistake for Latin letters
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", handle).translate(_LOOKS_LIKE)).casefold()


def by_sight(handle: str) -> str:
    """What two handles have in common that a room cannot tell apart: `folded`, and digits that look like letters."""
    return folded(handle).translate(_DIGITS)


def plain_json(raw: bytes) -> Any:
    """JSON as the standard has it.

    Raises:
        ValueError: it is not; too deep, too long a number, or a NaN included.
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(raw.decode("utf-8"), parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def spoken(word: str) -> str:
    """A code or key without what people add when they copy it: case, spaces, dashes."""
    return "".join(letter for letter in word.upper() if letter.isalnum())
