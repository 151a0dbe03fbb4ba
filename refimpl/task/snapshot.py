"""What is said of a task at one moment, to whoever looks on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.consumer.barrier_handler import AlignmentSnapshot
from refimpl.task.checkpoint_reports import Cut
from refimpl.task.latency import LatencySnapshot

__all__ = ["Progress", "TaskSnapshot", "TaskTimes"]


class Progress(Enum):
    """What one step of a task came to, and so why a task does not move."""

    MADE = "made"
    IDLE = "idle"
    BACKPRESSURED = "backpressured"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """How long a task was busy, idle and back-pressured, in ms; its pauses before a reader is asked again are idle.

    Flink:   TaskIOMetricGroup (runtime.metrics.groups): busyTime, idleTime, softBackPressured and hardBackPressured
             time together, 1.13
    """

    busy_ms: float = 0.0
    idle_ms: float = 0.0
    backpressured_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        return self.busy_ms + self.idle_ms + self.backpressured_ms


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task at one moment; `watermark` in ms, counts from the start. It rests `rest_ms` after each step.

    A task that reads from others has an `alignment`, and a watermark of each channel, of which idle ones do not count.
    `latencies` are those of its operators. `times` are all 0 where the driver has no clock for them. `is_held_back`:
    an output of it is without a buffer.
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
    times: TaskTimes = TaskTimes()
    is_held_back: bool = False
