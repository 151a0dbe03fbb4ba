"""What is said of a task at one moment, to whoever looks on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.consumer.barrier_handler import AlignmentSnapshot
from refimpl.task.checkpoint_reports import Cut
from refimpl.task.latency import LatencySnapshot

__all__ = ["Progress", "TaskSnapshot"]


class Progress(Enum):
    """What one step of a task came to, and so why a task does not move."""

    MADE = "made"
    IDLE = "idle"
    BACKPRESSURED = "backpressured"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task at one moment; `watermark` in ms, counts from the start. It rests `rest_ms` after each step.

    A task that reads from others has an `alignment`, and a watermark of each channel, of which idle ones do not count.
    `latencies` are those of its operators.
    """

    name: str
    progress: Progress
    operators: tuple[str, ...]
    num_records_in: int
    num_records_out: int
    watermark: int
    rest_ms: float = 0.0
    channel_watermarks: tuple[int, ...] = ()
    idle_channels: tuple[int, ...] = ()
    alignment: AlignmentSnapshot | None = None
    cut: Cut | None = None
    latencies: tuple[LatencySnapshot, ...] = ()
