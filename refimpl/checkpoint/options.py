"""How often a job is checkpointed, and how much may go wrong."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CheckpointOptions"]


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """How a job is checkpointed; `interval_ms` 0: only when somebody asks.

    Flink:   CheckpointCoordinatorConfiguration (runtime.jobgraph.tasks), 1.11.4
    """

    interval_ms: int = 0
    timeout_ms: int = 600_000
    max_concurrent: int = 1
    min_pause_ms: int = 0
    tolerable_failures: int = 0
    seed: int = 0
