"""What the coordinator and the tasks say to one another, on its way: a simulated wire for control messages.

Rules of this file:
- What one task is told arrives in order, and so does what it says, never before its delay has passed.
- A message may be lost, delayed or repeated. Only that a task has ended is said until somebody has heard it.
- What a task has for the store goes no such way: it puts it itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from refimpl.drivers.task_gateways import LocalTask, StateToPut
from refimpl.errors import LocalUsageError
from refimpl.records.events import CheckpointBarrier
from refimpl.task.checkpoint_reports import Report, Snapshotted
from refimpl.task.task import Task

__all__ = ["ControlMessage", "ControlWire", "WiredTask"]


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """A message on its way; `number` tells it from all others. `deliver` hands it to whom it is for."""

    number: int
    task: str
    what: str
    is_to_task: bool
    may_be_lost: bool
    arrival_ms: float
    deliver: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.what} {'to' if self.is_to_task else 'from'} {self.task}"


class ControlWire:
    """The control messages on their way; each takes what `delay_ms` says. `clock` gives the time, in ms.

    Raises (lose, delay, repeat, take):
        LocalUsageError: no such message is on its way, or it cannot be lost.
    """

    def __init__(self, delay_ms: Callable[[], float], clock: Callable[[], float]) -> None:
        self.messages: list[ControlMessage] = []
        self._delay_ms = delay_ms
        self._clock = clock
        self._numbers = count(1)

    def send(
        self, task: str, what: str, deliver: Callable[[], None], is_to_task: bool = True, may_be_lost: bool = True
    ) -> None:
        """Put a message on its way, behind those of the same sender to the same receiver."""
        now_ms, number = self._clock(), next(self._numbers)
        message = ControlMessage(number, task, what, is_to_task, may_be_lost, now_ms + self._delay_ms(), deliver)
        earliest = max((each.arrival_ms for each in self._line_of(message)), default=now_ms)
        self.messages.append(replace(message, arrival_ms=max(earliest, message.arrival_ms)))

    @property
    def first_in_line(self) -> list[ControlMessage]:
        """Of each sender to each receiver the message that was sent first."""
        firsts = dict[tuple[str, bool], ControlMessage]()
        for each in self.messages:
            firsts.setdefault((each.task, each.is_to_task), each)
        return list(firsts.values())

    def take(self, number: int) -> ControlMessage:
        """The message of this number, which has arrived."""
        return self.messages.pop(self._place_of(number))

    def lose(self, number: int) -> None:
        """Let a message never arrive."""
        message = self.messages[self._place_of(number)]
        if not message.may_be_lost:
            raise LocalUsageError(f"{message} is said until it has been heard, so it cannot be lost")
        self.messages.remove(message)

    def delay(self, number: int, by_ms: float) -> None:
        """Let a message, and what was sent behind it, arrive later."""
        message = self.messages[self._place_of(number)]
        arrival_ms = message.arrival_ms + by_ms
        line = self._line_of(message)
        late = {each.number for each in line[line.index(message) :]}
        self.messages = [
            replace(each, arrival_ms=max(each.arrival_ms, arrival_ms)) if each.number in late else each
            for each in self.messages
        ]

    def repeat(self, number: int) -> None:
        """Let a message arrive once more, right behind itself."""
        place = self._place_of(number)
        self.messages.insert(place + 1, replace(self.messages[place], number=next(self._numbers)))

    def _line_of(self, message: ControlMessage) -> list[ControlMessage]:
        """What is on its way between the same two, the oldest first."""
        line = (message.task, message.is_to_task)
        return [each for each in self.messages if (each.task, each.is_to_task) == line]

    def _place_of(self, number: int) -> int:
        for place, each in enumerate(self.messages):
            if each.number == number:
                return place
        raise LocalUsageError(f"no message {number} is on its way; there are {[each.number for each in self.messages]}")


class WiredTask:
    """One attempt of a task, at the other end of a control wire."""

    def __init__(self, task: Task, wire: ControlWire) -> None:
        self.is_done = False
        self._near = LocalTask(task)
        self._name = task.name
        self._wire = wire
        self._heard = deque[Report]()
        self._has_said_all = False

    def take(self) -> Iterator[StateToPut | Report]:
        for said in self._near.take():
            if isinstance(said, StateToPut):
                yield said
            else:
                is_end = isinstance(said, Snapshotted) and said.is_final
                what = "Ended" if is_end else type(said).__name__
                self._wire.send(self._name, what, partial(self._heard.append, said), False, not is_end)
        if self._near.is_done and not self._has_said_all:
            self._has_said_all = True
            self._wire.send(self._name, "Finished", self._hear_end, is_to_task=False, may_be_lost=False)
        while self._heard:
            yield self._heard.popleft()

    def send_barrier(self, barrier: CheckpointBarrier) -> None:
        self._wire.send(self._name, f"Trigger {barrier.checkpoint_id}", lambda: self._near.send_barrier(barrier))

    def notify_complete(self, checkpoint_id: int) -> None:
        self._wire.send(
            self._name, f"NotifyComplete {checkpoint_id}", lambda: self._near.notify_complete(checkpoint_id)
        )

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._wire.send(self._name, f"NotifyAborted {checkpoint_id}", lambda: self._near.notify_aborted(checkpoint_id))

    def written(self, checkpoint_id: int, trouble: str | None = None) -> None:
        self._near.written(checkpoint_id, trouble)

    def _hear_end(self) -> None:
        self.is_done = True
