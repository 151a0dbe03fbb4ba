"""Damage as disks, editors, other programs and people make it: to bytes, and to values before they are written."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, 1e308, float("nan"), 2**63, "", "\x00", "\ud800", "ünï", "x" * 100_000, [], {},
    [[]], {"a": {}},
)  # fmt: skip
NOT_TEXT = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x00" * 4)
NO_NUMBERS = (b"9" * 5_000, b"1e999", b"NaN", b"-", b"\x85", b"\xef\xbb\xbf")
DEEP = (b"[" * 200_000, b'{"a":' * 5_000, b'{"entries":' + b"[" * 5_000 + b"]" * 5_000 + b"}", b"(" * 5_000)
OTHERS = (b"", b"[]", b"{}", b"null", b"1", b'"x"', b"[null]", b'{"entries": [1]}')


def changed(chance: random.Random, value: Any) -> Any:
    """The same with one part of it left out, twice there, or something else."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice([*value])
        rest = {each: value[each] for each in value if each != name}
        return rest if chance.random() < 0.2 else {**rest, name: changed(chance, value[name])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], changed(chance, value[at]), *value[at + chance.choice([0, 1]) :]]
    return chance.choice(ODD_VALUES)


def damaged(chance: random.Random, raw: bytes) -> bytes:
    """The same bytes cut, with something in between, or others altogether."""
    at, to = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
    kinds = (
        lambda: raw[:at],
        lambda: raw[:at] + raw[to:],
        lambda: raw[:at] + chance.choice(NOT_TEXT + NO_NUMBERS) + raw[at:],
        lambda: chance.choice(DEEP + OTHERS),
        lambda: chance.randbytes(to),
        lambda: raw.decode("utf-8", "replace").encode("utf-16"),
    )
    return chance.choice(kinds)()


def damaged_json(chance: random.Random, *values: Any) -> bytes:
    """These values as lines of JSON, damaged before they were written or after."""
    if chance.random() < 0.6:
        return b"\n".join(json.dumps(changed(chance, each)).encode() for each in values)
    return damaged(chance, b"\n".join(json.dumps(each).encode() for each in values))


@contextmanager
def no_files(folder: Path, ending: str) -> Iterator[dict[str, Path]]:
    """What somebody may name that is no file, by kind: each ends in `ending`."""
    made = {
        kind: folder / f"{kind}{ending}" for kind in ("folder", "pipe", "loop", "gone", "endless", "huge", "socket")
    }
    made["folder"].mkdir()
    os.mkfifo(made["pipe"])
    made["loop"].symlink_to(made["loop"])
    made["endless"].symlink_to("/dev/zero")
    with made["huge"].open("wb") as file:
        file.truncate(20 << 30)  # takes no room
    made["below"] = made["huge"] / f"x{ending}"
    made["long"] = folder / f"{'n' * 300}{ending}"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(made["socket"]))
        yield made
