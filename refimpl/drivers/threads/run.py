"""A job on threads of this process, on one TaskManager or on several that speak over TCP."""

from __future__ import annotations

import secrets
from typing import Self

from refimpl.drivers.control import BackgroundRun
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.drivers.transport.streams import Security
from refimpl.invariants import check_end
from refimpl.job.commands import Command
from refimpl.job.deployment import Deployment
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.snapshots import JobSnapshot
from refimpl.trace import Trace

__all__ = ["ThreadedRun"]


class ThreadedRun(BackgroundRun):
    """Runs a job on threads of this process.

    Each of `num_task_managers` has its own memory and its own monitor; their messages to one another
    go over loopback, or with `security` over TLS. `run()` starts the job and waits; or `start()`,
    look at `snapshot()`, `swap(...)`, and `join()`. Leaving a `with` block cancels the job.

    Raises (run, join):
        SluiceError: the job failed; the first error, after every thread has stopped.
        KeyboardInterrupt: passed on after the job has been cancelled and has given back its buffers.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        num_task_managers: int = 1,
        security: Security | None = None,
    ) -> None:
        super().__init__()
        check_num_task_managers(num_task_managers)
        self.error: BaseException | None = None  # the first one, as soon as it has happened
        self._is_closed = self._could_not_start = False
        self.task_managers: list[TaskManagerThreads] = []
        graph = environment.execution_graph(num_task_managers, secrets.token_bytes(8))
        try:
            for number in range(num_task_managers):
                each = TaskManagerThreads(graph, trace, number, security=security, on_end=self._on_end)
                self.task_managers.append(each)
        except BaseException as error:
            self._close(error)
            raise
        self.deployment = self.task_managers[0].deployment

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all threads; returns at once."""
        self._stopwatch.start()
        addresses = [each.connections.address for each in self.task_managers]
        try:
            for task_manager in self.task_managers:
                task_manager.start(addresses)
        except BaseException as error:  # Ctrl-C may come while some work and others have not begun
            self.error, self._could_not_start = self.error or error, True
            self.cancel()
            raise
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._wait_until(lambda: self.is_done, timeout_s):
            return False
        was_cancelled = self._is_closed or any(each.is_cancelled for each in self.task_managers)
        try:
            if self.error is None and not was_cancelled:
                for task_manager in self.task_managers:
                    task_manager.settle()
                check_end(*self.deployments)
        except BaseException as error:
            self._close(error)
            raise
        self._close(self.error)
        if self.error is not None:
            raise self.error
        return True

    def cancel(self) -> None:
        """Stop all threads and give everything back. Does nothing after the end.

        A thread inside user code that does not return is left behind; it cannot be stopped, but it
        can no longer touch the job.
        """
        for task_manager in self.task_managers:
            task_manager.cancel()
        self._close()

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def deployments(self) -> list[Deployment]:
        """The part of the job that each TaskManager has."""
        return [task_manager.deployment for task_manager in self.task_managers]

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more."""
        are_ended = self._could_not_start or all(each.is_ended for each in self.task_managers)
        return self._stopwatch.is_started and are_ended

    @property
    def is_paused(self) -> bool:
        return any(each.is_paused for each in self.deployments)

    def snapshot(self) -> JobSnapshot:
        """The whole job; each TaskManager at one moment, one after the other."""
        return JobSnapshot.joined([each.snapshot() for each in self.task_managers])

    def _command(self, command: Command) -> None:
        for task_manager in self.task_managers:
            task_manager.do(command)

    # -- the end -------------------------------------------------------------------------------------

    def _on_end(self) -> None:
        """A TaskManager's last task has ended, or one has failed: then the others stop too."""
        with self._changed:
            errors = [each.error for each in self.task_managers if each.error is not None]
            self.error = self.error or (errors[0] if errors else None)
            if self.is_done:
                self._stopwatch.stop()
            self._changed.notify_all()
        if errors:
            for task_manager in self.task_managers:
                task_manager.cancel()

    def _close(self, error: BaseException | None = None) -> None:
        """Give everything back; trouble on the way is noted on `error`, if there is one."""
        self._is_closed = True
        for task_manager in self.task_managers:
            task_manager.close(error)
