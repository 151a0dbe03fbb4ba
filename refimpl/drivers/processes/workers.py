"""The process of one TaskManager, at the other end of its parent's pipes.

When the parent is gone its pipe ends, and so does this process, whatever it is doing.
"""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from refimpl.config import Config
from refimpl.drivers.blocking_files import results_in
from refimpl.drivers.processes.messages import (
    TICKET_BYTES,
    Answer,
    Close,
    Deploy,
    Drop,
    Look,
    Request,
    Settle,
    Start,
    Stop,
    TakeSamples,
    TellTask,
    unpack,
)
from refimpl.drivers.processes.pipe_sender import PipeSender
from refimpl.drivers.processes.sent_error import SentError
from refimpl.drivers.processes.worker import Worker
from refimpl.drivers.threads.job_memory import JobMemory
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.snapshots import JobSnapshot
from refimpl.trace import Trace

__all__ = ["WorkerGroup", "obey"]


class WorkerGroup:
    """All that is deployed in this process, by the numbers of the deployments."""

    def __init__(self, sender: PipeSender) -> None:
        self._sender = sender
        self._workers: dict[int, Worker] = {}
        self._folder: Path | None = None
        self._memory = JobMemory(self._results)
        self._trace: Trace | None = None
        self._last: JobSnapshot | None = None  # of what was stopped last

    def answer(self, request: Request) -> object:
        """Obey a request, and return the value of its answer."""
        match request:
            case Deploy():
                return self._deploy(request)
            case Start(_, deployment) | Settle(deployment):
                return self._workers[deployment].answer(request)
            case TellTask(deployment):
                if (worker := self._workers.get(deployment)) is not None:
                    worker.answer(request)
            case Look():
                parts = [
                    part for each in self._workers.values() if isinstance(part := each.answer(request), JobSnapshot)
                ]
                return _as_one(parts) if parts else self._last
            case TakeSamples():
                samples = [each.answer(request) for each in self._workers.values()]
                return [found for part in samples if isinstance(part, list) for found in part]
            case Drop(results):
                self._memory.drop(results)
            case Stop() | Close():
                return self._stop(request)
            case _:
                for each in self._workers.values():
                    each.do(request)
        return None

    def _deploy(self, order: Deploy) -> object:
        if self._trace is None and order.make_trace is not None:
            self._trace = order.make_trace(order.number)
        if order.region is not None:
            self._folder = order.region.folder
        worker = self._workers[order.deployment] = Worker(order, self._sender, self._memory, self._trace)
        return worker.address

    def _stop(self, request: Stop | Close) -> bool:
        """End a deployment, or all; whether nothing of it is at work any more."""
        number = request.deployment if isinstance(request, Stop) else None
        ending = [each for each in self._workers if number in (None, each)]
        have_ended = []
        for each in ending:
            worker = self._workers.pop(each)
            if number is not None and isinstance(seen := worker.answer(Look()), JobSnapshot):
                self._last = seen
            have_ended.append(worker.answer(request))
        if isinstance(request, Close):
            self._sender.close()
            if self._trace is not None:
                self._trace.close()
        return all(have_ended)

    def _results(self, config: Config) -> BlockingResults:
        assert self._folder is not None, "a region has been deployed"
        return results_in(self._folder, config)


def _as_one(parts: Sequence[JobSnapshot]) -> JobSnapshot:
    """What several deployments have on the one TaskManager that is here; its pool is that of all."""
    whole = JobSnapshot.joined(parts)
    first, *others = whole.task_managers
    for each in others:
        first = replace(
            first,
            tasks=first.tasks + each.tasks,
            partitions=first.partitions + each.partitions,
            gates=first.gates + each.gates,
            gate_pools=first.gate_pools + each.gate_pools,
            readers=first.readers + each.readers,
            slots=first.slots + each.slots,
        )
    return replace(whole, task_managers=(first,))


def obey(commands: int, answers: int, results: int) -> None:
    """Obey the parent until it says `close` or is gone. The arguments are the numbers of three pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then tells us
    if isinstance(sys.stdout, io.TextIOWrapper):  # user code's lines are seen at once
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    sender = PipeSender(Connection(answers, readable=False), Connection(results, readable=False))
    threading.Thread(target=_hear, args=(commands, requests, sender), name="requests", daemon=True).start()
    workers = WorkerGroup(sender)
    is_last = False
    while not is_last:
        message = requests.get()
        try:
            request = unpack(message[TICKET_BYTES:])
            is_last = isinstance(request, Close)
            answer = Answer(workers.answer(request))
        except BaseException as error:  # noqa: BLE001 - it is raised where the request came from
            answer = Answer(error=SentError.of(error))
        sender.answer(message[:TICKET_BYTES], answer)
    with suppress(OSError, ValueError):  # the last lines, if somebody reads them
        sys.stdout.flush()
    os._exit(0)  # not even user code that never returns keeps this process


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
