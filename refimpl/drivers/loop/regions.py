"""The regions of a job in an event loop: each with coroutines of its own, on memory that stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping

from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.blocking_files import ResultFiles
from refimpl.drivers.control import Stopwatch
from refimpl.drivers.loop.attempt import LoopAttempt
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.regions import JobRegions
from refimpl.drivers.task_gateways import LocalTask
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.commands import Command
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.job.shuffle_environment import pool_of
from refimpl.laws.records import RecordCounts
from refimpl.trace import Trace

__all__ = ["LoopRegions"]


class LoopRegions:
    """All regions of `graph`, as a `LoopAttempt` is all tasks of a graph.

    Raises:
        SluiceError: the first regions cannot be deployed; nothing is left behind.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        clock: ProcessingClock,
        stopwatch: Stopwatch,
        num_slots: int | None,
        restart: RestartStrategy | None,
    ) -> None:
        self.job = JobRegions(graph, num_slots, restart)
        self.tasks: Mapping[str, LocalTask] = {}
        self._trace, self._clock, self._stopwatch = trace, clock, stopwatch
        numbers = range(graph.placement.num_task_managers)
        self._files = ResultFiles(graph.job.config, len(numbers))
        self._pools = [pool_of(graph.job.config, trace) for _ in numbers]
        self._at_work: dict[int, LoopAttempt] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._last: list[Deployment] = []
        self._not_before_s = 0.0
        try:
            self._deploy()
        except BaseException as error:
            self.close_after(error)
            raise

    @property
    def deployments(self) -> list[Deployment]:
        """What is deployed now, or was last."""
        return [each for region in self._at_work.values() for each in region.deployments] or self._last

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more, nor will."""
        return self.job.schedule.is_done

    async def run(self, on_tasks_ended: Callable[[], None] = lambda: None) -> None:
        """Run all regions to their end, each when its time has come.

        Raises:
            SluiceError: why the job has failed for ever.
            AssertionError: a law is broken.
        """
        try:
            while not self.is_done:
                left_s = self._not_before_s - time.monotonic()
                if left_s <= 0:
                    self._deploy()
                for number, region in self._at_work.items():
                    if number not in self._running:
                        self._running[number] = asyncio.create_task(region.run())
                if not self._running:
                    await asyncio.sleep(max(0.0, left_s))
                    continue
                timeout_s = left_s if left_s > 0 else None
                await asyncio.wait(self._running.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
                await self._look()
        finally:
            await self._stop(list(self._running))
        on_tasks_ended()

    def do(self, command: Command) -> None:
        """Carry a command out, where it is about what runs now."""
        for region in self._at_work.values():
            region.do(command)

    def close(self) -> None:
        """Give everything back."""
        for region in self._at_work.values():
            region.close()
        self._files.close()

    def close_after(self, error: BaseException) -> None:
        """Give everything back; trouble on the way is noted on `error`."""
        for region in self._at_work.values():
            region.close_after(error)
        self._files.close()

    @property
    def at_work(self) -> list[LoopAttempt]:
        """The regions that run."""
        return list(self._at_work.values())

    # -- regions ---------------------------------------------------------------------------------------

    def _deploy(self) -> None:
        for each in self.job.schedule.start_next():
            self._at_work[each.number] = LoopAttempt(
                each.graph,
                self._trace,
                self._clock,
                self._stopwatch,
                pools=self._pools,
                results=self._files.results,
                region=each.places,
            )

    async def _look(self) -> None:
        """See what has become of those that have ended."""
        errors: dict[int, BaseException] = {}
        for number in [number for number, task in self._running.items() if task.done()]:
            task = self._running.pop(number)
            if (error := task.exception()) is not None:
                errors[number] = error
            else:
                self._end(number)
        if errors:
            await self._fail(errors)

    def _end(self, number: int) -> None:
        region = self._at_work.pop(number)
        counts = [RecordCounts.of(each) for each in region.deployments]
        region.close()
        self._last = region.deployments
        self._drop(self.job.ended(number, counts))

    async def _fail(self, errors: Mapping[int, BaseException]) -> None:
        first = next(iter(errors.values()))
        decided = self.job.failed(errors, first, time.monotonic() * 1000, self._is_available)
        if decided is None:
            raise first
        restart, numbers, results = decided
        await self._stop(numbers)
        for number in numbers:
            if (region := self._at_work.pop(number, None)) is not None:
                region.close_after(first)
        self._drop(results)
        self._not_before_s = restart.at_ms / 1000

    async def _stop(self, numbers: Collection[int]) -> None:
        tasks = [task for number in numbers if (task := self._running.pop(number, None)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_available(self, execution: ExecutionVertex) -> bool:
        return self._files.has_results_of(self.job.schedule.graph, execution)

    def _drop(self, results: Collection[ResultPartitionId]) -> None:
        for each in self._files.results:
            for partition in results:
                each.release(partition)
