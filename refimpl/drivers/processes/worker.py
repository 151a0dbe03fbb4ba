"""The process of one TaskManager, at the other end of its parent's pipes.

When the parent is gone its pipe ends, and so does this process, whatever it is doing. The functions of
sinks stay with the parent: that is where the user waits for what they do.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol

from refimpl.drivers.processes.attempt_checkpoints import AttemptCheckpoints, check_shared
from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Close,
    Deploy,
    Ended,
    Look,
    Request,
    Saved,
    Settle,
    Start,
    Stop,
    TellTask,
    pack,
    unpack,
)
from refimpl.drivers.processes.pipe_sender import AttemptOutlet, PipeSender
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.errors import USER_CODE_RAISES
from refimpl.invariants import check_end_here
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.snapshots import JobSnapshot
from refimpl.job.task_factory import Snapshots
from refimpl.laws.records import RecordCounts
from refimpl.records.elements import StreamRecord
from refimpl.task.operators import SinkOperator
from refimpl.task.sink_operators import HeldSinkOperator
from refimpl.trace import Trace

__all__ = ["Delivery", "Outlet", "Worker", "obey"]

_SECONDS_TO_PUT = 5.0


class Outlet(Protocol):
    """Where values of sinks go on their way to another process."""

    def put(self, node_id: int, subtask: int, value: bytes) -> None:
        """Take one value of a sink, as `pack` makes it."""


class Delivery(SinkOperator):
    """Stands where a sink stood, and sends its values to where the user waits for them."""

    def __init__(self, sender: Outlet, node_id: int) -> None:
        super().__init__(print)
        self._sender = sender
        self._node_id = node_id

    def process(self, record: StreamRecord) -> None:
        # At once: the operators before this one may change the value when this call is over.
        try:
            value = pickle.dumps(record.value)  # fast; refuses what came by value, as from a notebook
        except USER_CODE_RAISES:  # whatever the user's value does when it is copied
            value = pack(record.value)
        self._sender.put(self._node_id, self.context.subtask, value)


class Worker:
    """The attempts of one deployment on this TaskManager, and its answers to the parent's requests."""

    def __init__(self, order: Deploy, sender: PipeSender, trace: Trace | None = None) -> None:
        outlet = AttemptOutlet(sender, order.generation)
        environment = order.job.environment
        for number in order.job.sinks:
            environment.graph.nodes[number].make_operator = partial(Delivery, outlet, number)
        for number, value_type in order.job.held.items():
            give = partial(outlet.commit, number)
            environment.graph.nodes[number].make_operator = partial(HeldSinkOperator, give, value_type)
        self._sender = sender
        self._generation = order.generation
        self._saying = threading.Lock()
        self._has_said_end = False
        self._trace = trace
        graph = environment.execution_graph(order.num_task_managers, order.run_id)
        for _ in range(order.generation):
            graph = graph.restarted()
        self._checkpoints: AttemptCheckpoints | None = None
        self._threads = TaskManagerThreads(
            graph,
            trace,
            order.number,
            order.host,
            order.security,
            self._on_end,
            None if order.saved is None else _snapshots(order.saved, graph, order.number),
            self._on_news,
        )
        if order.saved is not None:
            self._checkpoints = AttemptCheckpoints(self._threads, order.saved, order.generation, sender.say)

    @property
    def address(self) -> tuple[str, int] | None:
        """Where others connect; `None` if there are none."""
        return self._threads.connections.address

    def answer(self, request: Request) -> object:
        """Obey a request, and return the value of its answer."""
        match request:
            case Start(addresses):
                if self._checkpoints is not None:
                    self._checkpoints.start()
                self._threads.start(addresses)
            case Look():
                return self._threads.snapshot()
            case Settle():
                return self._settle()
            case TellTask():
                if self._checkpoints is not None:
                    self._checkpoints.tell(request)
            case Stop() | Close():
                return self._stop()
            case Deploy():
                raise AssertionError("this process is a TaskManager already")
            case _:
                self._threads.do(request)
        return None

    def _settle(self) -> tuple[RecordCounts, JobSnapshot]:
        self._threads.settle()
        check_end_here(self._threads.deployment)
        if self._trace is not None:
            self._trace.close()
        return RecordCounts.of(self._threads.deployment), self._threads.snapshot()

    def _stop(self) -> bool:
        """End all; whether nothing is at work any more: user code may be, and a store, for as long as they like."""
        self._sender.close(self._generation)
        self._threads.close()
        has_put = self._checkpoints is None or self._checkpoints.stop(_SECONDS_TO_PUT)
        return self._threads.is_ended and has_put

    def _on_news(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.note_news()

    def _on_end(self) -> None:
        """Tell the parent, once, behind the last result; where checkpoints are, behind what is said of them."""
        with self._saying:
            if self._has_said_end or (self._checkpoints is not None and self._threads.error is None):
                return
            self._has_said_end = True
        if self._threads.error is not None:
            self._sender.fail(self._generation, self._threads.error)
        else:
            self._sender.say(Ended(self._generation, None))


def _snapshots(saved: Saved, graph: ExecutionGraph, number: int) -> Snapshots:
    """What the tasks of a TaskManager go on from."""
    check_shared(saved)
    here = [each for each in graph.vertices if each.task_manager == number]
    return saved.point.snapshots(saved.store, graph, here)


# -- the process -------------------------------------------------------------------------------------


def obey(commands: int, answers: int, results: int) -> None:
    """Obey the parent until it says `close` or is gone. The arguments are the numbers of three pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then tells us
    if isinstance(sys.stdout, io.TextIOWrapper):  # user code's lines are seen at once
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    sender = PipeSender(Connection(answers, readable=False), Connection(results, readable=False))
    threading.Thread(target=_hear, args=(commands, requests, sender), name="requests", daemon=True).start()
    worker: Worker | None = None
    trace: Trace | None = None
    is_last = False
    while not is_last:
        message = requests.get()
        try:
            request = unpack(message[TICKET_BYTES:])
            value: object = None
            is_last = isinstance(request, Close)
            if isinstance(request, Deploy):
                if trace is None and request.make_trace is not None:
                    trace = request.make_trace(request.number)
                worker = Worker(request, sender, trace)
                value = worker.address
            elif worker is not None:
                value = worker.answer(request)
            if isinstance(request, Stop):
                value, worker = worker is None or value, None
            if is_last:
                _end(sender, trace)
            answer = Answer(value)
        except BaseException as error:  # noqa: BLE001 - it is raised where the request came from
            answer = Answer(error=SentError.of(error))
        sender.answer(message[:TICKET_BYTES], answer)
    with suppress(OSError, ValueError):  # the last lines, if somebody reads them
        sys.stdout.flush()
    os._exit(0)  # not even user code that never returns keeps this process


def _end(sender: PipeSender, trace: Trace | None) -> None:
    sender.close()
    if trace is not None:
        trace.close()


def _hear(commands: int, requests: queue.SimpleQueue[bytes], sender: PipeSender) -> None:
    """Take requests in while others are obeyed; when the parent is gone, so is this process.

    One without words asks whether this process is there, and is answered at once.
    """
    pipe = Connection(commands, writable=False)
    with suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            if len(message) == TICKET_BYTES:
                sender.answer(message, Answer())
            else:
                requests.put(message)
    os._exit(0)
