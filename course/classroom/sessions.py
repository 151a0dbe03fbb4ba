"""Who may do what: the instructor's key, the browser that showed it, the learner's secret.

The key is typed once into the page and never part of an address; what the browser keeps instead is a cookie that
scripts cannot read and other sites cannot send. It dies with the server.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets

from course.classroom.class_file import ClassError, ClassFile, hash_of, spoken

__all__ = ["COOKIE", "Sessions", "instructor_key", "is_key"]

COOKIE = "sluice_class"
_MOST_SESSIONS = 20


def is_key(given: str, kept_hash: str) -> bool:
    """Whether this is the instructor's key, however it was typed."""
    return bool(kept_hash) and hmac.compare_digest(hash_of(spoken(given)), kept_hash)


def instructor_key(file: ClassFile) -> str:
    """The key that opens this class, from the file beside it that only its owner can read; made if there is none.

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
    key = file.make_key()
    new = place.with_name(f"{place.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as text:
            json.dump({"key": key}, text)
        new.replace(place)
    except OSError as error:
        raise ClassError(f"{place} cannot be written: {error.strerror}; name another file with --db") from error
    return key


class Sessions:
    """The browsers that have shown the key since the server started; of too many, the oldest must show it again."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}

    def begin(self) -> str:
        """A cookie for a browser that has just shown the key."""
        cookie = secrets.token_urlsafe(32)
        self._open[hash_of(cookie)] = None
        while len(self._open) > _MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        return cookie

    def holds(self, cookie: str | None) -> bool:
        """Whether this cookie is one of ours."""
        return cookie is not None and hash_of(cookie) in self._open

    def end(self, cookie: str | None) -> None:
        """This browser has to show the key again."""
        if cookie is not None:
            self._open.pop(hash_of(cookie), None)
