"""The attempts of one deployment, in their processes, as the parent sees them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.messages import Committed, Ended, Outgoing, Results, TaskSaid, TellTask, Verdict, pack
from refimpl.drivers.processes.sinks import SinkFunctions
from refimpl.drivers.task_gateways import StateToPut
from refimpl.job.execution_graph import ExecutionVertex
from refimpl.records.events import CheckpointBarrier
from refimpl.task.checkpoint_reports import Report, Snapshotted, Unwanted

__all__ = ["RemoteAttempts", "RemoteTask"]


class RemoteTask:
    """A task in another process, as a `TaskGateway`: it puts its states itself, and says so when they are put.

    `tell` sends a word to it, and does not wait.
    """

    def __init__(self, tell: Callable[[TellTask], None], name: str, generation: int) -> None:
        self.is_done = False
        self._send = tell
        self._name = name
        self._generation = generation
        self._said: deque[Report] = deque()

    def __repr__(self) -> str:
        return f"RemoteTask({self._name}, {self._generation})"

    def hear(self, report: Report | None) -> None:
        """It has said this; `None` that it has ended well, which is the last."""
        if report is None:
            self.is_done = True
        else:
            self._said.append(report)

    def take(self) -> Iterator[StateToPut | Report]:
        while self._said:
            yield self._said.popleft()

    def send_barrier(self, barrier: CheckpointBarrier) -> None:
        self._tell(barrier)

    def notify_complete(self, checkpoint_id: int) -> None:
        self._tell(Verdict(checkpoint_id, is_complete=True))

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._tell(Verdict(checkpoint_id, is_complete=False))

    def written(self, checkpoint_id: int, trouble: str | None = None) -> None:
        raise AssertionError(f"{self} puts its states itself, and nobody put one of checkpoint {checkpoint_id} for it")

    def _tell(self, what: CheckpointBarrier | Verdict) -> None:
        self._send(TellTask(self._generation, self._name, what))


class RemoteAttempts:
    """The attempts of `executions`, of one deployment, on `children`, by the numbers of their TaskManagers.

    `error` is the first one of them, as soon as it has happened; from then on, and after `stop`, nothing they say
    counts, but the names of files that nobody wants: `on_unwanted` hears them, with the task. `on_change` is called
    when there is something to look at.
    """

    def __init__(
        self,
        deployment: int,
        executions: Iterable[ExecutionVertex],
        children: Mapping[int, ChildProcess],
        sinks: SinkFunctions,
        on_change: Callable[[], None],
        on_unwanted: Callable[[str, int, str], None] = lambda _task, _generation, _key: None,
    ) -> None:
        self.deployment = deployment
        self.error: BaseException | None = None
        self.addresses: list[tuple[str, int] | None] = []
        self.executions = tuple(executions)
        self.tasks = {
            each.name: RemoteTask(partial(_ask, children[each.task_manager]), each.name, deployment)
            for each in self.executions
        }
        self.children = children
        self._sinks = sinks
        self._on_change = on_change
        self._on_unwanted = on_unwanted
        self._lock = threading.Lock()
        self._is_stopped = False
        self._over: set[int] = set()  # the TaskManagers whose end is known, with its reason

    @property
    def is_over(self) -> bool:
        """Whether no task runs any more."""
        return all(each.task_manager in self._over for each in self.executions)

    @property
    def is_wanted(self) -> bool:
        """Whether what they say counts."""
        return self.error is None and not self._is_stopped

    def stop(self) -> None:
        """From now on nothing they say counts."""
        self._is_stopped = True

    def hear(self, child: ChildProcess, message: Outgoing) -> None:
        """A TaskManager says something, perhaps of older attempts. On threads of the child, in order."""
        try:
            if message.generation == self.deployment and self.is_wanted:
                self._obey(child, message)
            elif isinstance(message, TaskSaid):
                self._disown(message)
            elif isinstance(message, Ended) and message.generation == self.deployment:
                self._end(child)
        except BaseException as error:  # noqa: BLE001 - raised by who waits for the results
            self.fail(error)

    def lose(self, child: ChildProcess) -> None:
        """A process has ended, or is about to."""
        if self.children.get(child.number) is child:
            if not self._is_stopped:
                self.fail(child.death())
            self._end(child)

    def fail(self, error: BaseException) -> None:
        """They have failed."""
        with self._lock:
            self.error = self.error or error
        self._on_change()

    def _obey(self, child: ChildProcess, message: Outgoing) -> None:
        match message:
            case Results():
                self._sinks.deliver(message, lambda: self.is_wanted)
            case Committed():
                self._sinks.commit(message, lambda: self.is_wanted)
            case TaskSaid(_, task, report):
                self.tasks[task].hear(report)
                self._on_change()
            case Ended(_, sent):
                if sent is not None:
                    self.fail(sent.error())
                self._end(child)

    def _disown(self, said: TaskSaid) -> None:
        """Nobody will hear of this snapshot: its file is not wanted."""
        match said.report:
            case Unwanted(key):
                self._on_unwanted(said.task, said.generation, key)
            case Snapshotted(_, file) if file is not None:
                self._on_unwanted(said.task, said.generation, file.key)

    def _end(self, child: ChildProcess) -> None:
        with self._lock:
            self._over.add(child.number)
        self._on_change()


def _ask(child: ChildProcess, tell: TellTask) -> None:
    child.ask(pack(tell))  # a process that is gone is seen elsewhere
