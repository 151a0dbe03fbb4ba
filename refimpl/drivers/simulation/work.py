"""What work costs in virtual time: the service times of operators, and links that are slow.

Rules of this file:
- What a step does is there at once; what it costs comes after it. Until then its task is busy, and takes no step.
- While nothing happens no task changes: a moment counts for each task as what it was at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from refimpl.errors import LocalUsageError
from refimpl.task.snapshot import TaskTimes
from refimpl.task.task import Task

__all__ = ["Costs", "ServiceTime", "Work"]

ServiceTime = float | Sequence[float] | Callable[[float, int], float]
"""How long one record takes, in ms: a number; numbers that are used in turn; or what a function says.

The function is called with the virtual time in ms, and how many records the operator's subtask has had before.
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """What work costs under `policy="timed"`.

    `record_ms` says by operator how long a record takes that comes to it, or that it reads where it is a source; in a
    chain what the operator before it gave out, also to others. `map-1` names subtask 1 of `map` alone, and goes before
    `map`. An operator that is not named costs nothing.
    A message takes `link_delay_ms` from one TaskManager to another, and before that the time that its bytes take at
    `link_bytes_per_ms`, one message after the other; `None` is at once.

    Raises:
        LocalUsageError: a number is below 0, or a link carries nothing.
    """

    record_ms: Mapping[str, ServiceTime] = field(default_factory=dict[str, ServiceTime])
    link_delay_ms: float = 0.0
    link_bytes_per_ms: float | None = None

    def __post_init__(self) -> None:
        for name, times in self.record_ms.items():
            if isinstance(times, Sequence) and not times:
                raise LocalUsageError(f"the service times of {name!r} are an empty list")
            numbers = times if isinstance(times, Sequence) else () if callable(times) else (times,)
            for number in numbers:
                _not_below_zero(f"the service time of {name!r}", number)
        _not_below_zero("link_delay_ms", self.link_delay_ms)
        if self.link_bytes_per_ms is not None and not self.link_bytes_per_ms > 0:
            raise LocalUsageError(f"link_bytes_per_ms={self.link_bytes_per_ms}: nothing would ever arrive")

    def of(self, operator: str, subtask: int, number: int, now_ms: float) -> float:
        """How long the record with this number, counted from 0, takes in a subtask from `now_ms` on."""
        times = self.record_ms.get(f"{operator}-{subtask}", self.record_ms.get(operator, 0.0))
        if callable(times):
            return _not_below_zero(f"the service time of {operator!r}", times(now_ms, number))
        return times[number % len(times)] if isinstance(times, Sequence) else times


def _not_below_zero(what: str, number: float) -> float:
    if not number >= 0:
        raise LocalUsageError(f"{what} is {number} ms: it would end before it began")
    return number


class _TaskAtWork:
    """One task: until when it is busy, what it has done by operator, and how its time went."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.busy_until_ms = 0.0
        self.free_at_ms = 0.0
        self.busy_ms = self.idle_ms = self.backpressured_ms = 0.0
        self.num_done: dict[str, int] = {}

    def records(self) -> Iterable[tuple[str, int]]:
        """How many records came to each operator so far."""
        chain = self.task.chain
        came = {chain.nodes[0].id: chain.num_records_in}
        for node in chain.nodes:
            for target in {edge.target for edge in node.edges} - {None}:
                assert target is not None
                came[target] = came.get(target, 0) + chain.counters[node.id].num_records
        return ((node.context.name, came.get(node.id, 0)) for node in chain.nodes)

    def let_pass(self, from_ms: float, to_ms: float) -> None:
        """Count the time in which nothing happened."""
        until_ms = min(max(self.busy_until_ms, from_ms), to_ms)
        self.busy_ms += until_ms - from_ms
        if until_ms < to_ms and not self.task.is_done:
            if all(writer.is_available and not writer.is_blocked for writer in self.task.writers):
                self.idle_ms += to_ms - until_ms
            else:
                self.backpressured_ms += to_ms - until_ms


class Work:
    """The tasks of a simulation in its virtual time: who is busy, and until when.

    Without `costs` nobody is ever busy. With them a step takes what its records cost, and `step_ms` at least.
    """

    def __init__(self, step_ms: float, costs: Costs | None) -> None:
        self.costs = costs
        self._step_ms = step_ms
        self._tasks: dict[str, _TaskAtWork] = {}

    @classmethod
    def under(cls, policy: str, step_ms: float, costs: Costs | None) -> Work:
        """The work under a policy of a simulation: only `timed` has costs.

        Raises:
            LocalUsageError: costs for another policy.
        """
        if costs is not None and policy != "timed":
            raise LocalUsageError(f'costs are those of policy="timed"; under {policy!r} a step takes step_ms')
        return cls(step_ms, (costs or Costs()) if policy == "timed" else None)

    @property
    def is_timed(self) -> bool:
        return self.costs is not None

    @property
    def times(self) -> dict[str, TaskTimes]:
        """How the time of each task went so far, since it was deployed; of none where nobody is ever busy."""
        return {
            name: TaskTimes(each.busy_ms, each.idle_ms, each.backpressured_ms) for name, each in self._tasks.items()
        }

    def deploy(self, tasks: Mapping[str, Task]) -> None:
        """Begin again with these tasks, all of them free."""
        self._tasks = {name: _TaskAtWork(task) for name, task in tasks.items()} if self.is_timed else {}

    def deploy_also(self, tasks: Mapping[str, Task]) -> None:
        """Begin with these tasks beside those that are there, all of them free."""
        if self.is_timed:
            self._tasks |= {name: _TaskAtWork(task) for name, task in tasks.items()}

    def free_at_ms(self, task: str) -> float:
        """From when on a task may take its next step."""
        return self._tasks[task].free_at_ms if self._tasks else 0.0

    def after_action_ms(self, now_ms: float, at_ms: float | None) -> float:
        """What time it is in an action that was to come at `at_ms`, `None` for one that only takes its turn."""
        if at_ms is None:
            return now_ms if self.is_timed else now_ms + self._step_ms
        now = max(now_ms, at_ms)
        self._let_pass(now_ms, now)
        return now

    def stepped(self, task: str, now_ms: float) -> None:
        """Let a task that has just taken a step be busy for as long as that costs."""
        if self.costs is None:
            return
        at_work = self._tasks[task]
        spent_ms = 0.0
        subtask = at_work.task.chain.nodes[0].context.subtask
        for operator, num_records in at_work.records():
            for number in range(at_work.num_done.get(operator, 0), num_records):
                spent_ms += self.costs.of(operator, subtask, number, now_ms + spent_ms)
            at_work.num_done[operator] = num_records
        at_work.busy_until_ms = now_ms + max(spent_ms, self._step_ms)
        at_work.free_at_ms = max(at_work.busy_until_ms, now_ms + at_work.task.input.pause_ms)

    def _let_pass(self, from_ms: float, to_ms: float) -> None:
        if to_ms > from_ms:
            for each in self._tasks.values():
                each.let_pass(from_ms, to_ms)
