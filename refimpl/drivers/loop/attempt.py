"""One deployment of a job in an event loop: a coroutine for each task, two for each connection."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from refimpl.drivers.control import Stopwatch, pause_ms
from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.loop.connections import Changes, Connections
from refimpl.drivers.makers import makers_of
from refimpl.drivers.pressure_sampling import SampleTimer
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.task_gateways import LocalTask
from refimpl.invariants import check_end, check_nothing_left
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.commands import Command, SetTimeout
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.task_factory import Snapshots
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["LoopAttempt"]


class LoopAttempt:
    """All tasks of `graph`, in `deployments`. `pools` and `results`, by TaskManager, outlive them; `snapshots` and
    `region` as in `Deployment`.

    `tasks` are there with `snapshots`, for who coordinates checkpoints; `on_news` as in `LocalTask`, and at each end.

    Raises:
        InsufficientBuffersError: as `Deployment`; nothing is left behind.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        clock: ProcessingClock,
        stopwatch: Stopwatch,
        snapshots: Snapshots | None = None,
        pools: Sequence[NetworkBufferPool] | None = None,
        on_news: Callable[[], None] = lambda: None,
        results: Sequence[BlockingResults] | None = None,
        region: frozenset[Place] | None = None,
    ) -> None:
        self.deployments: list[Deployment] = []
        config, makers = graph.job.config, makers_of(graph.job.config)
        try:
            for number in range(graph.placement.num_task_managers):
                pool = None if pools is None else pools[number]
                kept = None if results is None else results[number]
                made = Deployment(
                    graph, number, trace, makers=makers, pool=pool, snapshots=snapshots, results=kept, region=region
                )
                self.deployments.append(made)
        except BaseException as error:
            self.close_after(error)
            raise
        self._is_region = region is not None
        self._clock = clock
        self._stopwatch = stopwatch
        self._on_news = on_news
        for task in (task for each in self.deployments for task in each.tasks):
            task.use_clock(lambda: stopwatch.elapsed_s * 1000)
        self._changes = {id(each): Changes() for each in self.deployments}
        partitions = [partition for each in self.deployments for partition in each.partitions]
        self._flush_clock = FlushClock(partitions, config.buffer_timeout_ms, self.tell_all)
        self._timeout_changes, self._sample_changes = Changes(), Changes()
        tasks = [task for each in self.deployments for task in each.tasks]
        self.samples = SampleTimer(tasks, on_order=self._sample_changes.tell)
        self.tasks: Mapping[str, LocalTask] = {}
        if snapshots is not None:
            self.tasks = {
                task.name: LocalTask(task, self._changes[id(each)].tell, on_news)
                for each in self.deployments
                for task in each.tasks
            }

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        return all(deployment.is_done for deployment in self.deployments)

    async def run(self, on_tasks_ended: Callable[[], None] = lambda: None) -> None:
        """Run all tasks to their end, wait for the connections to end too, and check that nothing is left.

        Raises:
            AssertionError: a law is broken.
        """
        async with Connections(self.deployments, self._changes) as connections:
            tasks = [self._run_task(deployment, task) for deployment in self.deployments for task in deployment.tasks]
            await _all_or_first_error(
                tasks, [self._keep_flushing(), self._take_samples(), self._send_barriers(), connections.watch()]
            )
            on_tasks_ended()
            await connections.settle()
        if self._is_region:
            check_nothing_left(*self.deployments)
        else:
            check_end(*self.deployments)

    def do(self, command: Command) -> None:
        """Carry a command out."""
        for deployment in self.deployments:
            deployment.do(command)
        if isinstance(command, SetTimeout):
            self._flush_clock.set_timeout(command.timeout_ms)
            self._timeout_changes.tell()
        self.tell_all()

    def tell_all(self, _late_ms: float = 0.0) -> None:
        """Let all coroutines that wait look whether they can go on."""
        for changes in self._changes.values():
            changes.tell()

    def close(self) -> None:
        """Give everything back."""
        for deployment in self.deployments:
            deployment.close()

    def close_after(self, error: BaseException) -> None:
        """Give everything back; trouble on the way is noted on `error`."""
        for deployment in self.deployments:
            deployment.close_after(error)

    # -- coroutines ------------------------------------------------------------------------------------

    async def _run_task(self, deployment: Deployment, task: Task) -> None:
        changes = self._changes[id(deployment)]
        while not task.is_done:
            self._clock.tell(task)
            if deployment.is_paused or not task.is_runnable:
                if not task.is_runnable:
                    task.note_rest()
                most_s = None if deployment.is_paused else self._clock.wait_s(task)
                await changes.wait_until(lambda: task.is_runnable and not deployment.is_paused, most_s)
                continue
            task.step()
            changes.tell()
            await asyncio.sleep(0)
            if pause_ms(task):
                await self._rest(task, changes)
        self._on_news()

    async def _rest(self, task: Task, changes: Changes) -> None:
        """Let the time pass that a task rests after a step, also if it is changed meanwhile."""
        start_s = time.monotonic()
        while (left_s := start_s + pause_ms(task) / 1000 - time.monotonic()) > 0:
            await changes.wait_until(lambda: time.monotonic() >= start_s + pause_ms(task) / 1000, left_s)

    async def _keep_flushing(self) -> None:
        """Flush whenever the clock says so, until it is cancelled."""
        while True:
            await self._until_due(self._flush_clock.due_s)
            self._flush_clock.flush_if_due()

    async def _take_samples(self) -> None:
        """Take samples of the tasks when they are due, until it is cancelled."""
        while True:
            await self._until_sampled(self.samples.due_s)
            self.samples.take_if_due()

    async def _until_sampled(self, due_s: float) -> None:
        """Wait until the next sample is due, or is due at another time."""
        wait_s = None if due_s == math.inf else max(0.0, due_s - time.monotonic())
        await self._sample_changes.wait_until(lambda: self.samples.due_s != due_s, wait_s)

    async def _until_due(self, due_s: float) -> None:
        """Wait until the next flush is due, or is due at another time."""
        wait_s = None if due_s == math.inf else max(0.0, due_s - time.monotonic())
        await self._timeout_changes.wait_until(lambda: self._flush_clock.due_s != due_s, wait_s)

    async def _send_barriers(self) -> None:
        """Let the sources send a barrier as often as they are to."""
        triggers = [each.checkpoints for each in self.deployments]
        while deadlines := [each.next_deadline for each in triggers if each.next_deadline is not None]:
            await asyncio.sleep(max(0.0, min(deadlines) / 1000 - self._stopwatch.elapsed_s))
            for deployment in self.deployments:
                if deployment.checkpoints.on_timeout(self._stopwatch.elapsed_s * 1000):
                    self._changes[id(deployment)].tell()


async def _all_or_first_error(tasks: list[Coroutine[Any, Any, None]], beside: list[Coroutine[Any, Any, None]]) -> None:
    """Wait for all tasks, with `beside` going on meanwhile; the first error of any ends the others."""
    needed = [asyncio.create_task(each) for each in tasks]
    running = [*(asyncio.create_task(each) for each in beside), *needed]
    try:
        while not all(each.done() for each in needed):
            waiting = [each for each in running if not each.done()]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in running:
                if each.done():
                    each.result()
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
