"""Who may do what: the instructor's key, the browser that showed it, the learner's secret.

The key is typed once into the page and never part of an address; what the browser keeps instead is a cookie that
scripts cannot read and other sites cannot send.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sys
from collections.abc import Awaitable, Callable

from course.classroom.class_file import ClassError, ClassFile, hash_of, spoken
from course.classroom.roll import Roll

__all__ = ["COOKIE", "KEPT", "Sessions", "instructor_key", "is_key"]

COOKIE = "sluice_class"
KEPT = "sessions"
"""Where the class file has them."""
_MOST_SESSIONS = 20


def is_key(given: str, kept_hash: str) -> bool:
    """Whether this is the instructor's key, however it was typed."""
    return bool(kept_hash) and hmac.compare_digest(hash_of(spoken(given)), kept_hash)


def instructor_key(file: ClassFile) -> str:
    """The key that opens this class, from the file beside it that only its owner can read; made if there is none.

    If it takes the place of one that was lost, that is said.

    Raises:
        ClassError: that file cannot be written.
    """
    place = file.path.with_name(f"{file.path.name}.key")
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))["key"]
        if isinstance(kept, str) and is_key(kept, file.about().get("key", "")):
            return kept
    except (OSError, ValueError, KeyError, TypeError):
        pass  # lost or damaged: below there is another
    is_another = "key" in file.about()
    key = file.make_key()
    new = place.with_name(f"{place.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as text:
            json.dump({"key": key}, text)
        new.replace(place)
    except OSError as error:
        raise ClassError(f"{place} cannot be written: {error.strerror}; name another file with --db") from error
    if is_another:
        print(
            f"! The key of this class was not found in {place}: there is a new one, which `sluice class token` prints. "
            f"The one of before, and the browsers that showed it, open nothing any more.",
            file=sys.stderr,
        )
    return key


class Sessions:
    """The browsers that have shown the key this class has now; of too many, the oldest must show it again.

    They are kept with the class, as hashes that only go with this key: a server that starts again knows them, and
    with another key all of them have to show that one. `keep` puts what is to be known on the disk.
    """

    def __init__(self, roll: Roll, keep: Callable[[str], Awaitable[None]]) -> None:
        self._roll = roll
        self._keep = keep
        self._open = dict.fromkeys(roll.about.get(KEPT, "").split())

    async def begin(self) -> str:
        """A cookie for a browser that has just shown the key."""
        cookie = secrets.token_urlsafe(32)
        self._open[self._hash(cookie)] = None
        while len(self._open) > _MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        await self._keep(" ".join(self._open))
        return cookie

    def holds(self, cookie: str | None) -> bool:
        """Whether this cookie is one of ours."""
        return cookie is not None and self._hash(cookie) in self._open

    async def end(self, cookie: str | None) -> None:
        """This browser has to show the key again."""
        if self.holds(cookie):
            del self._open[self._hash(str(cookie))]
            await self._keep(" ".join(self._open))

    def _hash(self, cookie: str) -> str:
        self._roll.refresh()
        return hash_of(f"{self._roll.about.get('key', '')} {cookie}")
