"""A job in one event loop: a coroutine for each task, two for each connection, and no thread at all.

Nothing runs while something else does, so the loop itself keeps calls apart. A task gives way after
each step; the user's code holds up everybody while it runs, which on threads it does not.

In a notebook, which has a loop already: `await AsyncRun(job).execute()`. Views stay alive meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Coroutine
from typing import Any, Self

from refimpl.drivers.control import Controls, Stopwatch, pause_ms
from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.loop.connections import Changes, Connections
from refimpl.drivers.makers import makers_of
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.errors import LocalUsageError
from refimpl.invariants import check_end
from refimpl.job.commands import Command, SetTimeout
from refimpl.job.deployment import Deployment
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.snapshots import JobSnapshot
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["AsyncRun"]


class AsyncRun(Controls):
    """Runs a job in an event loop.

    `await run.execute()` where a loop runs, `run.run()` where none does. Messages between several TaskManagers
    go over loopback. Cancelling the coroutine cancels the job.

    Raises (execute, run):
        SluiceError: the job failed; the first error, after everything has been given back.
    """

    def __init__(self, environment: StreamEnvironment, trace: Trace | None = None, num_task_managers: int = 1) -> None:
        check_num_task_managers(num_task_managers)
        self.deployments: list[Deployment] = []
        self._stopwatch = Stopwatch()
        if trace is not None:
            trace.use_clock(time.monotonic_ns, time.time_ns() - time.monotonic_ns())
        run_id = secrets.token_bytes(8)
        try:
            makers = makers_of(environment.config)
            for number in range(num_task_managers):
                graph = environment.execution_graph(num_task_managers, run_id)
                self.deployments.append(Deployment(graph, number, trace, makers=makers))
        except BaseException as error:
            self._close_after(error)
            raise
        self.deployment = self.deployments[0]
        self._changes = {id(each): Changes() for each in self.deployments}
        partitions = [partition for each in self.deployments for partition in each.partitions]
        self._flush_clock = FlushClock(partitions, environment.config.buffer_timeout_ms, self._tell_all)
        self._timeout_changes = Changes()
        self._clock = ProcessingClock(environment.config.epoch_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for deployment in self.deployments:
            deployment.close()

    # -- the life of a run ---------------------------------------------------------------------------

    def run(self) -> AsyncRun:
        """Run the job to its end, in a loop of its own.

        Raises:
            LocalUsageError: this thread has a loop already; `await` the run there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.execute())
            return self
        raise LocalUsageError("an event loop runs here already: await AsyncRun(job).execute()")

    async def execute(self) -> AsyncRun:
        """Run the job to its end, in the loop that runs here."""
        self._stopwatch.start()
        try:
            async with Connections(self.deployments, self._changes) as connections:
                tasks = [
                    self._run_task(deployment, task) for deployment in self.deployments for task in deployment.tasks
                ]
                await _all_or_first_error(tasks, [self._keep_flushing(), self._send_barriers(), connections.watch()])
                self._stopwatch.stop()
                await connections.settle()
            check_end(*self.deployments)
        except BaseException as error:
            self._close_after(error)
            raise
        for deployment in self.deployments:
            deployment.close()
        return self

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        return self._stopwatch.is_started and all(deployment.is_done for deployment in self.deployments)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to end."""
        return self._stopwatch.elapsed_s

    def snapshot(self) -> JobSnapshot:
        """The whole job at one moment."""
        return JobSnapshot.joined([each.snapshot(self.elapsed_s * 1000) for each in self.deployments])

    def _command(self, command: Command) -> None:
        for deployment in self.deployments:
            deployment.do(command)
        if isinstance(command, SetTimeout):
            self._flush_clock.set_timeout(command.timeout_ms)
            self._timeout_changes.tell()
        self._tell_all()

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

    async def _until_due(self, due_s: float) -> None:
        """Wait until the next flush is due, or is due at another time."""
        wait_s = None if due_s == math.inf else max(0.0, due_s - time.monotonic())
        await self._timeout_changes.wait_until(lambda: self._flush_clock.due_s != due_s, wait_s)

    def _tell_all(self, _late_ms: float = 0.0) -> None:
        """Let all coroutines that wait look whether they can go on."""
        for changes in self._changes.values():
            changes.tell()

    async def _send_barriers(self) -> None:
        """Let the sources send a barrier as often as they are to."""
        triggers = [each.checkpoints for each in self.deployments]
        while deadlines := [each.next_deadline for each in triggers if each.next_deadline is not None]:
            await asyncio.sleep(max(0.0, min(deadlines) / 1000 - self.elapsed_s))
            for deployment in self.deployments:
                if deployment.checkpoints.on_timeout(self.elapsed_s * 1000):
                    self._changes[id(deployment)].tell()

    def _close_after(self, error: BaseException) -> None:
        for deployment in self.deployments:
            deployment.close_after(error)


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
