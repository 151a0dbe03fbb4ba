"""What a `RestartingJob` decides, carried out in an event loop; only calls of the store are made on a thread each.

No two of them overlap. A store may take its time, and the loop must not wait for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from refimpl.drivers.loop.attempt import LoopAttempt
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.restarting_job import DeployTasks, Over, RestartingJob, StopTasks, Wait
from refimpl.job.task_factory import Snapshots

__all__ = ["JobInLoop"]

Answer = TypeVar("Answer")

_SECONDS_TO_STOP = 10.0


class JobInLoop:
    """Keeps the job of `recovery` going in the loop that runs. `deploy` makes its attempts; `attempt` is the newest.

    All calls but `fail` come from the thread of the loop; the first attempt is made where this is made.

    Raises:
        SluiceError: it could not be.

    Flink:   JobMaster, its main thread and its I/O executor (runtime.jobmaster), 1.11.4
    """

    def __init__(
        self, recovery: JobRecovery, deploy: Callable[[Snapshots], LoopAttempt], clock: ProcessingClock
    ) -> None:
        self._job = RestartingJob(recovery)
        self._deploy_from = deploy
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._calling: asyncio.Task[BaseException | None] | None = None
        self._running: asyncio.Task[None] | None = None
        self.attempt = deploy(recovery.snapshots())

    async def run(self) -> None:
        """Keep the job going to its end for ever. Cancelled, it ends the job first.

        Raises:
            BaseException: why the job has failed for ever.
        """
        self._loop = asyncio.get_running_loop()
        try:
            self._begin()
            error = await self._go_on_to_the_end()
        except BaseException as bug:
            await self._end_after(bug)
            raise
        if error is not None:
            raise error

    def note_news(self) -> None:
        """There is something to look at."""
        self._news.set()

    def fail(self, error: BaseException) -> None:
        """Let the attempt that runs fail; while there is none nothing happens. On any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._fail_if_running, error)

    # -- steps -----------------------------------------------------------------------------------------

    async def _go_on_to_the_end(self) -> BaseException | None:
        """Carry out one step after the other; the error that the job ends with."""
        while not isinstance(step := self._job.next_step(self._clock.now_ms), Over):
            match step:
                case DeployTasks():
                    await self._deploy()
                case StopTasks(error):
                    await self._stop(error)
                case Wait(until_ms):
                    await self._wait(until_ms)
        return step.error

    async def _end_after(self, bug: BaseException) -> None:
        """The job is cancelled, or there is a bug: end what runs, and what is under way in the store if it does end."""
        self._job.cancel()
        ending = asyncio.create_task(self._go_on_to_the_end())
        try:
            await asyncio.wait([ending], timeout=_SECONDS_TO_STOP)
        finally:
            for each in (ending, self._running, self._calling):
                if each is not None and not each.done():
                    each.cancel()
                    with suppress(BaseException):
                        await each
            self.attempt.close_after(bug)

    async def _deploy(self) -> None:
        try:
            self.attempt = self._deploy_from(await _on_a_thread(self._job.recovery.snapshots))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - counts as any failure of the job
            self._job.failed(error, self._clock.now_ms)
        else:
            self._begin()

    def _begin(self) -> None:
        """Let the newest attempt run."""
        self._job.deployed(self.attempt.tasks, self._clock.now_ms)
        self._running = asyncio.create_task(self.attempt.run())
        self._running.add_done_callback(lambda _task: self._news.set())

    async def _stop(self, error: BaseException | None) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        if error is None:
            self.attempt.close()
        else:
            self.attempt.close_after(error)
        self._job.stopped(self._clock.now_ms)

    async def _wait(self, until_ms: float | None) -> None:
        """Let the store be called, see how the attempt is, or wait for news."""
        self._call_store()
        if self._running is not None and self._running.done():
            self._ended(self._running)
            return
        left_s = None if until_ms is None else max(0.0, until_ms - self._clock.now_ms) / 1000
        if not self._news.is_set():
            waiting = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait([waiting], timeout=left_s)
            finally:
                waiting.cancel()
        else:
            await asyncio.sleep(0)
        self._news.clear()

    def _ended(self, running: asyncio.Task[None]) -> None:
        self._running = None
        error = None if running.cancelled() else running.exception()
        if error is None:
            self.attempt.close()
            self._job.ended(self._clock.now_ms)
        else:
            self._job.failed(error, self._clock.now_ms)

    def _fail_if_running(self, error: BaseException) -> None:
        if self._running is not None and not self._running.done():
            self._job.failed(error, self._clock.now_ms)
            self._news.set()

    # -- the store -------------------------------------------------------------------------------------

    def _call_store(self) -> None:
        """Take the answer of the call that has ended, and begin the next."""
        if self._calling is not None and self._calling.done():
            calling, self._calling = self._calling, None
            error = calling.exception()
            self._job.called(calling.result() if error is None else error, self._clock.now_ms)
            self._news.set()  # something may follow from it
        if self._calling is None and (call := self._job.next_call()) is not None:
            self._calling = asyncio.create_task(_on_a_thread(call.call))
            self._calling.add_done_callback(lambda _task: self._news.set())


async def _on_a_thread(function: Callable[[], Answer]) -> Answer:
    """Call `function` on a thread of its own; one that does not return is left behind when this is cancelled.

    Raises:
        RuntimeError: the system refuses a thread.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def give(set_outcome: Callable[[], None]) -> None:
        if not answer.done():
            set_outcome()

    def run() -> None:
        try:
            outcome = partial(answer.set_result, function())
        except BaseException as error:  # noqa: BLE001 - handed to who waits
            outcome = partial(answer.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(give, outcome)

    thread = threading.Thread(target=run, name="store", daemon=True)
    thread.start()
    try:
        return await answer
    finally:
        if answer.done() and not answer.cancelled():
            thread.join()  # it has said its last
