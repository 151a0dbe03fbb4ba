"""What tasks, outputs and wires of a simulation can do next, and what they do when it happens.

Which of them there are is for somebody else to say: they come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from refimpl.drivers.simulation.actions import Action, AskAgain, Deliver, Flush, ReadOn, Send, StepTask, Timeout
from refimpl.drivers.simulation.policy import Delays
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.drivers.simulation.work import Work
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.task.snapshot import Progress
from refimpl.task.task import Task

__all__ = ["DataMoves"]

_WAYS = tuple(Way)


class DataMoves:
    """Tasks, the outputs that they write into and the wires between them, at `time_ms` of virtual time.

    `epoch_ms` is what the time of their timers was at its beginning.
    """

    def __init__(self, work: Work, delays: Delays, epoch_ms: float = 0.0) -> None:
        self.time_ms = 0.0
        self.links: dict[str, Link] = {}
        self._work = work
        self._delays = delays
        self._epoch_ms = epoch_ms
        self._tasks: dict[str, Task] = {}
        self._partitions: dict[str, BufferWritingResultPartition] = {}

    @property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks by name."""
        return self._tasks

    @property
    def _processing_ms(self) -> float:
        return self._epoch_ms + self.time_ms

    def _steps(self) -> list[Action]:
        """The tasks that can take a step now."""
        free_at_ms, now = self._work.free_at_ms, self.time_ms
        return [StepTask(name) for name, task in self._tasks.items() if free_at_ms(name) <= now and task.is_runnable]

    def _on_wires(self) -> tuple[list[Action], list[tuple[float, Action]]]:
        """What outputs and wires can do now, and what they will do and when."""
        now, actions = self.time_ms, list[Action]()
        waiting: list[tuple[float, Action]] = []
        for name, partition in self._partitions.items():
            deadline = partition.next_deadline(now)
            if deadline is not None:
                waiting.append((deadline, Flush(name, deadline)))
        for name, link in self.links.items():
            again = link.consumer.next_deadline(now)
            if again is not None:
                waiting.append((again, AskAgain(name, again)))
            if (pause := link.consumer.pause) is not None and pause.is_over:
                actions.append(ReadOn(name))
            for way in _WAYS:
                if link.can_send(way):
                    actions.append(Send(name, way))
                arrival = link.next_arrival_ms(way)
                if arrival is not None:
                    waiting.append((arrival, Deliver(name, way, arrival)))
        return actions, waiting

    def _first_to_be_free(self, before_ms: float) -> list[tuple[float, Action]]:
        """Which task that is busy takes the next step, and when, if that is before something else comes.

        Whoever is free has been asked already.
        """
        now, free_at_ms = self.time_ms, self._work.free_at_ms
        busy = [(at_ms, name) for name in self._tasks if now < (at_ms := free_at_ms(name)) < before_ms]
        busy.sort(key=lambda each: each[0])  # of those of one moment the first of the job
        return next(([(at_ms, StepTask(name))] for at_ms, name in busy if self._tasks[name].is_runnable), [])

    def _timeouts(self) -> Iterable[tuple[float, Action]]:
        """The next timer of each task, and when."""
        epoch_ms, processing_ms = self._epoch_ms, self._processing_ms
        return [
            (deadline - epoch_ms, Timeout(name, deadline - epoch_ms))
            for name, task in self._tasks.items()
            if (deadline := task.next_deadline(processing_ms)) is not None
        ]

    def _do_with_data(self, action: object) -> bool:
        """Do what concerns a task, an output or a wire; whether it did."""
        match action:
            case StepTask(name):
                self._tasks[name].on_timeout(self._processing_ms)
                progress = self._tasks[name].step()
                assert progress in Progress, f"{action} returned {progress!r}"
                self._work.stepped(name, self.time_ms)
            case Flush(name):
                self._partitions[name].on_timeout(self.time_ms)
            case Send(link, way):
                bytes_per_ms = self._work.costs.link_bytes_per_ms if self._work.costs else None
                self.links[link].send(way, self.time_ms + self._delays.next_ms(), bytes_per_ms)
            case Deliver(link, way):
                self.links[link].deliver(way)
            case ReadOn(link):
                self.links[link].consumer.receive_data(b"")
            case AskAgain(link):
                self.links[link].consumer.on_timeout(self.time_ms)
            case Timeout(name):
                self._tasks[name].on_timeout(self._processing_ms)
            case _:
                return False
        return True
