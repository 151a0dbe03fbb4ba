"""JStorm: a task whose queue stays high tells the TopologyMaster, which lets the sources sleep before each record.

Source:  BackpressureTrigger, BackpressureCoordinator, BackpressureController (com.alibaba.jstorm.task.backpressure),
         JStormUtils.halfValueOfSum, defaults of ConfigExtension, JStorm 2.1
Differs: the documentation says that a stop shortens the sleep by 1 ms; the code halves it, and so do we. An interval
         has passed when it is over, not a moment later: here no clock is late.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from refimpl.rivals.rival import Delayed, Levels
from refimpl.rivals.workload import NUM_BRANCHES, SINK, SOURCE

__all__ = [
    "CHECK_MS",
    "HIGH",
    "LOW",
    "NUM_LOOKS",
    "SAMPLE_RATE",
    "Complaint",
    "JStorm",
    "SourceController",
    "TaskTrigger",
    "TopologyMaster",
]

QUEUE_SIZE = 1_024  # topology.executor.receive.buffer.size, and .send.buffer.size
HIGH = 0.8  # topology.backpressure.water.mark.high
LOW = 0.05  # topology.backpressure.water.mark.low
CHECK_MS = 1_000  # topology.backpressure.check.interval
NUM_LOOKS = 4  # topology.backpressure.trigger.sample.number
SAMPLE_RATE = 0.75  # topology.backpressure.trigger.sample.rate
TRIGGER_RATIO = 0.1  # topology.backpressure.coordinator.trigger.ratio
GREW_MS = 5  # BackpressureCoordinator.adjustedTime
_MESSAGE_MS = 2.0
_QUEUE_POLL_MS = 1.0  # BackpressureController.flowControl


class Complaint(Enum):
    """What a task asks the master for."""

    START = "start"
    STOP = "stop"


class TaskTrigger:
    """Looks at a task's receive queue, and after `NUM_LOOKS` looks asks for slower sources, or for faster ones."""

    def __init__(self) -> None:
        self.is_under_pressure = False
        self._looks: list[Complaint | None] = []

    def look(self, load: float) -> Complaint | None:
        """Note how full the queue is, 1 is full: high is more than `HIGH`, low at most `LOW`.

        The answer is what to tell the master, if anything.
        """
        self._looks.append(Complaint.START if load > HIGH else Complaint.STOP if load <= LOW else None)
        if len(self._looks) < NUM_LOOKS:
            return None
        num_starts, num_stops = self._looks.count(Complaint.START), self._looks.count(Complaint.STOP)
        self._looks.clear()
        if num_starts > num_stops:
            if num_starts / NUM_LOOKS >= SAMPLE_RATE:
                self.is_under_pressure = True
                return Complaint.START
        elif num_stops / NUM_LOOKS >= SAMPLE_RATE and self.is_under_pressure:
            return Complaint.STOP
        return None


@dataclass(slots=True)
class _SourceNotes:
    """What the master knows of one component of sources."""

    latest_ms: float | None = None
    latest: Complaint | None = None
    longest_ms: int = -1
    complaining: set[int] = field(default_factory=set[int])


class TopologyMaster:
    """Decides when the sources of a component hear of its complaints; `num_tasks` is how many tasks could complain.

    It acts when at least `TRIGGER_RATIO` of the tasks complain, once in `NUM_LOOKS` looks; in between only on a change
    of mind, or if a record takes over `GREW_MS` longer than it did.
    """

    period_ms = float(CHECK_MS * NUM_LOOKS)

    def __init__(self, num_tasks: int = 1) -> None:
        self._num_tasks = num_tasks
        self._notes = _SourceNotes()

    def start(self, task: int, execute_ms: int, now_ms: float) -> int | None:
        """A task complains, whose records take `execute_ms`: what to tell the sources, or `None`."""
        notes = self._notes
        notes.complaining.add(task)
        is_time = notes.latest_ms is None or now_ms - notes.latest_ms >= self.period_ms
        grew = execute_ms - notes.longest_ms > GREW_MS or notes.longest_ms == -1
        if not is_time and notes.latest is Complaint.START and not grew:
            return None
        notes.longest_ms, notes.latest, notes.latest_ms = max(notes.longest_ms, execute_ms), Complaint.START, now_ms
        return execute_ms if len(notes.complaining) / self._num_tasks >= TRIGGER_RATIO else None

    def stop(self, task: int, now_ms: float) -> bool:
        """A task has little to do: whether to tell the sources."""
        notes = self._notes
        notes.complaining.discard(task)
        if notes.latest_ms is None or now_ms - notes.latest_ms < self.period_ms:
            return False
        notes.latest, notes.latest_ms = Complaint.STOP, now_ms
        return True

    def source_is_free(self) -> None:
        """The source sleeps no more: forget all of it."""
        self._notes = _SourceNotes()


