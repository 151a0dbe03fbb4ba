"""A job on several processes: each is one TaskManager, and they speak over TCP.

The job is written once, here; each process gets a copy and runs its part of it, on threads. Results
come back: what a sink does is done here, in the process that started the job.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Collection
from typing import Self

from refimpl.drivers.control import BackgroundRun
from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.group import SECONDS_TO_SETTLE, ProcessGroup
from refimpl.drivers.processes.messages import Deploy, Settle, Start, pack, unpack, without_sinks
from refimpl.drivers.transport.streams import Security
from refimpl.errors import (
    USER_CODE_RAISES,
    LocalUsageError,
    RemoteTransportError,
    SluiceError,
    UserCodeError,
    failure_of,
    is_engines,
)
from refimpl.job.commands import Command, Pause, Resume, SwapFunction
from refimpl.job.environment import StreamEnvironment
from refimpl.job.snapshots import JobSnapshot
from refimpl.laws.records import check_records
from refimpl.trace import Trace

__all__ = ["ProcessRun"]


class ProcessRun(BackgroundRun):
    """Runs a job on `num_task_managers` processes of this machine.

    `run()` starts it and waits; or `start()`, look at `snapshot()`, `swap(...)`, and `join()`.
    Leaving a `with` block ends all processes.

    A process that does not answer, since it was stopped, say, is not waited for long: it is shown as
    it was seen last.

    Functions, readers and parts of the job are copied to the processes, wherever they were defined,
    and their changes there are not seen here. The functions of sinks are called here.
    `make_trace` makes the trace of each TaskManager in its own process, by its number.

    `cores` names a core for each TaskManager, to which all its threads keep (Linux): by number, of those in
    `os.sched_getaffinity(0)`. Bytes for each other are then in the cache of that core, and batches between
    processes are faster: `make bench ONLY=remote-batch/cores`. Only for cores that no other process wants: it
    would be waited for, even while other cores are free.

    Raises (constructor):
        LocalUsageError: something in the job belongs to this process, such as an open file; or `cores` are
            not to be had.
        InsufficientBuffersError: a TaskManager's pool is too small for its part.
    Raises (run, join):
        SluiceError: the job failed; the first error, after every process has ended.
        KeyboardInterrupt: passed on after every process has ended.
    Raises (from outside, while it runs):
        RemoteTransportError: a process does not answer; the others have done it, and it does it when it goes on.

    Flink:   a standalone cluster; here without a JobManager, this process stands in for it
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        num_task_managers: int = 2,
        security: Security | None = None,
        host: str = "127.0.0.1",
        make_trace: Callable[[int], Trace] | None = None,
        cores: Collection[int] | None = None,
    ) -> None:
        environment.execution_graph(num_task_managers)  # what cannot be is refused here
        chosen_cores = _each_core(cores, num_task_managers)
        run_id = secrets.token_bytes(8)
        job, sinks = without_sinks(environment)
        orders = [
            pack(Deploy(job, sinks, number, num_task_managers, run_id, host, security, make_trace))
            for number in range(num_task_managers)
        ]
        super().__init__()
        self._error: BaseException | None = None  # the first one, as soon as it has happened
        self._nodes = environment.graph.nodes
        self._sinks = {number: environment.graph.nodes[number].sink for number in sinks}
        self._over: set[int] = set()  # the TaskManagers whose end is known, with its reason
        self._last_snapshot: JobSnapshot | None = None
        self._is_paused = False
        self._group = ProcessGroup()
        try:
            for number, core in enumerate(chosen_cores):
                self._group.children.append(ChildProcess(number, self._deliver, self._on_change, core))
            requests = dict(zip(self._group.children, orders, strict=True))
            self._addresses = self._group.ask(requests, most_s=threading.TIMEOUT_MAX)
        except BaseException:
            self._close()
            raise

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all tasks; returns at once."""
        self._stopwatch.start()
        try:
            self._group.ask_all(Start(self._addresses), threading.TIMEOUT_MAX)
        except BaseException as error:
            self._fail(error)
            self._close()
            raise
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._wait_until(lambda: self.is_done or self._group.is_closed or self._error is not None, timeout_s):
            return False
        try:
            if self._error is None and not self._group.is_closed:
                parts = self._group.ask_all(Settle(), SECONDS_TO_SETTLE)
                check_records([counts for counts, _ in parts])
                self._group.remember([snapshot for _, snapshot in parts])
                self._last_snapshot = self._group.seen()
        except SluiceError as error:
            if not self._group.is_closed:  # else somebody has cancelled the run meanwhile
                self._fail(error)
        except BaseException:
            self.cancel()
            raise
        self._close()
        if self._error is not None:
            raise self._group.root_of(self._error)
        return True

    def cancel(self) -> None:
        """End every process, with all that it holds. Does nothing after the end."""
        self._close()

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        return self._stopwatch.is_started and len(self._over) == len(self._group.children)

    @property
    def error(self) -> BaseException | None:
        """Why the job failed, as far as it is known now: the first error, or the death it followed from."""
        return None if self._error is None else self._group.root_of(self._error)

    @property
    def process_ids(self) -> list[int]:
        """The process of each TaskManager."""
        return [child.process.pid for child in self._group.children]

    def snapshot(self) -> JobSnapshot:
        """The whole job; each TaskManager at one moment, one after the other. At last as it ended.

        One whose process has ended before the job, or does not answer, is shown as it was seen last.

        Raises:
            LocalUsageError: the processes have ended before anybody looked.
        """
        if self._last_snapshot is not None:
            return self._last_snapshot
        if not self._group.is_closed:
            try:
                self._group.look()
            except (LocalUsageError, RemoteTransportError):
                if self._error is None and not any(child.is_gone for child in self._group.children):
                    raise
        return self._group.seen()

    @property
    def is_paused(self) -> bool:
        """Whether it was paused, and not resumed since."""
        return self._is_paused

    def _command(self, command: Command) -> None:
        if isinstance(command, SwapFunction) and self._swap_sink(command):
            return
        if isinstance(command, Pause | Resume):
            self._is_paused = isinstance(command, Pause) and not self._group.is_closed
        self._group.ask_all(command)

    def _swap_sink(self, command: SwapFunction) -> bool:
        """Put another function in the place of a sink's, which is called here; false if it is no sink."""
        named = [number for number in self._sinks if self._nodes[number].name == command.operator_name]
        for number in named[:1]:
            self._sinks[number] = command.function
        return bool(named)

    # -- the children --------------------------------------------------------------------------------

    def _deliver(self, values: list[tuple[int, int, bytes]]) -> None:
        """Call the functions of the sinks, as long as nothing has failed."""
        for node_id, subtask, data in values:
            if self._error is not None or self._group.is_closed:
                return
            sink = self._sinks[node_id]
            assert sink is not None, f"{self._nodes[node_id].name} sent results and is no sink"
            value = None
            try:
                value = unpack(data)
                sink(value)
            except BaseException as error:  # noqa: BLE001 - the user's function; raised by `join`
                self._fail(self._failure_of(node_id, subtask, value, error))

    def _failure_of(self, node_id: int, subtask: int, value: object, error: BaseException) -> BaseException:
        """What to raise for what a sink raised: the same as where sinks run in their tasks."""
        if is_engines(error) or not issubclass(type(error), USER_CODE_RAISES):
            return error
        try:
            raise failure_of(self._nodes[node_id].name, subtask, value, error) from error
        except (SystemExit, UserCodeError) as failure:
            return failure

    def _on_change(self, child: ChildProcess) -> None:
        """A TaskManager's tasks have ended, or its process has."""
        if not self._group.is_closed:  # else they lose each other's connections one after the other
            if child.error is not None:
                self._fail(child.error)
            if child.is_gone:
                self._fail(child.death())
        with self._changed:
            self._over.add(child.number)
            if self.is_done:
                self._stopwatch.stop()
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _close(self) -> None:
        """End every process, with a word first, by force if that does not help."""
        with self._changed:
            self._group.is_closed = True
            self._changed.notify_all()
        self._group.close()


def _each_core(cores: Collection[int] | None, num_task_managers: int) -> list[int] | list[None]:
    """A core for each TaskManager, or none for any.

    Raises:
        LocalUsageError: they are not to be had; says which are.
    """
    if cores is None:
        return [None] * num_task_managers
    if not hasattr(os, "sched_getaffinity"):
        raise LocalUsageError("this system does not let a process choose its core: leave `cores` out")
    there = sorted(os.sched_getaffinity(0))
    chosen = list(cores) if isinstance(cores, Collection) else []
    if len(chosen) != num_task_managers or not all(type(core) is int and core in there for core in chosen):
        raise LocalUsageError(
            f"cores is to name one for each of {num_task_managers} TaskManagers, of those this process may use, "
            f"{', '.join(map(str, there))}; it is {cores!r}"
        )
    return chosen
