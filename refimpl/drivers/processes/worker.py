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

from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Close,
    Deploy,
    Ended,
    Look,
    Request,
    Results,
    Settle,
    Start,
    pack,
    unpack,
)
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.errors import USER_CODE_RAISES
from refimpl.invariants import check_end_here
from refimpl.job.snapshots import JobSnapshot
from refimpl.laws.records import RecordCounts
from refimpl.records.elements import StreamRecord
from refimpl.task.operators import SinkOperator

__all__ = ["Delivery", "Outlet", "Worker", "obey"]

_MOST_RESULTS_WAITING = 128
_MOST_BYTES_WAITING = 1024 * 1024


class PipeSender:
    """Sends answers to the parent at once, and results in batches that gather while one batch is sent.

    `put` waits when too many have gathered: the parent's sinks are slow, and the task is with them.
    """

    def __init__(self, answers: Connection, results: Connection) -> None:
        self._answers = answers
        self._results = results
        self._answering = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, bytes]] = []
        self._num_bytes = 0
        self._is_sending = False
        self._is_closed = False
        threading.Thread(target=self._run, name="results", daemon=True).start()

    def put(self, node_id: int, subtask: int, value: bytes) -> None:
        """Send one value, soon; none after `close`."""
        with self._changed:
            while not self._is_closed and (
                len(self._waiting) >= _MOST_RESULTS_WAITING or self._num_bytes >= _MOST_BYTES_WAITING
            ):
                self._changed.wait()
            if self._is_closed:
                return
            self._waiting.append((node_id, subtask, value))
            self._num_bytes += len(value)
            if not self._is_sending:
                self._changed.notify_all()

    def answer(self, ticket: bytes, answer: Answer | Ended) -> None:
        """Send the answer to the request with this number."""
        data = ticket + pack(answer)
        with self._answering, suppress(OSError):  # the parent is gone; the thread that hears requests sees it
            self._answers.send_bytes(data)

    def end(self, error: BaseException | None) -> None:
        """Send that the tasks have ended: if all is well, behind the last result."""
        if error is not None:
            self.answer(bytes(TICKET_BYTES), Ended(SentError.of(error)))
            return
        with self._changed:
            while (self._waiting or self._is_sending) and not self._is_closed:
                self._changed.wait()
            if self._is_closed:  # a result may still be on its way, and the parent reads no further
                return
        self._send(Ended(None))

    def close(self) -> None:
        """End all waits here, for good."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _send(self, message: Ended | Results) -> None:
        with suppress(OSError):  # as above
            self._results.send_bytes(pack(message))

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                while not self._waiting:
                    self._changed.wait()
                values, self._waiting = self._waiting, []
                self._num_bytes = 0
                self._is_sending = True
                self._changed.notify_all()
            self._send(Results(values))


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
    """One TaskManager, and its answers to the parent's requests."""

    def __init__(self, order: Deploy, sender: PipeSender) -> None:
        for number in order.sinks:
            order.job.graph.nodes[number].make_operator = partial(Delivery, sender, number)
        self._sender = sender
        self._saying = threading.Lock()
        self._has_said_end = False
        self._trace = None if order.make_trace is None else order.make_trace(order.number)
        self._threads = TaskManagerThreads(
            order.job,
            self._trace,
            order.number,
            order.num_task_managers,
            order.run_id,
            order.host,
            order.security,
            self._on_end,
        )

    @property
    def address(self) -> tuple[str, int] | None:
        """Where others connect; `None` if there are none."""
        return self._threads.connections.address

    def answer(self, request: Request) -> object:
        """Obey a request, and return the value of its answer."""
        match request:
            case Start(addresses):
                self._threads.start(addresses)
            case Look():
                return self._threads.snapshot()
            case Settle():
                return self._settle()
            case Close():
                self._close()
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

    def _close(self) -> None:
        self._sender.close()
        self._threads.close()
        if self._trace is not None:
            self._trace.close()

    def _on_end(self) -> None:
        """Tell the parent, once, behind the last result."""
        with self._saying:
            if self._has_said_end:
                return
            self._has_said_end = True
        self._sender.end(self._threads.error)


# -- the process -------------------------------------------------------------------------------------


def obey(commands: int, answers: int, results: int) -> None:
    """Obey the parent until it says `close` or is gone. The arguments are the numbers of three pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then tells us
    if isinstance(sys.stdout, io.TextIOWrapper):  # user code's lines are seen at once
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(commands, requests), name="requests", daemon=True).start()
    sender = PipeSender(Connection(answers, readable=False), Connection(results, readable=False))
    worker: Worker | None = None
    is_last = False
    while not is_last:
        message = requests.get()
        try:
            request = unpack(message[TICKET_BYTES:])
            value: object = None
            is_last = isinstance(request, Close)
            if isinstance(request, Deploy):
                worker = Worker(request, sender)
                value = worker.address
            elif worker is not None:
                value = worker.answer(request)
            answer = Answer(value)
        except BaseException as error:  # noqa: BLE001 - it is raised where the request came from
            answer = Answer(error=SentError.of(error))
        sender.answer(message[:TICKET_BYTES], answer)
    with suppress(OSError, ValueError):  # the last lines, if somebody reads them
        sys.stdout.flush()
    os._exit(0)  # not even user code that never returns keeps this process


def _hear(commands: int, requests: queue.SimpleQueue[bytes]) -> None:
    """Take requests in while others are obeyed; when the parent is gone, so is this process."""
    pipe = Connection(commands, writable=False)
    with suppress(EOFError, OSError):
        while True:
            requests.put(pipe.recv_bytes())
    os._exit(0)
