"""Actions: what can happen next in a simulation, one small thing at a time."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.drivers.simulation.wire import Way

__all__ = [
    "Action",
    "AskAgain",
    "CallStore",
    "Coordinate",
    "Deliver",
    "Flush",
    "MissTaskManager",
    "ReadOn",
    "Restart",
    "Revive",
    "Send",
    "SendBarrier",
    "StepTask",
    "Tell",
    "Timeout",
]


@dataclass(frozen=True, slots=True)
class StepTask:
    """Let one task poll, process and emit once."""

    task: str

    def __str__(self) -> str:
        return f"step {self.task}"


@dataclass(frozen=True, slots=True)
class Flush:
    """Let the buffer timeout pass for one output, at `time_ms`."""

    partition: str
    time_ms: float

    def __str__(self) -> str:
        return f"flush {self.partition} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class Send:
    """Let one end of a connection put its messages on the wire."""

    link: str
    way: Way

    def __str__(self) -> str:
        return f"send {self.way.value}, {self.link}"


@dataclass(frozen=True, slots=True)
class Deliver:
    """Let the oldest message of one direction arrive, at `time_ms`."""

    link: str
    way: Way
    time_ms: float

    def __str__(self) -> str:
        return f"deliver {self.way.value} at {self.time_ms:.3f} ms, {self.link}"


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Let one end of a connection ask again for a partition that was not there before, at `time_ms`."""

    link: str
    time_ms: float

    def __str__(self) -> str:
        return f"ask again at {self.time_ms:.3f} ms, {self.link}"


@dataclass(frozen=True, slots=True)
class ReadOn:
    """Without credits: let one end of a connection go on with bytes that waited for a buffer."""

    link: str

    def __str__(self) -> str:
        return f"read on, {self.link}"


@dataclass(frozen=True, slots=True)
class SendBarrier:
    """Let the sources of one TaskManager send a barrier, each between two of its records, at `time_ms`."""

    task_manager: int
    checkpoint_id: int
    time_ms: float

    def __str__(self) -> str:
        return f"send barrier {self.checkpoint_id} at {self.time_ms:.3f} ms, tm-{self.task_manager}"


@dataclass(frozen=True, slots=True)
class Timeout:
    """Tell a task that the time of a timer has come, at `time_ms`; it fires in the task's next step."""

    task: str
    time_ms: float

    def __str__(self) -> str:
        return f"timeout {self.task} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Let the coordinator of the checkpoints do what is due, at `time_ms`."""

    time_ms: float

    def __str__(self) -> str:
        return f"coordinate checkpoints at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class CallStore:
    """Let one call be made of the store in which checkpoints are kept."""

    what: str

    def __str__(self) -> str:
        return f"store: {self.what}"


@dataclass(frozen=True, slots=True)
class Restart:
    """Let the job begin again after a failure, at `time_ms`, from the newest checkpoint."""

    time_ms: float

    def __str__(self) -> str:
        return f"restart at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class Tell:
    """Let a control message arrive, at `time_ms`."""

    number: int
    what: str
    time_ms: float

    def __str__(self) -> str:
        return f"tell {self.what} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class MissTaskManager:
    """Let the coordinator notice that a TaskManager is gone, at `time_ms`; the job fails."""

    task_manager: int
    time_ms: float

    def __str__(self) -> str:
        return f"miss tm-{self.task_manager} at {self.time_ms:.3f} ms"


@dataclass(frozen=True, slots=True)
class Revive:
    """Let another TaskManager take the place of one that is gone, at `time_ms`."""

    task_manager: int
    time_ms: float

    def __str__(self) -> str:
        return f"revive tm-{self.task_manager} at {self.time_ms:.3f} ms"


Action = (
    StepTask
    | Flush
    | Send
    | Deliver
    | AskAgain
    | ReadOn
    | SendBarrier
    | Timeout
    | Coordinate
    | CallStore
    | Restart
    | Tell
    | MissTaskManager
    | Revive
)
