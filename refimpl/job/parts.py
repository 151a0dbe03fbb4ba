"""The seams: which implementation of each replaceable part a job uses.

A part is named after the reference class or function it stands in for. A learner's part goes in with
`environment.use(SpanningRecordSerializer=Mine)`, or into a running job with `swap`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job.chaining import build_chains, is_chainable
from refimpl.job.scheduling_modes import CombinationRule, why_not
from refimpl.job.stream_graph import StreamEdge, StreamGraph
from refimpl.producer.blocking_subpartition import BlockingSubpartition
from refimpl.producer.bounded_blocking import BoundedBlockingSubpartition
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.records.spanning import (
    RecordDeserializer,
    RecordSerializer,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
)
from refimpl.task.outputs import ChainingOutput, CopyingChainingOutput

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """One maker for each seam; the defaults are the reference parts."""

    SpanningRecordSerializer: Callable[[], RecordSerializer] = SpanningRecordSerializer
    SpillingAdaptiveSpanningRecordDeserializer: Callable[[Config], RecordDeserializer] = (
        SpillingAdaptiveSpanningRecordDeserializer
    )
    PipelinedSubpartition: type[SubpartitionQueue] = PipelinedSubpartition
    BoundedBlockingSubpartition: type[BlockingSubpartition] = BoundedBlockingSubpartition
    CopyingChainingOutput: Callable[..., ChainingOutput] = CopyingChainingOutput
    is_chainable: Callable[[StreamGraph, StreamEdge, Config], bool] = is_chainable
    build_chains: Callable[[StreamGraph, Callable[[StreamEdge], bool]], dict[int, list[int]]] = build_chains
    why_not: CombinationRule = why_not

    def using(self, **parts: object) -> Parts:
        """These parts with some replaced.

        Raises:
            LocalUsageError: there is no seam of that name, or the part cannot be called.
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
