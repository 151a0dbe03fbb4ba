"""A class as one SQLite file: who joined, what they did, what the instructor decided.

What `commit` has come back from is on the disk: write-ahead log, `synchronous=FULL`. A killed process loses what it
had not acknowledged, and nothing else. Several processes may use one file: the server, `sluice class import`, a
notebook with a `ClassView`; all of them on one machine, as SQLite wants it.

Secrets are kept as hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from course.learner.class_events import ALPHABET, bad_handle, by_sight, clean, event_id, spoken
from course.places import state_folder

__all__ = [
    "ALPHABET",
    "Added",
    "ClassError",
    "ClassFile",
    "EventRow",
    "LearnerRow",
    "default_path",
    "hash_of",
    "spoken",
]

CODE_LETTERS = 9
"""Of 31 letters: 44 bits. With 1250 tries a second, from however many addresses, an even chance comes in 330 years.

So a right code is let in however many wrong ones came before it: a room behind one router shares an address.
"""
_RESERVED = "brought in as "  # and the handle, in place of the hash of a secret: nobody has it
KEY_LETTERS = 20
MAX_LEARNERS = 1_000
MAX_EVENTS_OF_ONE = 5_000
AWAY_AFTER_S = 120.0
"""Whoever was not heard of for this long is away."""

_APPLICATION = 0x534C4331
_VERSION = 1
_BUSY_S = 10.0
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE learners (
    id INTEGER PRIMARY KEY AUTOINCREMENT, handle TEXT NOT NULL, folded TEXT NOT NULL UNIQUE, secret TEXT UNIQUE,
    joined REAL NOT NULL, seen REAL NOT NULL, here_since REAL NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, learner INTEGER NOT NULL, id TEXT NOT NULL, at REAL NOT NULL,
    verified INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (learner, id));
CREATE TABLE actions (seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, body TEXT NOT NULL);
"""


