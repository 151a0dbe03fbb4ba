"""The seams: which implementation of each replaceable part a job uses.

A part is named after the reference class it stands in for. A learner's part goes in with
`environment.use(SpanningRecordSerializer=Mine)`, or into a running job with `swap`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.records.spanning import (
    RecordDeserializer,
    RecordSerializer,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
)

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """One maker for each seam; the defaults are the reference parts."""

    SpanningRecordSerializer: Callable[[], RecordSerializer] = SpanningRecordSerializer
    SpillingAdaptiveSpanningRecordDeserializer: Callable[[Config], RecordDeserializer] = (
        SpillingAdaptiveSpanningRecordDeserializer
    )

    def using(self, **parts: object) -> Parts:
        """These parts with some replaced.

        Raises:
            LocalUsageError: there is no seam of that name, or the part cannot be called to make one.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name, part in parts.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, 1, 0.3)
                hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
                raise LocalUsageError(f"there is no part called {name}{hint}")
            if not callable(part):
                raise LocalUsageError(f"{name}: give the class that makes the part, not {part!r}")
        return dataclasses.replace(self, **parts)  # type: ignore[arg-type]
