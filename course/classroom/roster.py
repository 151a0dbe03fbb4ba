"""Who is behind a handle: a list of handles and ids, or what Canvas and Moodle export of a course.

    handle, id, name                                                    a list of one's own
    Student, ID, SIS User ID, SIS Login ID, Section                     Canvas, Grades > Export
    First name, Last name, ID number, Email address, Username           Moodle, Participants or Grades > Export

A student is found by login, by the part of an address before @, or by name in any order: by sight, that is whatever
case, spaces, and ways to compose an accent; then without accents. Two who could be meant are named, never guessed.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from course.learner.class_events import folded

__all__ = ["Person", "RosterError", "people_of", "read_roster"]

_LAST_NAMES = ("Last name", "Surname")


class RosterError(ValueError):
    """A file that is no roster, or names two students one handle could mean; the text says which."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a gradebook knows behind a handle; `columns` are those of its export, to be given back as they were."""

    id: str
    name: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


def read_roster(raw: bytes) -> list[tuple[Person, list[str]]]:
    """Everybody in a roster, each with the names by which a handle may mean them.

    Raises:
        RosterError: it is no table, or has none of the columns above.
    """
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"it cannot be read as a table: {error}") from error
    plain = [{(name or "").strip(): str(value or "").strip() for name, value in row.items() if name} for row in rows]
    columns = set(plain[0]) if plain else set()
    if {"handle", "id"} <= columns:
        return [(Person(row["id"], row.get("name", "")), [row["handle"]]) for row in plain if row["handle"]]
    if {"Student", "ID"} <= columns:
        return [_of_canvas(row) for row in plain if not _is_no_student(row["Student"])]
    if "First name" in columns and columns & set(_LAST_NAMES):
        return [_of_moodle(row) for row in plain if row["First name"] or row.get("Username")]
    raise RosterError("it needs the columns handle and id, and may have name; or those that Canvas or Moodle export")


def _is_no_student(name: str) -> bool:
    """Canvas's row of points, its test student, and rows without a name."""
    return not name or name.casefold() in {"points possible", "student, test", "test student"}


def _of_canvas(row: Mapping[str, str]) -> tuple[Person, list[str]]:
    login, name = row.get("SIS Login ID", ""), row["Student"]
    columns = {each: row.get(each, "") for each in ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")}
    last, _, first = name.partition(",") if "," in name else (" ".join(name.split()[1:]), "", name.split()[0])
    return Person(login or row["ID"], name, columns), _names(login, first, last)


def _of_moodle(row: Mapping[str, str]) -> tuple[Person, list[str]]:
    first, last = row["First name"], next((row[each] for each in _LAST_NAMES if row.get(each)), "")
    username, address = row.get("Username", ""), row.get("Email address", "")
    found = _names(username or address, first, last)
    return Person(username or address or row.get("ID number", ""), f"{first} {last}".strip(), row), found


def _names(login: str, first: str, last: str) -> list[str]:
    words = [login, login.partition("@")[0], f"{first} {last}", f"{last} {first}"]
    return [word for word in words if word.strip()]


def people_of(handles: Iterable[str], roster: list[tuple[Person, list[str]]]) -> dict[str, Person]:
    """The person behind each handle that means somebody.

    Raises:
        RosterError: a handle could mean two; names them.
    """
    by_sight: dict[str, dict[str, Person]] = {}
    for person, names in roster:
        for name in names:
            for seen in {_seen(name), _without_accents(_seen(name))}:
                by_sight.setdefault(seen, {})[person.id] = person
    found = {}
    for handle in handles:
        meant = by_sight.get(_seen(handle)) or by_sight.get(_without_accents(_seen(handle))) or {}
        if len(meant) > 1:
            both = " and ".join(f"{person.name or person.id} ({person.id})" for person in meant.values())
            raise RosterError(f"the handle {handle} could mean {both}; give it an id in a list of handle and id")
        if meant:
            found[handle] = next(iter(meant.values()))
    return found


def _seen(name: str) -> str:
    return "".join(letter for letter in folded(name) if letter.isalnum() or unicodedata.combining(letter))


def _without_accents(seen: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", seen) if not unicodedata.combining(letter))