class ClassError(Exception):
    """The class cannot do that; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class LearnerRow:
    """One learner. `secret` is the hash of what proves it; None if nobody holds the handle (imported, or freed)."""

    id: int
    handle: str
    secret: str | None
    joined: float
    seen: float
    here_since: float


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of one learner; `at` is when it happened by the class's own clock."""

    seq: int
    learner: int
    at: float
    is_verified: bool
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a batch: `num_new` events are kept now, `num_known` were kept before, the rest were refused."""

    num_new: int
    num_known: int
    num_refused: int


def default_path() -> Path:
    """The class file that commands use if they are not told another one."""
    return state_folder() / "class.sqlite"


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _random(num_letters: int, group: int) -> str:
    letters = "".join(secrets.choice(ALPHABET) for _ in range(num_letters))
    return "-".join(letters[start : start + group] for start in range(0, num_letters, group))


class ClassFile:
    """An open class file. One thread uses it at a time; each thread that needs one opens its own.

    Raises:
        ClassError: there is no such file (`create=False`), it is no class file, or it cannot be written.
    """

    def __init__(self, path: Path, *, create: bool = False, title: str | None = None) -> None:
        self.path = path
        with self._explained(), self._undamaged():
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # what learners did is nobody else's
            elif not path.is_file():
                raise ClassError(f"there is no class at {path}; `sluice class serve` starts one")
            self._sql = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._sql.text_factory = lambda raw: raw.decode("utf-8", errors="replace")  # a damaged file may hold any
            try:
                self._prepare(title)
            except BaseException:
                self._sql.close()
                raise

    def _prepare(self, title: str | None) -> None:
        (application,), (version,) = self._row("PRAGMA application_id"), self._row("PRAGMA user_version")
        if application == 0 and self._row("SELECT count(*) FROM sqlite_master") != (0,):
            raise ClassError(f"{self.path} is a database, but not of a class; name another file with --db")
        if application not in {0, _APPLICATION} or version > _VERSION:
            raise ClassError(f"{self.path} is not a class of this version of Sluice; name another file with --db")
        if application and not {"code", "title", "generation"} <= set(self.about()):
            raise ValueError("it does not say what the class is called")
        self._sql.execute("PRAGMA journal_mode=WAL")
        self._sql.execute("PRAGMA synchronous=FULL")
        with self.transaction():  # also finds out now whether the file can be written
            if application == 0 and self._row("PRAGMA application_id") == (0,):
                self._begin()
            if title is not None:
                self.set_about("title", title)
            self._fold_again()

    def _fold_again(self) -> None:
        """Bring what handles have in common to what it is today; two that were apart in an old class stay apart."""
        for learner, handle, known in self._sql.execute("SELECT id, handle, folded FROM learners").fetchall():
            if known != by_sight(handle):
                self._sql.execute("UPDATE OR IGNORE learners SET folded = ? WHERE id = ?", (by_sight(handle), learner))

    def _begin(self) -> None:
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._sql.execute(statement)
        self._sql.execute(f"PRAGMA application_id={_APPLICATION}")
        self._sql.execute(f"PRAGMA user_version={_VERSION}")
        first = {"title": "Sluice", "code": _random(CODE_LETTERS, 3), "generation": "0", "began": f"{time.time():.3f}"}
        for name, value in first.items():
            self.set_about(name, value)

    def close(self) -> None:
        """Close the file; what was committed stays."""
        self._sql.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClassError(f"{self.path} cannot be written: {error.strerror}; name another file with --db") from error
        except sqlite3.Error as error:
            why = f"{self.path} cannot be used as a class: {error}; name another file with --db"
            raise ClassError(why) from error

    @contextlib.contextmanager
    def _undamaged(self) -> Iterator[None]:
        """What can only come of a file that is not as it was written is said of the file."""
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            raise ClassError(f"{self.path} is damaged: {error}; name another file with --db") from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it is on the disk afterwards, or none.

        Raises:
            sqlite3.Error: the disk would not take it.
        """
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[Callable[[], None]]:
        """A part of a transaction that can be undone alone, by calling what this gives."""
        self._sql.execute("SAVEPOINT part")

        def undo() -> None:
            self._sql.execute("ROLLBACK TO part")

        yield undo
        self._sql.execute("RELEASE part")

    def _row(self, statement: str, *values: object) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = self._sql.execute(statement, values).fetchone()
        return () if found is None else found

    # -- what is known of the class --------------------------------------------------------------------

    def about(self) -> dict[str, str]:
        """Title, code, hash of the key, address, the certificate's code, and `generation`, which counts removals."""
        return dict(self._sql.execute("SELECT name, value FROM about"))

    def set_about(self, name: str, value: str) -> None:
        """Note something about the class; call inside a transaction."""
        self._sql.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def data_version(self) -> int:
        """Another number whenever another connection has committed something."""
        return int(self._row("PRAGMA data_version")[0])

    def make_key(self) -> str:
        """A new key for the instructor; the old one opens nothing any more."""
        key = _random(KEY_LETTERS, 5)
        with self.transaction():
            self.set_about("key", hash_of(spoken(key)))
        return key

    # -- learners, inside a transaction ----------------------------------------------------------------

    def join(self, handle: str, secret: str, now: float) -> LearnerRow:
        """Let a learner in; the same handle with the same secret is the same learner, however often.

        Raises:
            ClassError: no such handle is possible, another one has it, or the class is full.
        """
        wrong = bad_handle(handle)
        if wrong is not None:
            raise ClassError(wrong)
        mine = self._row("SELECT id, secret, handle FROM learners WHERE secret = ?", hash_of(secret))
        if mine and by_sight(mine[2]) != by_sight(handle):
            raise ClassError(f"you are in this class already, as {mine[2]}")
        held = mine or self._row("SELECT id, secret FROM learners WHERE folded = ?", by_sight(handle))
        if held and held[1] not in {None, hash_of(secret)}:
            said = f"the handle {handle} is taken in this class; choose another."
            if str(held[1]).startswith(_RESERVED):
                said = f"the handle {handle} was brought into this class by the instructor."
            raise ClassError(f"{said} If it is yours, the instructor can free it: sluice class free {handle}")
        if held:
            self._sql.execute("UPDATE learners SET secret = ? WHERE id = ?", (hash_of(secret), held[0]))
            self.touch({held[0]: now})
        else:
            self._insert_learner(handle, hash_of(secret), now)
        return next(row for row in self.learners() if row.secret == hash_of(secret))

    def lengthen_code(self) -> None:
        """Give a class of before a code as long as codes are; who has joined needs none."""
        if len(spoken(self.about()["code"])) < CODE_LETTERS:
            with self.transaction():
                self.set_about("code", _random(CODE_LETTERS, 3))

    def admit(self, handle: str, now: float) -> int:
        """The learner with this handle, made if there is none: then it is kept for whom the instructor frees it."""
        held = self._row("SELECT id FROM learners WHERE folded = ?", by_sight(handle))
        return int(held[0]) if held else self._insert_learner(handle, _RESERVED + by_sight(handle), now)

    def _insert_learner(self, handle: str, secret: str, now: float) -> int:
        if self._row("SELECT count(*) FROM learners")[0] >= MAX_LEARNERS:
            raise ClassError(f"the class is full: it has {MAX_LEARNERS} learners")
        seen = 0.0 if secret.startswith(_RESERVED) else now
        values = (handle, by_sight(handle), secret, now, seen, seen)
        statement = "INSERT INTO learners (handle, folded, secret, joined, seen, here_since) VALUES (?, ?, ?, ?, ?, ?)"
        return int(self._sql.execute(statement, values).lastrowid or 0)

    def touch(self, seen: Mapping[int, float]) -> None:
        """Note when learners were last heard of; whoever comes back from being away is here since now."""
        self._sql.executemany(
            "UPDATE learners SET here_since = CASE WHEN ?2 - seen > ?3 THEN ?2 ELSE here_since END, "
            "seen = max(seen, ?2) WHERE id = ?1",
            [(learner, at, AWAY_AFTER_S) for learner, at in seen.items()],
        )

    def free(self, handle: str) -> bool:
        """Let the next one who joins with this handle have it, and all that was done under it; False: no such."""
        changed = self._sql.execute("UPDATE learners SET secret = NULL WHERE folded = ?", (by_sight(handle),))
        return changed.rowcount == 1

    def remove(self, handle: str) -> bool:
        """Take a learner out, with everything kept of it; False: there is no such learner."""
        found = self._row("SELECT id FROM learners WHERE folded = ?", by_sight(handle))
        if not found:
            return False
        self._sql.execute("DELETE FROM events WHERE learner = ?", found)
        self._sql.execute("DELETE FROM learners WHERE id = ?", found)
        self.set_about("generation", str(int(self.about()["generation"]) + 1))
        return True

    def learners(self) -> list[LearnerRow]:
        """Everybody in the class, in the order of joining."""
        columns = "id, handle, secret, joined, seen, here_since"
        with self._undamaged():
            rows = self._sql.execute(f"SELECT {columns} FROM learners ORDER BY id")  # noqa: S608
            return [LearnerRow(int(row[0]), str(row[1]), row[2], *map(float, row[3:])) for row in rows]

    # -- events and actions, inside a transaction ------------------------------------------------------

    def add_events(
        self,
        learner: int,
        events: Iterable[object],
        now: float,
        *,
        clock_ahead_s: float = 0.0,
        is_verified: bool = False,
    ) -> Added:
        """Keep what is new among these; `clock_ahead_s` is how far ahead of ours the clock was that dated them.

        Raises:
            ClassError: this learner has sent more than a class keeps of one.
        """
        num_new = num_known = num_refused = 0
        (num_kept,) = self._row("SELECT count(*) FROM events WHERE learner = ?", learner)
        for event in events:
            body = clean(event)
            if body is None:
                num_refused += 1
                continue
            at = min(now, body["time"] - clock_ahead_s) if body["time"] else now
            row = (learner, event_id(body), max(0.0, at), int(is_verified), json.dumps(body, sort_keys=True))
            kept = self._sql.execute(
                "INSERT INTO events (learner, id, at, verified, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                row,
            )
            num_new += kept.rowcount
            num_known += 1 - kept.rowcount
        if num_kept + num_new > MAX_EVENTS_OF_ONE:
            raise ClassError(f"a class keeps {MAX_EVENTS_OF_ONE} events of one learner, and these would be more")
        return Added(num_new, num_known, num_refused)

    def add_action(self, body: Mapping[str, Any], now: float) -> None:
        """Keep what the instructor decided."""
        self._sql.execute("INSERT INTO actions (at, body) VALUES (?, ?)", (now, json.dumps(body, sort_keys=True)))

    def events_after(self, seq: int) -> list[EventRow]:
        """All events kept after the one of this number."""
        rows = self._sql.execute(
            "SELECT seq, learner, at, verified, body FROM events WHERE seq > ? ORDER BY seq", (seq,)
        )
        with self._undamaged():
            return [EventRow(row[0], row[1], float(row[2]), bool(row[3]), _event_of(row[4])) for row in rows]

    def actions(self) -> list[tuple[int, float, dict[str, Any]]]:
        """All that the instructor decided: number, time, and what."""
        rows = self._sql.execute("SELECT seq, at, body FROM actions ORDER BY seq")
        with self._undamaged():
            return [(seq, float(at), json.loads(body)) for seq, at, body in rows]


def _event_of(body: str) -> dict[str, Any]:
    found = clean(json.loads(body))
    if found is None:
        raise ValueError("it holds an event that is none")
    return found
