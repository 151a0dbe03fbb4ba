"""What a task has to say of its checkpoints: where it was cut, what was saved, and what will not be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from refimpl.consumer.barrier_handler import AbortReason
from refimpl.state.layout import state_key
from refimpl.state.manifest import StateFile, StateRecord

__all__ = ["Cut", "Declined", "Report", "Snapshotted", "StatePlace", "Unwanted"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a barrier has cut what a task does: so many records had come in by then, and gone out."""

    checkpoint_id: int
    num_records_in: int
    num_records_out: int


@dataclass(frozen=True, slots=True)
class StatePlace:
    """What the state files of a task are called: `attempt` is a number that no other attempt of the job has had."""

    vertex: str
    subtask: int
    attempt: int

    def key(self, folder: str) -> str:
        return state_key(folder, self.vertex, self.subtask, self.attempt)


@dataclass(frozen=True, slots=True)
class Snapshotted:
    """A task's state is durable: its file, and what it has of each operator by uid. `is_final` at the end of input.

    `alignment_ms` lies between the first barrier and the last, `None` where there was none or nobody told the time.
    `is_unaligned`: its barriers have overtaken what waited, before it or behind it.
    """

    checkpoint_id: int
    file: StateFile | None
    states: Mapping[str, tuple[StateRecord, ...]] = field(default_factory=dict)
    is_final: bool = False
    alignment_ms: float | None = None
    is_unaligned: bool = False


@dataclass(frozen=True, slots=True)
class Declined:
    """A checkpoint will not be."""

    checkpoint_id: int
    reason: AbortReason
    detail: str


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A file that was put for a checkpoint that is over."""

    key: str


Report = Snapshotted | Declined | Unwanted