class SourceController:
    """How long a source sleeps before each record, in whole ms, and how full its emit queue may be."""

    def __init__(self, queue_size: int = QUEUE_SIZE) -> None:
        self.sleep_ms = self.max_bound = self.min_bound = 0
        self.queue_limit = queue_size
        self._queue_size = queue_size

    def start(self, execute_ms: int) -> None:
        """Be slower: towards the time that the consumer needs, and beyond it in steps."""
        sleep, bound = self.sleep_ms, self.max_bound
        if execute_ms <= 0:
            sleep += 1
        elif bound < execute_ms:
            sleep = execute_ms
        elif sleep >= bound:
            sleep += 1
        elif bound == execute_ms or sleep < execute_ms:
            sleep = (execute_ms + sleep + 1) // 2
        else:
            sleep = (bound + sleep + 1) // 2
        self.sleep_ms, self.max_bound = sleep, max(bound, sleep)
        self.queue_limit = max(10, self._queue_size // 100)

    def stop(self) -> bool:
        """Be faster; true if the source sleeps no more, which the master is told."""
        if self.sleep_ms == self.min_bound:
            self.min_bound = 0
        self.sleep_ms = (self.min_bound + self.sleep_ms) // 2
        if self.sleep_ms:
            self.min_bound = self.sleep_ms
            return False
        self.max_bound = self.min_bound = 0
        self.queue_limit = self._queue_size
        return True


class JStorm:
    """A topology in which each branch is components of its own: the innocent source hears of no complaint.

    The execute time of a task is that of its last 64 records, from one to the next while there are some.
    """

    name = "JStorm"

    def __init__(self) -> None:
        branches = range(NUM_BRANCHES)
        self.receive = {(stage, branch): deque[float]() for stage in range(1, SINK + 1) for branch in branches}
        self.controllers = [SourceController() for _ in branches]
        self._emitted = [0 for _ in branches]  # in the emit queue, so on the wire
        self._between = 0
        self._triggers = {key: TaskTrigger() for key in self.receive}
        self._masters = [TopologyMaster() for _ in branches]
        self._messages: Delayed[partial[None]] = Delayed(_MESSAGE_MS)
        self._next_look_ms = float(CHECK_MS)
        self._awake_ms: list[float | None] = [None for _ in branches]
        self._times = {key: deque[float](maxlen=64) for key in self.receive}
        self._begun_ms: dict[tuple[int, int], float | None] = dict.fromkeys(self.receive)

    @property
    def next_tick_ms(self) -> float:
        return min(self._next_look_ms, self._messages.next_ms)

    def on_tick(self, now_ms: float) -> None:
        for act in self._messages.take(now_ms):
            act(now_ms)
        if now_ms >= self._next_look_ms:
            self._next_look_ms += CHECK_MS
            for key, trigger in self._triggers.items():
                complaint = trigger.look(len(self.receive[key]) / QUEUE_SIZE)
                if complaint is not None:
                    self._messages.put(partial(self._decide, key, complaint, self._execute_ms(key)), now_ms)

    def may_emit(self, branch: int, now_ms: float) -> float:
        awake_ms = self._awake_ms[branch]
        if awake_ms is None:
            awake_ms = self._awake_ms[branch] = now_ms + self.controllers[branch].sleep_ms
        if now_ms < awake_ms:
            return awake_ms - now_ms
        if self._emitted[branch] >= self.controllers[branch].queue_limit:
            return _QUEUE_POLL_MS
        self._awake_ms[branch] = None
        return 0.0

    def can_enqueue(self, stage: int, branch: int) -> bool:
        return True

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        if stage == SOURCE:
            self._emitted[branch] += 1
        else:
            self._between += 1

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        if stage == SOURCE + 1:
            self._emitted[branch] -= 1
        else:
            self._between -= 1
        self.receive[stage, branch].append(record)

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        key = stage, branch
        begun_ms = self._begun_ms[key]
        if begun_ms is not None:
            self._times[key].append(now_ms - begun_ms)
        queue = self.receive[key]
        self._begun_ms[key] = now_ms if queue else None
        return queue.popleft() if queue else None

    def measure(self) -> Levels:
        over = sum(max(0, len(queue) - QUEUE_SIZE) for queue in self.receive.values())
        held = sum(map(len, self.receive.values())) + sum(self._emitted) + self._between
        return Levels(held - over, over)

    def _execute_ms(self, key: tuple[int, int]) -> int:
        times = self._times[key]
        return int(sum(times) / len(times)) if times else 0

    def _decide(self, key: tuple[int, int], complaint: Complaint, execute_ms: int, now_ms: float) -> None:
        """The master's part, and after another message the source's."""
        stage, branch = key
        if complaint is Complaint.START:
            told_ms = self._masters[branch].start(stage, execute_ms, now_ms)
            if told_ms is not None:
                self._messages.put(partial(self._slower, branch, told_ms), now_ms)
        elif self._masters[branch].stop(stage, now_ms):
            self._messages.put(partial(self._faster, branch), now_ms)

    def _slower(self, branch: int, execute_ms: int, _now_ms: float) -> None:
        self.controllers[branch].start(execute_ms)

    def _faster(self, branch: int, _now_ms: float) -> None:
        if self.controllers[branch].stop():
            self._masters[branch].source_is_free()
            for (_, of), trigger in self._triggers.items():
                if of == branch:
                    trigger.is_under_pressure = False
