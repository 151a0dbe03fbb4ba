"""From the progress file to the class: what it does not have yet, in order, as often as it takes.

The progress file is the outbox. Nothing is queued twice: how far the class has it is a number of bytes, which moves
when the class has said that it keeps what came before. Sent again after a crash, an event is still the same event.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from course.curriculum.manifest import EXERCISES, LESSONS
from course.learner.class_events import FORMAT, LATEST, clean, number, plain_json
from course.learner.membership import Membership, Said
from course.learner.pinned import PinnedConnection

__all__ = ["ClassGone", "ClassRefused", "Link", "Outbox", "plain_orders"]

_TIMEOUT_S = 8.0
_MAX_ANSWER_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
_EVENTS_A_TIME = 150
_TAIL_BYTES = 1024


class ClassGone(Exception):  # noqa: N818 - it is no error of anybody's
    """No class answers there; the text says how."""


class ClassRefused(Exception):  # noqa: N818
    """The class answered no; the text is its sentence, `status` its number, `wait_s` when it may be asked again."""

    def __init__(self, sentence: str, status: int, wait_s: float) -> None:
        super().__init__(sentence)
        self.status = status
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Link:
    """Requests to one class. No proxy is asked: a class is in the same room.

    With the code of a `certificate` they are encrypted, and go to whoever has that one.
    """

    host: str
    port: int
    certificate: str = ""
    timeout_s: float = _TIMEOUT_S

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, secret: str = "") -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            ClassGone: nobody answered, or something that is no class.
            ClassRefused: the class said no.
        """
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        where = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        connection = self._connection()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            raw, status = answer.read(_MAX_ANSWER_BYTES + 1), answer.status
            wait = answer.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ClassGone(f"no class answers at {where} ({why})") from error
        finally:
            connection.close()
        found = _object(raw)
        if found is None or (status == 200) == ("error" in found):
            raise ClassGone(f"what answers at {where} is no class of Sluice")
        if status != 200:
            # What another machine says is shown in a terminal: it is text of one line, and not too long.
            sentence = "".join(letter for letter in str(found["error"])[:300] if letter.isprintable())
            raise ClassRefused(sentence, status, float(wait) if wait.isdecimal() and len(wait) < 5 else 0.0)
        return found

    def _connection(self) -> http.client.HTTPConnection:
        if self.certificate:
            return PinnedConnection(self.host, self.port, self.certificate, self.timeout_s)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = plain_json(raw) if len(raw) <= _MAX_ANSWER_BYTES else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def plain_orders(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The decisions in a class's answer; what this version does not know is left out."""
    given = answer.get("orders")
    orders = given if isinstance(given, dict) else {}

    def numbers(name: str, most: int) -> dict[str, int]:
        values = orders.get(name)
        known = values.items() if isinstance(values, dict) else ()
        return {
            each: number for each, number in known if each in EXERCISES and type(number) is int and 0 <= number <= most
        }

    checkpoint, catchup = orders.get("checkpoint"), orders.get("catchup")
    return {
        "checkpoint": checkpoint if isinstance(checkpoint, str) and checkpoint in EXERCISES else "",
        "catchup": catchup if type(catchup) is int and catchup in LESSONS else 0,
        "hints": numbers("hints", 5),
        "resets": numbers("resets", 1_000_000),
    }


class Outbox:
    """Brings what is new in `file` to the class of `member`; `said` is how far it is, and is moved on.

    `keep` is called whenever `said` changed, so that what is known is on the disk.
    """

    def __init__(
        self,
        file: Path,
        member: Membership,
        said: Said,
        keep: Callable[[Said], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._member = member
        self._link = Link(member.host, member.port, member.certificate)
        self._said = said
        self._keep = keep
        self._clock = clock

    def deliver(self) -> int:
        """Send all that is there, in batches; return how many events the class did not have before.

        Raises:
            ClassGone: it does not answer; everything stays to be sent.
            ClassRefused: it says no.
        """
        num_new = 0
        while batch := self._next_batch():
            events, end, tail = batch
            if events:
                sent_at = self._clock()
                answer = self._link.ask("POST", "/api/events", {"now": sent_at, "events": events}, self._member.secret)
                self._heard(answer)
                num_new += answer["new"] if type(answer.get("new")) is int else 0
            self._said.sent, self._said.tail = end, tail
            self._keep(self._said)
        return num_new

    def ask_orders(self) -> None:
        """Hear what the class has decided.

        Raises:
            ClassGone: it does not answer.
            ClassRefused: it says no.
        """
        before = dict(self._said.orders)
        self._heard(self._link.ask("GET", "/api/orders", None, self._member.secret))
        if self._said.orders != before:
            self._keep(self._said)

    def _heard(self, answer: Mapping[str, Any]) -> None:
        now, theirs = self._clock(), number(answer.get("now"), LATEST)
        if theirs is None:
            raise ClassGone(f"what answers at {self._member.host}:{self._member.port} is no class of Sluice ({FORMAT})")
        self._said.reached_at, self._said.error = now, ""
        self._said.clock_ahead_s = now - theirs
        self._said.orders = plain_orders(answer)

    # -- what is there to send -------------------------------------------------------------------------

    def num_waiting(self) -> int:
        """How many events wait to be sent."""
        try:
            with self._file.open("rb") as file:
                file.seek(self._start(file))
                return sum(_event(line) is not None for line in file)
        except OSError:
            return 0

    def _next_batch(self) -> tuple[list[dict[str, Any]], int, str] | None:
        """The next events, where they end in the file, and the hash of what lies before; None if none are left."""
        try:
            with self._file.open("rb") as file:
                start = self._start(file)
                file.seek(start)
                chunk = file.read(_CHUNK_BYTES)
                events, taken = _events_in(chunk)
                return (events, start + taken, _tail(file, start + taken)) if taken else None
        except OSError:
            return None

    def _start(self, file: BinaryIO) -> int:
        """Where to go on; another file in the place of ours is sent from its beginning."""
        if self._said.tail != _tail(file, self._said.sent):
            self._said.sent, self._said.tail = 0, ""
        return self._said.sent


def _tail(file: BinaryIO, end: int) -> str:
    """A hash of the last bytes before `end`; "" for no bytes, and something else if the file is not that long."""
    start = max(0, end - _TAIL_BYTES)
    file.seek(start)
    raw = file.read(end - start)
    return hashlib.sha256(raw).hexdigest() if raw else ""


def _events_in(chunk: bytes) -> tuple[list[dict[str, Any]], int]:
    """The events of whole lines, as many as go into one request, and how many bytes these lines take."""
    events: list[dict[str, Any]] = []
    taken = 0
    while len(events) < _EVENTS_A_TIME and (end := chunk.find(b"\n", taken)) >= 0:
        event = _event(chunk[taken:end])
        events += [event] if event is not None else []
        taken = end + 1
    if not taken and len(chunk) == _CHUNK_BYTES:
        taken = len(chunk)  # no event is that long: damage, which is passed over
    return events, taken


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        return clean(plain_json(line))
    except ValueError:
        return None
