"""The learner's side on disk: which class this learner is in, and what the class last said.

`membership.json` is written by `sluice join` and holds the learner's secret; `class-said.json` is written by the
courier. Both stand beside the progress file. Without the first there is no class, and nothing here does anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course.learner.class_events import DEFAULT_PORT, SECRET, spoken
from course.places import state_folder

__all__ = [
    "Address", "AddressError", "Membership", "Said", "begin", "current", "forget", "is_in_class", "keep", "keep_said",
    "news", "read_said", "secret_for", "unlocked_rung",
]  # fmt: skip

_ADDRESS = re.compile(
    r"(?:(?P<code>[^@]*)@)?(?:https?://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?"
)


class AddressError(ValueError):
    """What was typed is no CODE@HOST:PORT."""


@dataclass(frozen=True, slots=True)
class Address:
    """What a learner types: the code, and where the class is."""

    code: str
    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> Address:
        """Read CODE@HOST:PORT; without a port it is the usual one.

        Raises:
            AddressError: it is something else.
        """
        found = _ADDRESS.fullmatch(text.strip())
        if found is None or not found["code"]:
            raise AddressError(f"{text!r} is not CODE@HOST:PORT, such as K7M-2QX-9PT@192.168.1.20:{DEFAULT_PORT}")
        port = int(found["port"] or DEFAULT_PORT)
        if not 1 <= port <= 65_535:
            raise AddressError(f"{port} is not a port; ports are numbers from 1 to 65535")
        return cls(found["code"], found["host"].strip("[]"), port)


@dataclass(frozen=True, slots=True)
class Membership:
    """A learner in a class, and the secret that proves it there.

    `certificate` is the code of the class's certificate; empty where nothing is encrypted.
    """

    host: str
    port: int
    handle: str
    secret: str
    title: str = ""
    certificate: str = ""


@dataclass(slots=True)
class Said:
    """What the courier knows: how far it is, what the class decided, and what went wrong last.

    `secret` says for which membership; of another one nothing here counts. `sent` is the number of bytes of the
    progress file that the class has; `tail` is a hash of the last ones of them, to notice another file in its place.
    """

    secret: str = ""
    sent: int = 0
    tail: str = ""
    reached_at: float = 0.0
    clock_ahead_s: float = 0.0
    error: str = ""
    orders: dict[str, Any] = field(default_factory=dict)
    obeyed: dict[str, Any] = field(default_factory=dict)


def _told_file() -> Path:
    return state_folder() / "class-told.json"


def secret_for(code: str) -> str:
    """This learner's secret in the class of this code: the same for every try, on every address of the class.

    It follows from a secret that never leaves this machine, so no class knows what another one is shown.

    Raises:
        OSError: that secret can be neither read nor made.
    """
    import hmac
    import secrets

    file = state_folder() / "learner-secret.json"
    own = _read(file).get("secret")
    if not isinstance(own, str) or SECRET.fullmatch(own) is None:
        own = secrets.token_hex(32)
        _write(file, {"secret": own})
    return hmac.new(bytes.fromhex(own), spoken(code).encode(), "sha256").hexdigest()


def _membership_file() -> Path:
    return state_folder() / "membership.json"


def _said_file() -> Path:
    return state_folder() / "class-said.json"


def is_in_class() -> bool:
    """Whether this learner is in a class; costs one look at the folder."""
    return _membership_file().is_file()


def current() -> Membership | None:
    """The class this learner is in; None if there is none, or what is there cannot be read."""
    found = _read(_membership_file())
    try:
        member = Membership(**found)
        is_right = (
            isinstance(member.secret, str)
            and SECRET.fullmatch(member.secret) is not None
            and type(member.port) is int
            and isinstance(member.host, str)
            and isinstance(member.handle, str)
            and isinstance(member.title, str)
            and isinstance(member.certificate, str)
        )
    except TypeError:
        return None
    return member if is_right else None


def keep(member: Membership) -> None:
    """Write down which class this learner is in, where only the learner can read it.

    Raises:
        OSError: the folder cannot be written.
    """
    _write(_membership_file(), asdict(member))


def begin(member: Membership, orders: dict[str, Any]) -> None:
    """Be in this class from now on; `orders` are those that held when it let the learner in.

    Raises:
        OSError: the folder cannot be written.
    """
    said = read_said(member)
    if not said.orders:  # not been here before: what was reset before one came is no news
        resets = orders.get("resets", {})
        said.obeyed["resets"] = dict(resets)
        _write(_told_file(), {"secret": member.secret, "resets": resets})
    said.orders, said.error = orders, ""
    keep_said(said)
    keep(member)


def forget() -> None:
    """Leave the class; the courier notices and ends."""
    for file in (_membership_file(), _said_file(), _told_file()):
        file.unlink(missing_ok=True)


def read_said(member: Membership) -> Said:
    """What is known of this membership's class."""
    try:
        said = Said(**_read(_said_file()))
        is_right = isinstance(said.orders, dict) and isinstance(said.obeyed, dict) and type(said.sent) is int
    except TypeError:
        is_right = False
    return said if is_right and said.secret == member.secret else Said(secret=member.secret)


def keep_said(said: Said) -> None:
    """Write down what is known; if the disk is full, the next time will do."""
    with contextlib.suppress(OSError):
        _write(_said_file(), asdict(said))


def unlocked_rung(exercise: str) -> int:
    """The hint up to which the instructor has opened this exercise for all; 0 if not at all."""
    member = current()
    hints = read_said(member).orders.get("hints", {}) if member is not None else {}
    rung = hints.get(exercise, 0) if isinstance(hints, dict) else 0
    return rung if type(rung) is int and 0 <= rung <= 5 else 0


def news() -> list[str]:
    """What the class has decided since this learner was last told, in sentences; telling is what this does."""
    member = current()
    if member is None:
        return []
    orders, told = read_said(member).orders, _read(_told_file())
    if told.get("secret") != member.secret:
        told = {}
    if all(told.get(name) == orders.get(name) for name in ("checkpoint", "hints", "resets", "catchup")):
        return []
    lines = []
    if orders.get("checkpoint") and orders["checkpoint"] != told.get("checkpoint"):
        lines.append(f"{member.title}: the class is at {orders['checkpoint']} now.")
    for exercise, rung in orders.get("hints", {}).items():
        if rung > told.get("hints", {}).get(exercise, 0):
            lines.append(f"{member.title}: hints of {exercise} are open to rung {rung}.")
    for exercise, number in orders.get("resets", {}).items():
        if number > told.get("resets", {}).get(exercise, 0):
            lines.append(
                f"{member.title}: all start {exercise} afresh; reset gives you the stub, and your version is kept."
            )
    if orders.get("catchup", 0) > told.get("catchup", 0):
        lines.append(
            f"{member.title}: all are caught up to lesson {orders['catchup']}; our parts stand in for those before it."
        )
    with contextlib.suppress(OSError):
        _write(_told_file(), {"secret": member.secret, **orders})
    return lines


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, value: dict[str, Any]) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as text:
        json.dump(value, text, indent=1, sort_keys=True)
    new.replace(file)
