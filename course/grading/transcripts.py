"""What a child of a check says: its lines, and what is left of them when they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course.grading.rules import Seen

__all__ = ["Transcript", "parsed"]


@dataclass(slots=True)
class Transcript:
    """What came back. `problem` is why the code never ran; `step` the last case that was begun.

    `ended` is true only if the child itself said so; a transcript without it is never a pass.
    """

    problem: Mapping[str, Any] | None = None
    loaded: bool = False
    seen: dict[int, Seen] = field(default_factory=dict)
    step: int | None = None
    ended: bool = False
    timed_out: bool = False
    tampered: list[str] = field(default_factory=list)
    printed: int = 0
    printed_text: str = ""


def parsed(data: bytes) -> Transcript:
    """The transcript from the child's lines; anything of another shape is ignored."""
    transcript = Transcript()
    for raw in data.split(b"\n"):
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if not isinstance(line, list) or not line:
            continue
        match line:
            case ["loaded", None]:
                transcript.loaded = True
            case ["loaded", dict() as problem]:
                transcript.loaded, transcript.problem = True, problem
            case ["case", int() as index]:
                transcript.step = index
            case ["did", int() as index, list() as events, (dict() | None) as ending]:
                # Only the first word about a case counts, and only after the child began it.
                if index == transcript.step and index not in transcript.seen:
                    transcript.seen[index] = Seen(events, ending)
            case ["end", dict() as ending]:
                transcript.ended = True
                transcript.tampered = [str(name)[:80] for name in _list(ending.get("tampered"))]
                printed = ending.get("printed")
                transcript.printed = printed if isinstance(printed, int) else 0
                transcript.printed_text = str(ending.get("text", ""))[:2000]
    return transcript


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
