"""What runs in the process of one TaskManager, and what it says to the process that started it.

Three pipes lead to the parent: commands come in; each is answered by one `Answer`; `Results` go out, and
behind them one `Ended`. Answers have a pipe of their own, since results wait while a sink is slow. When
the parent is gone its pipe ends, and so does this process, whatever it is doing.

What crosses the pipes is pickled: both ends are processes of one user, and no socket is near. The
functions of sinks stay with the parent: that is where the user waits for what they do.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from refimpl.drivers.streams import Security
from refimpl.drivers.task_threads import TaskManagerThreads
from refimpl.errors import SluiceError
from refimpl.invariants import RecordCounts, check_end_here
from refimpl.job.deployment import JobSnapshot
from refimpl.job.stream import StreamEnvironment
from refimpl.records.elements import StreamRecord
from refimpl.task.operators import Operator, SinkOperator

__all__ = ["Answer", "Command", "Deploy", "Ended", "Results", "Worker", "obey", "without_sinks"]

_MOST_RESULTS_WAITING = 128


# -- what is said ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deploy:
    """The first command: become TaskManager `number`. `sinks` are operators of `job` whose values we get."""

    job: StreamEnvironment
    sinks: list[int]
    number: int
    num_task_managers: int
    run_id: bytes
    host: str
    security: Security | None


@dataclass(frozen=True, slots=True)
class Command:
    """Any later command: a method of `Worker`, and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command came to: its value, or the exception it raised."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """Values for the sinks, in order: operator, subtask, value."""

    values: list[tuple[int, int, object]]


@dataclass(frozen=True, slots=True)
class Ended:
    """No task runs any more, or one has failed."""

    error: BaseException | None


def without_sinks(environment: StreamEnvironment) -> tuple[StreamEnvironment, list[int]]:
    """The job for another process, without the functions of its sinks, and which those are."""
    job = StreamEnvironment(environment.config, environment.parallelism)
    job.parts = environment.parts
    job.graph.edges = environment.graph.edges
    nodes = environment.graph.nodes
    job.graph.nodes = {
        number: node if node.sink is None else replace(node, sink=None, make_operator=Operator)
        for number, node in nodes.items()
    }
    return job, [number for number, node in nodes.items() if node.sink is not None]


# -- the worker --------------------------------------------------------------------------------------


class Outbox:
    """Sends messages to the parent; results gather while one is being sent.

    `put` waits when too many have gathered: the parent's sinks are slow, and the task is with them.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, object]] = []
        self._is_sending = False
        threading.Thread(target=self._run, name="results", daemon=True).start()

    def put(self, node_id: int, subtask: int, value: object) -> None:
        """Send one value, soon."""
        with self._changed:
            while len(self._waiting) >= _MOST_RESULTS_WAITING:
                self._changed.wait()
            self._waiting.append((node_id, subtask, value))
            if not self._is_sending:
                self._changed.notify_all()

    def drain(self) -> None:
        """Wait until every value has been sent."""
        with self._changed:
            while self._waiting or self._is_sending:
                self._changed.wait()

    def send(self, message: Answer | Ended | Results) -> None:
        """Send a message at once."""
        data = cloudpickle.dumps(message)
        with self._sending:
            self._pipe.send_bytes(data)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                while not self._waiting:
                    self._changed.wait()
                values, self._waiting = self._waiting, []
                self._is_sending = True
                self._changed.notify_all()
            self.send(Results(values))


def portable(error: BaseException) -> BaseException:
    """The error as another process can have it: with a note where it came from, and what fits of it."""
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    if _can_travel(error):
        return error
    error.__cause__ = None  # an exception of the user's, perhaps with a lock or a file in it
    if _can_travel(error):
        return error
    stand_in = SluiceError(f"{type(error).__name__}: {error}")
    stand_in.__notes__ = error.__notes__
    return stand_in


def _can_travel(error: BaseException) -> bool:
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever the user's exception does when it is copied
        return False
    return True


class Delivery(SinkOperator):
    """Stands where a sink stood, and sends its values to the parent."""

    def __init__(self, outbox: Outbox, node_id: int) -> None:
        super().__init__(print)
        self._outbox = outbox
        self._node_id = node_id

    def process(self, record: StreamRecord) -> None:
        self._outbox.put(self._node_id, self.context.subtask, record.value)


class Worker:
    """One TaskManager, and what its parent may ask of it."""

    def __init__(self, order: Deploy, outbox: Outbox) -> None:
        for number in order.sinks:
            order.job.graph.nodes[number].make_operator = partial(Delivery, outbox, number)
        self._outbox = outbox
        self._saying = threading.Lock()
        self._has_said_end = False
        self._threads = TaskManagerThreads(
            order.job, None, order.number, order.num_task_managers, order.run_id,
            order.host, order.security, self._on_end,
        )  # fmt: skip

    def address(self) -> tuple[str, int] | None:
        """Where others connect; `None` if there are none."""
        return self._threads.address if self._threads.is_listening else None

    def start(self, addresses: Sequence[tuple[str, int]]) -> None:
        self._threads.start(addresses)

    def snapshot(self) -> JobSnapshot:
        return self._threads.snapshot()

    def pause(self) -> None:
        self._threads.pause()

    def resume(self) -> None:
        self._threads.resume()

    def holds(self, operator_name: str) -> bool:
        return self._threads.deployment.holds(operator_name)

    def swap(self, parts: dict[str, object]) -> None:
        self._threads.swap(**parts)

    def swap_function(self, operator_name: str, function: object) -> None:
        self._threads.swap_function(operator_name, function)

    def settle(self) -> tuple[RecordCounts, JobSnapshot]:
        """After the last task everywhere has ended: nothing may be left here. What went through."""
        self._threads.settle()
        check_end_here(self._threads.deployment)
        return RecordCounts.of(self._threads.deployment), self._threads.snapshot()

    def close(self) -> None:
        self._threads.close()

    def _on_end(self) -> None:
        """Tell the parent, once, behind the last result."""
        with self._saying:
            if self._has_said_end:
                return
            self._has_said_end = True
        error = self._threads.error
        if error is None:
            self._outbox.drain()
        self._outbox.send(Ended(None if error is None else portable(error)))


def obey(commands: int, messages: int) -> None:
    """Obey the parent until it says `close` or is gone. The arguments are the numbers of two pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then tells us
    pipe = Connection(commands, writable=False)
    outbox = Outbox(Connection(messages, readable=False))
    worker: Worker | None = None
    try:
        while True:
            command = pipe.recv()
            try:
                value = None
                if isinstance(command, Deploy):
                    worker = Worker(command, outbox)
                elif worker is not None:
                    value = getattr(worker, command.name)(*command.arguments)
            except Exception as error:  # noqa: BLE001 - it is raised where the command came from
                outbox.send(Answer(error=portable(error)))
            else:
                outbox.send(Answer(value))
            if isinstance(command, Command) and command.name == "close":
                break
    except (EOFError, OSError):  # the parent is gone
        pass
    os._exit(0)  # not even user code that never returns keeps this process
