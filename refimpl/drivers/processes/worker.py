"""The attempts of one deployment in the process of a TaskManager.

The functions of sinks stay with the parent: that is where the user waits for what they do.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Hashable
from functools import partial
from typing import Protocol

from refimpl.cluster.back_pressure import SampleTasks
from refimpl.drivers.processes.attempt_checkpoints import AttemptCheckpoints, check_shared
from refimpl.drivers.processes.messages import (
    Close,
    Deploy,
    Ended,
    Look,
    Request,
    Saved,
    Settle,
    Start,
    Stop,
    TakeSamples,
    TellTask,
    pack,
)
from refimpl.drivers.processes.pipe_sender import AttemptOutlet, PipeSender
from refimpl.drivers.threads.job_memory import JobMemory
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.errors import USER_CODE_RAISES
from refimpl.invariants import check_end_here, check_nothing_left
from refimpl.job.commands import Command
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.snapshots import JobSnapshot
from refimpl.job.task_factory import Snapshots
from refimpl.laws.records import RecordCounts
from refimpl.records.elements import StreamRecord
from refimpl.task.operators import SinkOperator
from refimpl.task.sink_operators import HeldSinkOperator
from refimpl.trace import Trace

__all__ = ["Delivery", "Outlet", "Worker"]

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
        self.deliver(value)

    def deliver(self, value: bytes) -> None:
        """Send a value that was packed."""
        self._sender.put(self._node_id, self.context.subtask, value)


class Worker:
    """The attempts of one deployment on this TaskManager, and its answers to the parent's requests.

    Those of one region have their network memory, and blocking results, of `memory`.
    """

    def __init__(self, order: Deploy, sender: PipeSender, memory: JobMemory, trace: Trace | None = None) -> None:
        outlet = AttemptOutlet(sender, order.deployment)
        environment = order.job.environment
        for number in order.job.sinks:
            environment.graph.nodes[number].make_operator = partial(Delivery, outlet, number)
        for number, value_type in order.job.held.items():
            give = partial(outlet.commit, number)
            environment.graph.nodes[number].make_operator = partial(HeldSinkOperator, give, value_type)
        self._sender = sender
        self._deployment = order.deployment
        self._saying = threading.Lock()
        self._has_said_end = False
        self._sampled: list[tuple[int, Hashable, float]] = []
        self._trace = trace
        base = environment.execution_graph(order.num_task_managers, order.run_id)
        graph = ExecutionGraph(base.job, base.placement, order.attempts, order.run_id, order.generation)
        pool, place = None, None
        if order.region is not None:
            pool, place = memory.of(order.region.places, graph.job.config)
        self._is_region = place is not None
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
            pool,
            place,
        )
        if order.saved is not None:
            self._checkpoints = AttemptCheckpoints(self._threads, order.saved, order.deployment, sender.say)

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
            case TakeSamples(order):
                return self._take_samples(order)
            case Settle():
                return self._settle()
            case TellTask():
                if self._checkpoints is not None:
                    self._checkpoints.tell(request)
            case Stop() | Close():
                return self._stop()
            case _:
                raise AssertionError(f"{request} is for the process")
        return None

    def do(self, command: Command) -> None:
        """Carry a command of the job out."""
        self._threads.do(command)

    def _take_samples(self, order: SampleTasks | None) -> list[tuple[int, Hashable, float]]:
        if order is not None:
            self._threads.samples.sample(
                order, lambda request, task, ratio: self._sampled.append((request, task, ratio))
            )
        found, self._sampled = self._sampled, []
        return found

    def _settle(self) -> tuple[RecordCounts, JobSnapshot]:
        self._threads.settle()
        if self._is_region:
            check_nothing_left(self._threads.deployment)
        else:
            check_end_here(self._threads.deployment)
            if self._trace is not None:
                self._trace.close()
        return RecordCounts.of(self._threads.deployment), self._threads.snapshot()

    def _stop(self) -> bool:
        """End all; whether nothing is at work any more: user code may be, and a store, for as long as they like."""
        self._sender.close(self._deployment)
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
            self._sender.fail(self._deployment, self._threads.error)
        else:
            self._sender.say(Ended(self._deployment, None))


def _snapshots(saved: Saved, graph: ExecutionGraph, number: int) -> Snapshots:
    """What the tasks of a TaskManager go on from."""
    check_shared(saved)
    here = [each for each in graph.vertices if each.task_manager == number]
    return saved.point.snapshots(saved.store, graph, here)
