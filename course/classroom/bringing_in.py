"""Bringing in who worked alone: a progress file is believed, a receipt is judged again."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from course.classroom.class_file import Added, ClassError, ClassFile
from course.files import read_file
from course.learner.class_events import bad_handle, plain_json

__all__ = ["Brought", "bring_in"]

_UNNAMED = {"progress", "receipt"}


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of one file, as a line."""

    is_all: bool
    text: str


def bring_in(file: ClassFile, source: Path, handle: str | None = None, trust: bool = False) -> Brought:
    """Bring one progress file or receipt into the class; what is known already changes nothing.

    A receipt's programs are run; `trust` is that of `receipts.verify`.
    """
    whose = handle or _handle(source)
    if (wrong := bad_handle(whose)) is not None:
        return Brought(False, f"✗ {source}: {wrong}; say whose it is with --handle")
    try:
        raw = read_file(source)
    except OSError as error:
        return Brought(False, f"✗ {source} cannot be read: {error.strerror}")
    receipt = _receipt(raw)
    if receipt is not None:
        return _bring_receipt(file, source, whose, trust)
    events = [event for line in raw.split(b"\n") if (event := _event(line)) is not None]
    if not events:
        return Brought(False, f"✗ {source} is neither a progress file nor a receipt")
    return _keep(file, source, whose, events, is_verified=False)


def _handle(source: Path) -> str:
    """The file's name without ending, or the folder's where every file has the same name."""
    stem = source.name.split(".")[0]
    if stem.split("-")[0] not in _UNNAMED:
        return stem
    folders = [each.name for each in source.absolute().parents if each.name not in {".course", "work"}]
    return folders[0] if folders else stem


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        found = plain_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


def _receipt(raw: bytes) -> dict[str, Any] | None:
    try:
        found = plain_json(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("entries"), list) else None


def _bring_receipt(file: ClassFile, source: Path, handle: str, trust: bool) -> Brought:
    """Run everything in the receipt again, in the isolation of a check; what holds is marked as verified."""
    from course.learner.receipts import ReceiptError, verify

    try:
        receipt = json.loads(source.read_text(encoding="utf-8"))
        events, doubts = [], []
        for entry in receipt["entries"]:
            holds, lines = _verify_one(receipt, entry, source, partial(verify, trust=trust))
            if holds:
                events.append(_event_of(entry, receipt))
            else:
                doubts += lines
    except (ReceiptError, RecursionError) as error:
        return Brought(False, f"✗ {source}: {error}")
    if not events:
        return Brought(False, "\n".join([f"✗ {source}: nothing in it holds", *(f"    {line}" for line in doubts)]))
    brought = _keep(file, source, handle, events, is_verified=True)
    return Brought(brought.is_all and not doubts, "\n".join([brought.text, *(f"    {line}" for line in doubts)]))


def _verify_one(receipt: dict[str, Any], entry: Any, source: Path, verify: Any) -> tuple[bool, list[str]]:
    """Whether one entry holds; each is verified as a receipt of its own, so that one that does not spoils no other."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / source.name
        alone.write_text(json.dumps({**receipt, "entries": [entry]}), encoding="utf-8")
        holds, lines = verify(alone)
    return holds, [line for line in lines if line.startswith("✗")] or lines


def _event_of(entry: dict[str, Any], receipt: dict[str, Any]) -> dict[str, Any]:
    rules = entry["rules"]
    return {
        "event": "check",
        "exercise": entry["exercise"],
        "status": "passed",
        "code_hash": entry["code_hash"],
        "seed": entry["seed"],
        "vectors": receipt.get("vectors"),
        "rules_passed": len(rules),
        "rules_total": len(rules),
        "time": 0,  # a receipt does not say when; the same receipt is then the same event
    }


def _keep(file: ClassFile, source: Path, handle: str, events: list[dict[str, Any]], *, is_verified: bool) -> Brought:
    now = time.time()
    try:
        with file.transaction():
            added: Added = file.add_events(file.admit(handle, now), events, now, is_verified=is_verified)
    except ClassError as error:
        return Brought(False, f"✗ {source}: {error}")
    words = f"{added.num_new} new events" if added.num_new != 1 else "1 new event"
    known = f", {added.num_known} known" if added.num_known else ""
    checked = "judged again, " if is_verified else ""
    return Brought(True, f"✓ {handle}: {checked}{words}{known} from {source}")
