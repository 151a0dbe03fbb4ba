"""A learner's part talks to a real Flink, with ours behind it."""

from __future__ import annotations

import dataclasses
from typing import Any

from course.peer.consuming import Parts
from course.peer.with_flink import FlinkReport, talk_to_flink
from course.swap.guard import Guard
from course.swap.talks import guarded_talk, guarded_wire

__all__ = ["talk_with_part"]


def talk_with_part(kind: str, part: Any = None) -> FlinkReport:
    """Talk to a Flink with the learner's `part`, a "wire" or a "talk"; with ours if there is none."""
    if part is None:
        return talk_to_flink()
    with Guard(part) as guard:
        parts = Parts(wire=guarded_wire(guard)()) if kind == "wire" else Parts(reader=guarded_talk(guard))
        report = talk_to_flink(getattr(part, "__name__", type(part).__name__), parts, is_learners=True)
    return dataclasses.replace(report, taken_out=tuple(guard.what_happened))
