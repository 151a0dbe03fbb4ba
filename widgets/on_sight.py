"""A job that begins when somebody looks: in a browser it runs, and where there is none a moment of it is shown."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Mapping
from typing import Any

from refimpl.drivers import Command, Simulation, ThreadedRun
from refimpl.drivers.control import Controls
from refimpl.drivers.simulation import StepTask
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot, StreamEnvironment

__all__ = ["OnSight", "action_of"]

_SEED = 1
_SELDOM = 0.1


class OnSight(Controls):
    """A job for a view; it runs on threads from the moment that a browser first shows that view.

    Until then, and wherever nobody looks (a page, a terminal, a test), it is one moment of the same job: the one after
    `num_steps` steps in the simulation. So it is the same each time, and no thread is begun. `rests` says how long
    which tasks rest after each buffer when the job begins; the view's slider stands at the first of them, which is
    slow in the simulation.

        QueueView(OnSight(environment, num_task_managers=2, rests={"sink-0": 20}))

    Ownership: the run that has begun; `cancel` ends it.
    """

    can_begin = sys.platform != "emscripten"
    """Whether there are threads to run it on: Python in a browser has none, and the moment stays."""

    def __init__(
        self,
        environment: StreamEnvironment,
        num_task_managers: int = 1,
        num_steps: int = 60,
        rests: Mapping[str, float] | None = None,
    ) -> None:
        self.config = environment.config
        self.rests = dict(rests or {})
        self.run: ThreadedRun | None = None
        self._environment, self._num_task_managers = environment, num_task_managers
        self._beginning = threading.Lock()
        self._is_over = False
        with Simulation(environment, num_task_managers=num_task_managers) as simulation:
            self._still = self._moment(simulation, num_steps)

    def _moment(self, simulation: Simulation, num_steps: int) -> JobSnapshot:
        """The moment that stands for the job: a task that is slow has a turn seldom."""
        slow = next(iter(self.rests), None)
        tasks = {task.name for task in simulation.snapshot().tasks if slow in (task.name, *task.operators)}
        choice = random.Random(_SEED)
        while simulation.num_steps < num_steps and (enabled := simulation.enabled()):
            weights = [_SELDOM if isinstance(each, StepTask) and each.task in tasks else 1.0 for each in enabled]
            simulation.step(choice.choices(enabled, weights)[0])
        return simulation.snapshot()

    def begin(self) -> None:
        """Start the job, the first time; does nothing after `cancel`."""
        with self._beginning:
            if self.run is None and not self._is_over:
                self.run = ThreadedRun(self._environment, num_task_managers=self._num_task_managers).start()
                for name, rest_ms in self.rests.items():
                    self.run.slow(name, rest_ms)

    def cancel(self) -> None:
        """End the job, or see to it that it never begins."""
        with self._beginning:
            self._is_over = True
        if self.run is not None:
            self.run.cancel()

    @property
    def is_done(self) -> bool:
        return self._is_over if self.run is None else self.run.is_done

    @property
    def is_paused(self) -> bool:
        return False if self.run is None else self.run.is_paused

    @property
    def error(self) -> BaseException | None:
        """Why the job failed, if it did."""
        return None if self.run is None else self.run.error

    def snapshot(self) -> JobSnapshot:
        """The job as it is, or the moment that stands for it."""
        return self._still if self.run is None else self.run.snapshot()

    def begun(self) -> ThreadedRun:
        """The run.

        Raises:
            LocalUsageError: it has not begun.
        """
        if self.run is None:
            raise LocalUsageError("this job has not begun; it does when a browser shows it")
        return self.run

    def _command(self, command: Command) -> None:
        self.begun().do(command)


def action_of(source: Any) -> str:
    """What led to the moment of a job that has not begun; "" of any other."""
    if not isinstance(source, OnSight) or source.run is not None:
        return ""
    return "recorded in the simulation" + "".join(f", {name} is slow" for name in list(source.rests)[:1])
