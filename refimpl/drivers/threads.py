"""A thread for each task, and one monitor for them all.

The monitor is held while a task polls and emits and while a writer opens or closes a buffer; the
user's code and all serialising run outside it. A task that cannot move waits on its own condition
and is woken when something it could use has changed.
"""

from __future__ import annotations

import threading
import time
from typing import Self

from refimpl.errors import LocalUsageError
from refimpl.invariants import check_end
from refimpl.job.deployment import Deployment, JobSnapshot
from refimpl.job.stream import StreamEnvironment
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["ThreadedRun"]

_SECONDS_TO_STOP = 5.0


class ThreadedRun:
    """Runs a job on threads of this process.

    `run()` starts it and waits; or `start()`, look at `snapshot()`, `swap(...)`, and `join()`.
    Leaving a `with` block cancels what still runs.

    Raises (run, join):
        SluiceError: the job failed; the first error, after every thread has stopped.
        KeyboardInterrupt: passed on after the job has been cancelled and has given back its buffers.
    """

    def __init__(self, environment: StreamEnvironment, trace: Trace | None = None) -> None:
        self._monitor = threading.RLock()
        self.deployment = Deployment(environment, trace, self._monitor)
        self._trace = trace
        self._timeout_ms = environment.config.buffer_timeout_ms
        self._wakers = {
            task.name: threading.Condition(self._monitor) for task in self.deployment.tasks
        }
        self._waiting: dict[str, Task] = {}
        self._stopped = threading.Condition(self._monitor)
        self._threads: list[threading.Thread] = []
        self._num_running = 0
        self._is_paused = False
        self._is_cancelled = False
        self.error: BaseException | None = None  # the first one, as soon as it has happened
        self._started_s = 0.0
        self._ended_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.cancel()

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> ThreadedRun:
        """Start all threads; returns at once."""
        if self._threads:
            raise LocalUsageError("this run has been started before; make a new one")
        self._started_s = time.monotonic()
        self._num_running = len(self.deployment.tasks)
        for task in self.deployment.tasks:
            thread = threading.Thread(
                target=self._run_task, args=(task,), name=task.name, daemon=True
            )
            self._threads.append(thread)
        if self._timeout_ms > 0:
            flusher = threading.Thread(target=self._run_flusher, name="flusher", daemon=True)
            self._threads.append(flusher)
        for thread in self._threads:
            thread.start()
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._threads:
            raise LocalUsageError("this run has not been started; there is nothing to wait for")
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            with self._monitor:
                while self._num_running:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        return False
                    # A wait without end cannot be interrupted by Ctrl-C on every platform.
                    self._stopped.wait(0.2 if left is None else min(left, 0.2))
        except BaseException:
            self.cancel()
            raise
        for thread in self._threads:
            thread.join()
        if self.error is not None:
            self.deployment.close_after(self.error)
            raise self.error
        if not self._is_cancelled:
            check_end(self.deployment)
        self.deployment.close()
        return True

    def run(self) -> ThreadedRun:
        """Start and wait for the end."""
        self.start().join()
        return self

    def cancel(self) -> None:
        """Stop all threads and give everything back. Does nothing after the end.

        A thread inside user code that does not return is left behind; it cannot be stopped, but it
        can no longer touch the job.
        """
        with self._monitor:
            self._is_cancelled = True
            self._is_paused = False
            self._wake_all()
        give_up = time.monotonic() + _SECONDS_TO_STOP
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, give_up - time.monotonic()))
        with self._monitor:
            self.deployment.close()

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        return bool(self._threads) and self._num_running == 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to end."""
        return (self._ended_s or time.monotonic()) - self._started_s if self._threads else 0.0

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def snapshot(self) -> JobSnapshot:
        """The whole job at one moment."""
        with self._monitor:
            return self.deployment.snapshot(self.elapsed_s * 1000)

    def pause(self) -> None:
        """Let every task stand still after the step it is in."""
        with self._monitor:
            self._is_paused = True

    def resume(self) -> None:
        """Let the tasks go on."""
        with self._monitor:
            self._is_paused = False
            self._wake_all()

    def swap(self, **parts: object) -> None:
        """Put other parts into the running job: `swap(SpanningRecordSerializer=Mine)`."""
        with self._monitor:
            self.deployment.swap(**parts)
            self._wake()

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into an operator of the running job."""
        with self._monitor:
            self.deployment.swap_function(operator_name, function)
            self._wake()

    # -- the threads -----------------------------------------------------------------------------------

    def _run_task(self, task: Task) -> None:
        try:
            while not task.is_done:
                with self._monitor:
                    if not self._wait_for_turn(task):
                        return
                    has_work = task.poll()
                    self._wake()
                if has_work:
                    task.process()
                    with self._monitor:
                        if self._is_cancelled:
                            return
                        task.emit()
                        self._wake()
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins; cancels the others
            with self._monitor:
                self.error = self.error or error
                self._is_cancelled = True
                self._wake_all()
        finally:
            with self._monitor:
                self._num_running -= 1
                if self._num_running == 0:
                    self._ended_s = time.monotonic()
                    self._wake_all()

    def _wait_for_turn(self, task: Task) -> bool:
        """Wait until a step of `task` would do something; false if the job was cancelled."""
        while not self._is_cancelled and (self._is_paused or not task.is_runnable):
            self._waiting[task.name] = task
            self._wakers[task.name].wait()
            self._waiting.pop(task.name, None)
        if self._trace is not None:
            self._trace.now_ms = self.elapsed_s * 1000
        return not self._is_cancelled

    def _run_flusher(self) -> None:
        """Flush every output once per buffer timeout.

        Flink:   RecordWriter.OutputFlusher, 1.11.4
        """
        with self._monitor:
            while self._num_running and not self._is_cancelled:
                self._stopped.wait(self._timeout_ms / 1000)
                for partition in self.deployment.partitions:
                    partition.flush_all()
                self._wake()

    def _wake(self) -> None:
        """Wake the waiting tasks that could move now. Under the monitor."""
        for name, task in self._waiting.items():
            if task.is_runnable:
                self._wakers[name].notify()

    def _wake_all(self) -> None:
        for waker in self._wakers.values():
            waker.notify_all()
        self._stopped.notify_all()
