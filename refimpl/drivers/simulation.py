"""One step at a time, in an order you choose: the driver for learning and for finding bugs.

Time is virtual. A step of a task takes `step_ms`; when no task can move, time jumps to the next
flush. The same job, seed and policy take the same steps on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from refimpl.errors import LocalUsageError
from refimpl.invariants import check_all, check_end, check_liveness
from refimpl.job.deployment import Deployment, JobSnapshot
from refimpl.job.stream import StreamEnvironment
from refimpl.task.task import Progress
from refimpl.trace import Trace

__all__ = ["Action", "Flush", "Simulation", "StepTask"]


@dataclass(frozen=True, slots=True)
class StepTask:
    """Let one task poll, process and emit once."""

    task: str

    def __str__(self) -> str:
        return f"step {self.task}"


@dataclass(frozen=True, slots=True)
class Flush:
    """Let the buffer timeout pass for one output, at `time_ms`."""

    partition: str
    time_ms: float

    def __str__(self) -> str:
        return f"flush {self.partition} at {self.time_ms:.3f} ms"


Action = StepTask | Flush

_POLICIES = ("random", "round_robin", "first")


class Simulation:
    """Runs a job in one thread, one action after the other.

    `policy` picks among `enabled()` actions: `random` by `seed`, `round_robin` gives every task its
    turn, `first` is the order of the job (data flows only when it must). `check_every` n checks the
    laws after each n-th step, 0 only at the end.

    Raises (step, run):
        AssertionError: a law is broken; tells the story if there is a trace.
        SluiceError: the job failed; everything it held has been given back.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        seed: int = 0,
        policy: str = "random",
        check_every: int = 1,
        step_ms: float = 0.01,
        trace: Trace | None = None,
    ) -> None:
        if policy not in _POLICIES:
            raise LocalUsageError(f"policy {policy!r} is none of {', '.join(_POLICIES)}")
        self.deployment = Deployment(environment, trace)
        self.seed = seed
        self.time_ms = 0.0
        self.num_steps = 0
        self._policy = policy
        self._check_every = check_every
        self._step_ms = step_ms
        self._trace = trace
        self._random = np.random.default_rng(seed)
        self._draws: list[float] = []
        self._turn = 0
        self._tasks = {task.name: task for task in self.deployment.tasks}
        self._writers = {w.partition.name: w for w in self.deployment.writers.values()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.deployment.close()

    @property
    def is_done(self) -> bool:
        return self.deployment.is_done

    def snapshot(self) -> JobSnapshot:
        return self.deployment.snapshot(self.time_ms)

    def enabled(self) -> Sequence[Action]:
        """What could happen next. Empty means quiescent: the job is done, or a law is broken."""
        now = self.time_ms
        actions: list[Action] = [
            StepTask(task.name) for task in self.deployment.tasks if task.is_runnable
        ]
        waiting = []
        for name, writer in self._writers.items():
            deadline = writer.next_deadline(now)
            if deadline is not None:
                waiting.append(Flush(name, deadline))
        due = [flush for flush in waiting if flush.time_ms <= now]
        if actions or due:
            return [*actions, *due]
        return sorted(waiting, key=lambda flush: flush.time_ms)[:1]

    def step(self, action: Action | None = None) -> Action | None:
        """Do `action`, or the one the policy picks; return it, or `None` if nothing is enabled.

        Raises:
            LocalUsageError: the action is not enabled.
        """
        if self._draws == [] and self._policy == "random":
            self._draws = self._random.random(1024).tolist()
        enabled = self.enabled()
        if not enabled:
            check_liveness(self.deployment)
            return None
        if action is None:
            action = self._pick(enabled)
        elif action not in enabled:
            raise LocalUsageError(
                f"{action} is not enabled; enabled: {', '.join(map(str, enabled))}"
            )
        try:
            self._do(action)
        except BaseException as error:
            self.deployment.close_after(error)
            raise
        self.num_steps += 1
        if self._check_every and self.num_steps % self._check_every == 0:
            check_all(self.deployment)
        return action

    def run(
        self, max_steps: int | None = None, on_step: Callable[[Simulation], None] | None = None
    ) -> Simulation:
        """Step until the job is done, or `max_steps` more have been taken.

        `on_step` is called after each step, for progress bars and recorders.
        """
        limit = None if max_steps is None else self.num_steps + max_steps
        try:
            while limit is None or self.num_steps < limit:
                if self.step() is None:
                    check_end(self.deployment)
                    break
                if on_step is not None:
                    on_step(self)
        except BaseException as error:
            self.deployment.close_after(error)
            raise
        return self

    def swap(self, **parts: object) -> None:
        """Put other parts in, between two steps: `swap(SpanningRecordSerializer=Mine)`."""
        self.deployment.swap(**parts)

    def swap_function(self, operator_name: str, function: object) -> None:
        """Put another function into an operator, between two steps."""
        self.deployment.swap_function(operator_name, function)

    def _pick(self, enabled: Sequence[Action]) -> Action:
        if self._policy == "first":
            return enabled[-1]  # the most downstream task: drain before producing more
        if self._policy == "round_robin":
            self._turn += 1
            return enabled[self._turn % len(enabled)]
        return enabled[int(self._draws.pop() * len(enabled))]

    def _do(self, action: Action) -> None:
        if isinstance(action, Flush):
            self.time_ms = max(self.time_ms, action.time_ms)
        else:
            self.time_ms += self._step_ms
        if self._trace is not None:
            self._trace.now_ms = self.time_ms
        if isinstance(action, Flush):
            self._writers[action.partition].on_timeout(self.time_ms)
            return
        progress = self._tasks[action.task].step()
        assert progress in Progress, f"{action} returned {progress!r}"
