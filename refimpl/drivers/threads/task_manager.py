"""One TaskManager on threads: one for each task, two for each connection, and one monitor for all.

The monitor is held while a task polls and emits, while a writer opens or closes a buffer, and while a
connection takes bytes in or gives some out; not by the user's code, nor to serialise, nor while a thread
waits for a transport. Where tasks wait: `TaskTurns`; where connections do: `ConnectionIO`.

A source does step after step without the monitor, as long as it has room and nothing is due.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from refimpl.drivers.control import Stopwatch, pause_ms
from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.makers import makers_of
from refimpl.drivers.pressure_sampling import SampleTimer
from refimpl.drivers.threads.connections import TaskManagerConnections
from refimpl.drivers.threads.flusher import keep_flushing, send_barriers
from refimpl.drivers.threads.switch_interval import SwitchInterval
from refimpl.drivers.threads.turns import TaskTurns
from refimpl.drivers.transport.streams import Security
from refimpl.errors import UserCodeError
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.commands import Command, Resume, SetTimeout
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.snapshots import JobSnapshot
from refimpl.job.task_factory import Snapshots
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["BUFFERS_PER_STEP", "RegionPlace", "TaskManagerThreads"]

BUFFERS_PER_STEP = 16  # the monitor and credit once for all of them; 68 at once were slower
_SECONDS_TO_STOP = 5.0


@dataclass(frozen=True, slots=True)
class RegionPlace:
    """What the regions of a job share on one TaskManager, and which of its subtasks one of them is."""

    monitor: threading.RLock
    results: BlockingResults
    region: frozenset[Place]


class TaskManagerThreads:
    """Runs the part of a job that one TaskManager has.

    With several it listens at `connections.address`, on `host`, from the beginning; `start` gets the addresses of all.
    `on_end` is called, on any thread, without the monitor, at the end of the last task and at a failure; `on_news` at
    the end of each. `snapshots` and `pool` are as in `Deployment`. With a `place` it is a region that runs there,
    beside others on the same memory and under the same monitor.

    Raises:
        ConfigError: it cannot listen there.
        InsufficientBuffersError: as `Deployment`.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None = None,
        number: int = 0,
        host: str = "127.0.0.1",
        security: Security | None = None,
        on_end: Callable[[], None] = lambda: None,
        snapshots: Snapshots | None = None,
        on_news: Callable[[], None] = lambda: None,
        pool: NetworkBufferPool | None = None,
        place: RegionPlace | None = None,
    ) -> None:
        self.monitor = threading.RLock() if place is None else place.monitor
        if trace is not None:
            trace.use_clock(time.monotonic_ns, time.time_ns() - time.monotonic_ns())
        makers = makers_of(graph.job.config)
        results, region = (None, None) if place is None else (place.results, place.region)
        with self.monitor:
            self.deployment = Deployment(
                graph, number, trace, self.monitor, BUFFERS_PER_STEP, makers, pool, snapshots, results, region
            )
        self.error: BaseException | None = None  # the first one, as soon as it has happened
        is_alone, timeout_ms = graph.placement.num_task_managers == 1, graph.job.config.buffer_timeout_ms
        self.turns = TaskTurns(self.monitor, self.deployment, is_alone)
        self.leader_followers = self.turns.leader_followers  # connections ask for them
        self._switch_interval = SwitchInterval(timeout_ms)
        after_flush = self._switch_interval.note_flush if is_alone else self._write_deferred
        self.flush_clock = FlushClock(self.deployment.partitions, timeout_ms, after_flush)
        self.samples = SampleTimer(self.deployment.tasks, self.monitor, self.turns.stopped.notify_all)
        self._on_end = on_end
        self._on_news = on_news
        self._threads: list[threading.Thread] = []
        self._num_running = len(self.deployment.tasks)
        self._stopwatch = Stopwatch()
        try:
            self.connections = TaskManagerConnections(self, self.deployment, is_alone, host, security)
        except BaseException as error:
            self.deployment.close_after(error)
            raise

    def __repr__(self) -> str:
        return f"TaskManagerThreads(tm-{self.deployment.task_manager}, {self._num_running} tasks run)"

    # -- the life of a TaskManager -------------------------------------------------------------------

    @property
    def is_cancelled(self) -> bool:
        return self.turns.is_cancelled

    @property
    def is_ended(self) -> bool:
        """Whether no task runs any more."""
        return self._num_running == 0

    @property
    def is_here(self) -> bool:
        """Whether one of its threads asks."""
        return threading.current_thread() in self._threads

    def start(self, addresses: Sequence[tuple[str, int] | None] = ()) -> None:
        """Start all threads and return; `addresses` are those of all TaskManagers, by number."""
        name, turns = f"tm-{self.deployment.task_manager}", self.turns
        self._stopwatch.start()
        if self.connections.address is not None:
            self._switch_interval.start()
            self._add_thread(f"{name} (accept)", self.connections.accept)
            self._add_thread(f"{name} (watchdog)", self.leader_followers.guard)
        for task in self.deployment.tasks:
            task.use_clock(lambda: self._stopwatch.elapsed_s * 1000)
            self._add_thread(task.name, partial(self._run_task, task))
        flush = partial(keep_flushing, self.flush_clock, self.samples, turns.stopped)
        self._add_thread(f"{name} (flush)", partial(flush, lambda: self.is_ended or turns.is_cancelled))
        send = partial(send_barriers, self.deployment.checkpoints, turns.stopped, turns.wake_all)
        self._add_thread(f"{name} (barriers)", partial(send, lambda: turns.is_cancelled))
        self.connections.connect(addresses, self._is_cancelled_within)
        for thread in self._threads:
            thread.start()

    def cancel(self) -> None:
        """Stop the tasks after what they are doing now; the connections stay. Returns at once."""
        with self.monitor:
            self.turns.is_cancelled = True
            self.deployment.do(Resume())
            self.turns.end()

    def fail(self, error: BaseException) -> None:
        """End the job with an error, wherever it was found. Not under the monitor."""
        with self.monitor:
            self.error = self.error or error
            self.cancel()
        self._on_end()

    def settle(self) -> None:
        """After the last task everywhere has ended, or after a cut: wait until the connections have too."""
        self.connections.settle(_SECONDS_TO_STOP)

    def close(self, error: BaseException | None = None) -> None:
        """Stop all threads and give everything back; trouble is noted on `error`. Safe to repeat.

        A thread inside user code that does not return is left behind; it can no longer touch the job.
        """
        self._switch_interval.stop()
        self.cancel()
        self.connections.stop()
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, give_up - time.monotonic()))
        self.settle()
        self._switch_interval.stop()  # again: the last flush may have wanted it short
        with self.monitor:
            if error is None:
                self.deployment.close()
            else:
                self.deployment.close_after(error)

    # -- from outside ----------------------------------------------------------------------------------

    def snapshot(self) -> JobSnapshot:
        """This part of the job at one moment."""
        with self.monitor:
            return self.deployment.snapshot(self._stopwatch.elapsed_s * 1000)

    def wake(self, task: Task | None = None) -> None:
        """Let a task, or every task, look whether it can go on. Not under the monitor of another."""
        with self.monitor:
            if task is None:
                self.turns.wake_all()
            else:
                self.turns.wakers[task.name].wake()

    def do(self, command: Command) -> None:
        """Carry a command out; every task looks then whether it can go on."""
        with self.monitor:
            self.deployment.do(command)
            if isinstance(command, SetTimeout):
                self.flush_clock.set_timeout(command.timeout_ms)
                self._switch_interval.change(command.timeout_ms)
            self.turns.wake_all()

    # -- tasks -----------------------------------------------------------------------------------------

    def _add_thread(self, name: str, run: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=self._guard, args=(run,), name=name, daemon=True))

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins; ends the other threads
            self.fail(error)

    def _run_task(self, task: Task) -> None:
        self._guard(partial(self._work_or_say_who, task))
        with self.monitor:
            self._num_running -= 1
            if self.is_ended:
                self.turns.end()
        self._on_news()
        if self.is_ended:
            self._on_end()

    def _work_or_say_who(self, task: Task) -> None:
        """`_work`; on this thread nobody presses Ctrl-C."""
        try:
            self._work(task)
        except KeyboardInterrupt as error:
            name, _, subtask = task.name.rpartition("-")
            raise UserCodeError(name, int(subtask), None, error) from error

    def _work(self, task: Task) -> None:
        """Step by step to the end; the monitor is taken once from the end of one to the beginning of the next."""
        turns, clock, leader_followers = self.turns, self.flush_clock, self.leader_followers
        handoff = turns.handoff
        has_work = False
        while True:
            with self.monitor:
                if turns.is_cancelled:
                    return
                has_flushed = clock.flush_if_due()
                leader_followers.poll_if_due()
                if has_work:
                    with leader_followers.writes:  # each connection writes what it has got by that, once
                        task.emit()
                    if pause_ms(task):
                        turns.rest(task)
                if has_flushed and task.writers and handoff is not None:
                    handoff.yield_after_flush(task.name, clock.begin_anew)
                if task.is_done or not turns.wait_for_turn(task):
                    return
                has_work = task.poll()
            if has_work:
                task.process()
                while not (self._is_any_wanted or pause_ms(task)) and task.go_on():
                    turns.clock.tell(task)
                    task.process()

    @property
    def _is_any_wanted(self) -> bool:
        """Whether a task is to come under the monitor after the step it is in."""
        return (
            self.turns.is_cancelled
            or self.deployment.is_paused
            or self.flush_clock.is_due
            or self.leader_followers.is_due
        )

    # -- what others ask of it -------------------------------------------------------------------------

    def _write_deferred(self, _late_ms: float) -> None:
        self.leader_followers.write_deferred()

    def _is_cancelled_within(self, wait_ms: float) -> bool:
        with self.monitor:
            return self.turns.is_cancelled_within(wait_ms)
