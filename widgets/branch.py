"""One line of steps of a job: what it runs on, what was chosen, and what a fork does differently."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from refimpl.cluster import FixedDelayRestart
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action, Costs, StepTask
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.job.deployment import Deployment
from refimpl.memory import LocalBufferPool
from refimpl.state import MemoryStore
from widgets.base import whole_number
from widgets.recording import Recording
from widgets.view_models import topology

__all__ = ["MOST_STEPS", "Branch", "Change", "Ground"]

MOST_STEPS = 10_000
_MOST_TASK_MANAGERS = 1_000
_LONGEST_DELAY_MS = 1_000_000
_RESTART = FixedDelayRestart(99, 1.0)
_LOST = re.compile(r"lose tm-(\d+)")
_CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Change:
    """What a fork does differently.

    `buffers` each output may have at most, `credits` of floating buffers each gate may have at most (both keep what
    they cannot do without), or a task (`slow`) that rests `delay_ms` after each of its steps, if others can move.
    """

    buffers: int | None = None
    credits: int | None = None
    slow: str | None = None
    delay_ms: float = 1.0

    def __str__(self) -> str:
        numbers = (("buffers", self.buffers), ("credits", self.credits))
        parts = [f"{name} {value}" for name, value in numbers if value is not None]
        if self.slow is not None:
            parts.append(f"{self.slow} rests {self.delay_ms:g} ms")
        return ", ".join(parts) or "nothing changed"


@dataclass(frozen=True)
class Ground:
    """What a job is stepped on: everything but the seed that makes two runs of one job differ.

    Raises:
        LocalUsageError: a number cannot work.
    """

    num_task_managers: int = 1
    max_delay_ms: float = 0.0
    checkpoints: bool = False
    costs: Costs | None = None

    def __post_init__(self) -> None:
        whole_number("num_task_managers", self.num_task_managers, 1, _MOST_TASK_MANAGERS)
        delay = self.max_delay_ms
        if not isinstance(delay, int | float) or isinstance(delay, bool) or not 0 <= delay <= _LONGEST_DELAY_MS:
            raise LocalUsageError(f"max_delay_ms={delay!r} cannot work: from 0 to {_LONGEST_DELAY_MS}")

    def simulation(self, environment: StreamEnvironment, seed: int) -> Simulation:
        """The job at its start. With checkpoints it has a store of its own, and their messages are steps too."""
        of_checkpoints: dict[str, Any] = {}
        if self.checkpoints:
            of_checkpoints = {"store": MemoryStore(), "restart": _RESTART, "max_control_delay_ms": self.max_delay_ms}
        return Simulation(
            environment,
            seed,
            policy="random" if self.costs is None else "timed",
            costs=self.costs,
            num_task_managers=self.num_task_managers,
            max_delay_ms=self.max_delay_ms,
            **of_checkpoints,
        )

    def to_data(self) -> dict[str, Any]:
        """The ground as JSON has it; what is as usual is left out.

        Raises:
            LocalUsageError: a service time is a function, which no file can keep.
        """
        data: dict[str, Any] = {"num_task_managers": self.num_task_managers, "max_delay_ms": self.max_delay_ms}
        if self.checkpoints:
            data["checkpoints"] = True
        if self.costs is not None:
            for name, times in self.costs.record_ms.items():
                if callable(times):
                    raise LocalUsageError(f"the service time of {name!r} is a function, which a file cannot keep")
            data["costs"] = {
                "record_ms": dict(self.costs.record_ms),
                "link_delay_ms": self.costs.link_delay_ms,
                "link_bytes_per_ms": self.costs.link_bytes_per_ms,
            }
        return data

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Ground:
        """What `to_data` wrote."""
        costs = None if data.get("costs") is None else Costs(**data["costs"])
        return Ground(data["num_task_managers"], data["max_delay_ms"], bool(data.get("checkpoints")), costs)


@dataclass
class Branch:
    """One line of steps: the simulation that stands at its end, what was chosen, and every moment."""

    simulation: Simulation
    recording: Recording
    choices: list[str] = field(default_factory=list)
    change: Change | None = None
    error: BaseException | None = None
    _limits: list[tuple[LocalBufferPool, int]] = field(default_factory=list)
    _limited: list[Deployment] = field(default_factory=list)
    _rests_until_ms: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def at_start(simulation: Simulation) -> Branch:
        """A line with no step yet."""
        start = simulation.snapshot()
        recording = Recording(topology(start), MOST_STEPS + 1)
        recording.add(start, "start")
        return Branch(simulation, recording)

    def enabled(self) -> Sequence[Action]:
        """What can go next; of a job that failed nothing, whatever is still on a wire."""
        return () if self.error is not None else self.simulation.enabled()

    def faults(self) -> list[str]:
        """What can befall a job that goes on from its checkpoints; nothing of it happens by itself."""
        if self.error is not None or self.simulation.recovery is None or self.simulation.is_done:
            return []
        there = self.simulation.live_task_managers
        return [_CRASH, *(f"lose tm-{number}" for number in there if there[1:])]  # one must be left to notice

    def apply(self, change: Change) -> None:
        """Do what comes from now on with this change, also after a restart."""
        self.change = change
        self._limits.clear()
        self._limited = list(self.simulation.deployments)
        for deployment in self._limited:
            outputs = [(partition.pool, change.buffers) for partition in deployment.partitions]
            inputs = [(pool, change.credits) for pool in deployment.shuffle.gate_pools]
            limits = [(pool, most) for pool, most in (*outputs, *inputs) if most is not None]
            for pool, most in limits:
                _limit(pool, most)
            if limits:
                deployment.pool.promises.redistribute()
            self._limits += limits

    def step(self, words: str | None, seed: int) -> str | None:
        """Do the action with these words if it can be, else what the seed chooses; `None` if nothing can go next."""
        enabled = self.enabled()
        if len(self.choices) >= MOST_STEPS or not (enabled or words in self.faults()):
            return None
        if words is not None and words in self.faults():
            return self._note(words, partial(self._strike, words))
        chosen = next((each for each in enabled if str(each) == words), None) or self._choose(enabled, seed)
        done = self._note(str(chosen), partial(self.simulation.step, chosen))
        if self.change is not None and isinstance(chosen, StepTask) and chosen.task == self.change.slow:
            self._rests_until_ms[chosen.task] = self.simulation.time_ms + self.change.delay_ms
        return done

    def _note(self, words: str, do: Callable[[], object]) -> str:
        try:
            do()
        except BaseException as error:
            self.error = error
            raise
        if self.change is not None and self._limited != list(self.simulation.deployments):  # it has begun again
            self.apply(self.change)
        for pool, most in self._limits:
            _limit(pool, most)  # lower, when what was lent has come home
        self.choices.append(words)
        self.recording.add(self.simulation.snapshot(), words)
        return words

    def _strike(self, words: str) -> None:
        if found := _LOST.fullmatch(words):
            self.simulation.kill(int(found[1]))
        else:
            self.simulation.crash()

    def _choose(self, enabled: Sequence[Action], seed: int) -> Action:
        """What goes next where nobody chooses; a task that rests does so as long as others can move."""
        now = self.simulation.time_ms
        rested = [each for each in enabled if now >= self._rests_until_ms.get(getattr(each, "task", ""), 0.0)]
        among = rested or enabled
        luck = _luck(seed, len(self.choices))
        return among[int(luck * len(among))]


def _luck(seed: int, num_chosen: int) -> float:
    """A draw from [0, 1) that follows from the seed and the number of the step.

    Where numpy is not, as in a browser, it is another one, and as steady.
    """
    try:
        import numpy as np
    except ImportError:
        return random.Random(f"step {num_chosen} of seed {seed}").random()
    return float(np.random.default_rng((seed, num_chosen)).random())


def _limit(pool: LocalBufferPool, num_buffers: int) -> None:
    """Let a pool have at most so many, but all that it requires, and for now what is lent."""
    pool.num_max = max(pool.num_required, num_buffers, len(pool.lent))
    if pool.size > pool.num_max:
        pool.set_num_buffers(pool.num_max)
