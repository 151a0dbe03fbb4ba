"""Turns of the tasks of one TaskManager: where they wait under the monitor, and what wakes them.

A task that cannot go on waits at its `Waker`, which is woken by what it waits for:

    a task without input      its gate, when a first channel has something
    a task without buffers    the pools of its outputs, when a buffer has come home
    a timer                   nobody: the task waits no longer than until its deadline

No thread looks through the tasks that wait. So a step costs the same however many of them stand still meanwhile.
A task without work may yield first, on a TaskManager by itself, see `Handoff`; or read for busy connections, see
`LeaderFollowers`.
"""

from __future__ import annotations

import threading

from refimpl.consumer.network_input import NetworkInput
from refimpl.drivers.control import pause_ms
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.threads.handoff import Handoff
from refimpl.drivers.threads.leader_followers import LeaderFollowers
from refimpl.drivers.threads.wakeup import Waker, let_pass
from refimpl.job.deployment import Deployment
from refimpl.task.task import Task

__all__ = ["TaskTurns"]


class TaskTurns:
    """The tasks of `deployment` that wait. All under `monitor`.

    `handoff` is there if no other TaskManager waits for these tasks (`is_alone`). `stopped` is notified whenever a
    thread that waits for a time is to look again.
    """

    def __init__(self, monitor: threading.RLock, deployment: Deployment, is_alone: bool) -> None:
        self.is_cancelled = False
        self.stopped = threading.Condition(monitor)
        self.wakers = {task.name: Waker(monitor) for task in deployment.tasks}
        self.handoff = Handoff(monitor, self.wakers) if is_alone else None
        self.leader_followers = LeaderFollowers(monitor, self.wakers, deployment.config.buffer_timeout_ms != 0)
        self.clock = ProcessingClock(deployment.config.epoch_ms)
        self._deployment = deployment
        for task in deployment.tasks:
            task.checkpoints.channels.on_read = self.wakers[task.name].wake
            if isinstance(task.input, NetworkInput):
                task.input.gate.on_ready = self.wakers[task.name].wake

    def wait_for_turn(self, task: Task) -> bool:
        """Wait until a step of `task` would do something; false if the job was cancelled."""
        waker, leader_followers, clock = self.wakers[task.name], self.leader_followers, self.clock
        clock.tell(task)
        if self.handoff is not None and not task.is_runnable:
            self.handoff.give_turn()
            if task.moves_much:
                self.handoff.yield_turn()
        while not self.is_cancelled and (self._deployment.is_paused or not task.is_runnable):
            for writer in task.writers:
                if not writer.is_available:
                    writer.partition.pool.call_when_available(waker.wake)
            task.note_rest()
            leader_followers.wait(waker, None if self._deployment.is_paused else clock.wait_s(task))
            clock.tell(task)
        leader_followers.promote()
        return not self.is_cancelled

    def rest(self, task: Task) -> None:
        """Let the time pass that a task rests after a step."""
        let_pass(self.stopped, lambda: 0.0 if self.is_cancelled else pause_ms(task))

    def is_cancelled_within(self, wait_ms: float) -> bool:
        """Wait so long, or until the job is cancelled; whether it is."""
        return self.stopped.wait_for(lambda: self.is_cancelled, wait_ms / 1000)

    def wake_all(self) -> None:
        """Let every task look whether it can go on."""
        for waker in self.wakers.values():
            waker.wake()
        self.stopped.notify_all()

    def end(self) -> None:
        """No task will wait any more, or none is to go on."""
        self.leader_followers.close()
        self.wake_all()
