"""The two threads of a run that may begin again: what a `RestartingJob` decides is carried out here.

One decides, deploys and stops; the other one calls the store, so that a slow store keeps no decision waiting. The job
is asked under a lock of its own, which nobody takes who holds a monitor; tasks and store are asked under none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.stats import CheckpointStatsSnapshot
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.restarting_job import DeployTasks, Over, RestartingJob, Step, StopTasks, Wait
from refimpl.drivers.run_checkpoints import Attempt
from refimpl.drivers.store_calls import StoreWork
from refimpl.drivers.task_gateways import TaskGateway
from refimpl.task.checkpoint_reports import Unwanted

__all__ = ["Attempts", "Cluster", "JobThreads"]


class Attempts(Protocol):
    """All tasks of one deployment. Each property is asked again and again, and waits for nothing."""

    @property
    def tasks(self) -> Mapping[str, TaskGateway]:
        """By name."""

    @property
    def error(self) -> BaseException | None:
        """The first that one of them had."""

    @property
    def is_over(self) -> bool:
        """Whether none of them runs any more."""


Made = TypeVar("Made", bound=Attempts)


class Cluster(Protocol[Made]):
    """What a job is deployed on. Each call may wait, and comes from one thread, but the first `deploy`."""

    def deploy(self) -> Made:
        """Make the tasks of the newest graph; those before are no more."""

    def start(self, attempts: Made) -> None:
        """Let them run."""

    def settle(self, attempts: Made) -> None:
        """All have ended well: see that nothing is left of them.

        Raises:
            AssertionError: a law is broken.
        """

    def stop(self, attempts: Made, error: BaseException | None) -> None:
        """End them, by force if need be, because of `error`, and take back what they held. Safe to repeat."""


class JobThreads(Generic[Made]):
    """Keeps the job of `recovery` going on `cluster` to its end for ever; then `on_over` is called, with its error.

    The first attempts are made where it is made, `attempts` are the newest. Whatever happens, `on_over` is called once
    if `start` has returned; everything has been given back by then.

    Raises:
        SluiceError: the first attempts could not be made.

    Flink:   JobMaster, its main thread and its I/O executor (runtime.jobmaster), 1.11.4
    """

    def __init__(
        self,
        recovery: JobRecovery,
        cluster: Cluster[Made],
        clock: ProcessingClock,
        on_over: Callable[[BaseException | None], None],
    ) -> None:
        self._job = RestartingJob(recovery)
        self._cluster = cluster
        self._clock = clock
        self._on_over = on_over
        self._lock = threading.Condition()  # notified when there may be work for the store
        self._news = threading.Event()
        self._bug: BaseException | None = None
        self._is_over = self._is_running = False
        self._store = threading.Thread(target=self._call_store, name="store", daemon=True)
        self._master = threading.Thread(target=self._run, name="job master", daemon=True)
        self.attempts = cluster.deploy()

    # -- from outside ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first attempts; returns at once.

        Raises:
            RuntimeError: the system refuses a thread; `cancel` ends what has begun.
        """
        self._store.start()
        self._master.start()

    def note_news(self) -> None:
        """There is something to look at. On any thread; it does not wait."""
        self._news.set()

    def fail(self, error: BaseException) -> None:
        """Let the attempts that run fail; while there are none nothing happens. Returns at once."""
        with self._lock:
            if self._is_running:
                self._job.failed(error, self._clock.now_ms)
        self._news.set()

    def savepoint(self, name: str) -> CheckpointRequest:
        """As `JobRecovery.savepoint`."""
        with self._lock:
            request = self._job.recovery.savepoint(name, self._clock.now_ms)
        self._news.set()
        return request

    def stats(self) -> CheckpointStatsSnapshot:
        """What became of the checkpoints so far."""
        with self._lock:
            return self._job.recovery.checkpoints.stats.snapshot()

    def disown(self, task: str, generation: int, key: str) -> None:
        """A file is there for a snapshot that nobody will hear of."""
        with self._lock:
            said = Unwanted(key)
            self._job.recovery.checkpoints.task_says(Attempt(task, generation), said, self._clock.now_ms)
            self._lock.notify_all()

    def cancel(self, within_s: float) -> None:
        """Let the job end where it is, also one that waits for its restart; what it has in the store stays there.

        Waits so long at most: a store or the user's code that does not return is left behind. A thread of this, such as
        one that calls the store, does not wait.
        """
        with self._lock:
            self._job.cancel()
            if not self._was_started:  # nobody is there to end it
                self._is_over = True
                self._lock.notify_all()
        self._news.set()
        threads, give_up_s = (self._master, self._store), time.monotonic() + within_s
        for thread in () if threading.current_thread() in threads else threads:
            if thread.ident is not None:
                thread.join(max(0.0, give_up_s - time.monotonic()))
        if not self._was_started:
            self._cluster.stop(self.attempts, None)

    @property
    def _was_started(self) -> bool:
        return self._master.ident is not None

    # -- the thread that decides -----------------------------------------------------------------------

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._begin()
            error = self._go_on_to_the_end()
        except BaseException as bug:  # noqa: BLE001 - handed to whoever joins
            error = bug
            with suppress(BaseException):  # the first one is told
                self._cluster.stop(self.attempts, bug)
        with self._lock:
            self._is_over = True
            self._lock.notify_all()
        self._store.join()
        self._on_over(error)

    def _go_on_to_the_end(self) -> BaseException | None:
        """Carry out one step after the other; the error that the job ends with."""
        while not isinstance(step := self._next_step(), Over):
            match step:
                case DeployTasks():
                    self._deploy()
                case StopTasks(error):
                    self._stop(error)
                case Wait(until_ms):
                    self._wait(until_ms)
        return step.error

    def _next_step(self) -> Step:
        with self._lock:
            if self._bug is not None:
                raise self._bug
            step = self._job.next_step(self._clock.now_ms)
            self._is_running = self._is_running and isinstance(step, Wait)
            self._lock.notify_all()
        return step

    def _deploy(self) -> None:
        try:
            self.attempts = self._cluster.deploy()
        except BaseException as error:  # noqa: BLE001 - counts as any failure of the job
            self._failed(error)
        else:
            self._begin()

    def _begin(self) -> None:
        """Let the newest attempts run."""
        with self._lock:
            self._job.deployed(self.attempts.tasks, self._clock.now_ms)
            self._is_running = True
        try:
            self._cluster.start(self.attempts)
        except BaseException as error:  # noqa: BLE001 - as above
            self._failed(error)

    def _stop(self, error: BaseException | None) -> None:
        self._cluster.stop(self.attempts, error)
        with self._lock:
            self._job.stopped(self._clock.now_ms)

    def _wait(self, until_ms: float | None) -> None:
        """See how the attempts are, or wait for news of them."""
        is_over = self.attempts.is_over  # asked first: the error of one that ends with it comes before its end
        error = self.attempts.error
        if self._is_running and error is not None:
            self._failed(error)
        elif self._is_running and is_over:
            self._end()
        else:
            left_s = None if until_ms is None else max(0.0, until_ms - self._clock.now_ms) / 1000
            self._news.wait(None if left_s is None else min(left_s, threading.TIMEOUT_MAX))
            self._news.clear()

    def _end(self) -> None:
        """All attempts have ended well, as far as they say."""
        try:
            self._cluster.settle(self.attempts)
            self._cluster.stop(self.attempts, None)
        except BaseException as error:  # noqa: BLE001 - as above
            self._failed(error)
            return
        with self._lock:
            self._is_running = False
            self._job.ended(self._clock.now_ms)

    def _failed(self, error: BaseException) -> None:
        with self._lock:
            self._is_running = False
            self._job.failed(error, self._clock.now_ms)

    # -- the thread that calls the store ---------------------------------------------------------------

    def _call_store(self) -> None:
        """Make one call after the other, until the job is over. What goes wrong here ends the job."""
        try:
            with self._lock:
                while not self._is_over:
                    if (call := self._job.next_call()) is None:
                        self._lock.wait()
                        continue
                    error = self._outside_of_the_lock(call)
                    self._job.called(error, self._clock.now_ms)
                    self._news.set()
        except BaseException as bug:  # noqa: BLE001 - handed to whoever joins
            self._bug = bug
            self._news.set()

    def _outside_of_the_lock(self, call: StoreWork) -> BaseException | None:
        self._lock.release()
        try:
            return call.call()
        except BaseException as bug:  # noqa: BLE001 - no word of a store's
            return bug
        finally:
            self._lock.acquire()
