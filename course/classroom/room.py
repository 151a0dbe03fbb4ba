"""What all requests to a class share: the roll, the scribe, who may come in, and how often."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar

from course.classroom.class_file import ClassFile, hash_of, spoken
from course.classroom.hub import HubUsers
from course.classroom.limits import Limit, Limiter
from course.classroom.model import class_model
from course.classroom.roll import Pupil, Roll
from course.classroom.scribe import Scribe
from course.classroom.sessions import KEPT, Sessions, is_key
from course.learner.class_events import SECRET

__all__ = ["EVENTS", "EVENTS_OF_ADDRESS", "FAILURES", "JOINS", "REQUESTS", "NotKeptError", "Room"]

_Result = TypeVar("_Result")

REQUESTS = Limit(burst=40, per_second=4)
"""Of one learner: a courier asks every five seconds, and brings what is new at most twice a second."""
FAILURES = Limit(burst=20, per_second=0.5)
"""Wrong codes and keys that are answered to one address; what is right is let in all the same."""
JOINS = Limit(burst=250, per_second=0.2)
"""Learners who join from one address: a room behind one router at once, and far from a full class."""
EVENTS = Limit(burst=2_000, per_second=2)
"""Events of one learner: the history of a whole course, then more than anybody can do."""
EVENTS_OF_ADDRESS = Limit(burst=40_000, per_second=100)
"""The same of a room behind one router."""
_MODEL_AGE_S = 5.0


class NotKeptError(Exception):
    """The disk did not take what was sent; whoever sent it keeps it and tries again."""


class Room:
    """One served class. `clock` gives seconds since 1970; with a `hub`, its users are let in and nobody else.

    Everything here runs on the event loop, but for the scribe, which has a connection of its own.
    """

    def __init__(
        self,
        file: ClassFile,
        writing: ClassFile,
        lessons: frozenset[int] = frozenset(),
        *,
        is_remote_allowed: bool = False,
        clock: Callable[[], float] = time.time,
        hub: HubUsers | None = None,
    ) -> None:
        self.path = file.path
        self.roll = Roll(file)
        self.scribe = Scribe(writing)
        self.sessions = Sessions(self.roll, self._keep_sessions)
        self.requests = Limiter(REQUESTS)
        self.failures = Limiter(FAILURES)
        self.joins = Limiter(JOINS)
        self.events = Limiter(EVENTS)
        self.events_of_address = Limiter(EVENTS_OF_ADDRESS)
        self.is_remote_allowed = is_remote_allowed
        self.clock = clock
        self.hub = hub
        self.trouble = ""
        self._lessons = lessons
        self._seen: dict[int, float] = {}
        self._model: tuple[float, int, str] | None = None

    async def keep(self, job: Callable[[ClassFile], _Result]) -> _Result:
        """Do this with the file and come back when it is on the disk.

        Raises:
            ClassError: what the job found wrong.
            NotKeptError: the disk refused.
        """
        try:
            kept = await asyncio.wrap_future(self.scribe.submit(job))
        except sqlite3.Error as error:
            self._model = None
            self.trouble = f"The class file takes nothing more: {error}. Learners' machines keep what they have."
            raise NotKeptError(f"the class cannot keep anything now ({error}); try again later") from error
        self.trouble = ""
        return kept

    async def _keep_sessions(self, kept: str) -> None:
        with contextlib.suppress(NotKeptError):  # then it is known until the server ends; `trouble` says so
            await self.keep(lambda file: file.set_about(KEPT, kept))

    # -- who is it -------------------------------------------------------------------------------------

    def pupil(self, secret: str) -> Pupil | None:
        """The learner who has this secret."""
        if SECRET.fullmatch(secret) is None:
            return None
        found = self.roll.by_secret.get(hash_of(secret))
        if found is None or self.roll.pupils.get(found.row.id) is not found:
            self.roll.refresh()  # joined, freed or taken out this moment
            found = self.roll.by_secret.get(hash_of(secret))
        if found is not None:
            self._seen[found.row.id] = self.clock()
        return found

    def is_code(self, given: str) -> bool:
        """Whether this is the code learners join with."""
        return spoken(given) == spoken(self.roll.about["code"])

    def is_key(self, given: str) -> bool:
        """Whether this is the instructor's key."""
        self.roll.refresh()
        return is_key(given, self.roll.about.get("key", ""))

    async def note_seen(self) -> None:
        """Write down who was heard of since the last time."""
        seen, self._seen = self._seen, {}
        if seen:
            await self.keep(lambda file: file.touch(seen))

    # -- what is shown ---------------------------------------------------------------------------------

    def model(self) -> str:
        """What the dashboard shows, as JSON; made anew when something changed, or a few seconds have passed."""
        now = self.clock()
        self.roll.refresh()
        made = self._model
        if made is None or made[1] != self.roll.num_changes or not 0 <= now - made[0] < _MODEL_AGE_S:
            model = class_model(self.roll, now, self._lessons) | {"trouble": self.trouble}
            made = self._model = (now, self.roll.num_changes, json.dumps(model, separators=(",", ":")))
        return made[2]

    def orders(self) -> dict[str, Any]:
        """What learners' machines are told."""
        self.roll.refresh()
        return self.roll.orders.for_learners()

    async def close(self) -> None:
        """Write down what is left; then nothing more is written."""
        with contextlib.suppress(NotKeptError):
            await self.note_seen()
        self.scribe.close()
