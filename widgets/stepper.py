"""A job taken step by step: you choose what goes next, go back, fork with something changed, and compare.

Every view shows a stepper. After a fork there are two branches; each further step is taken in both, and as long as
nothing differs they choose alike, so that what comes to differ is what the change has led to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action, StepTask
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.memory import LocalBufferPool
from widgets.base import json_text, path_of, text_of_file, what_was_meant, whole_number
from widgets.recording import Recording
from widgets.view_models import topology

__all__ = ["Change", "Stepper"]

_FORMAT = "sluice-run-1"
_MOST_STEPS = 10_000
_MOST_TASK_MANAGERS = 1_000
_LONGEST_DELAY_MS = 1_000_000


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


@dataclass
class _Branch:
    """One line of steps: the simulation that stands at its end, what was chosen, and every moment."""

    simulation: Simulation
    recording: Recording
    choices: list[str] = field(default_factory=list)
    slow: str | None = None
    delay_ms: float = 0.0
    limits: list[tuple[LocalBufferPool, int]] = field(default_factory=list)
    rests_until_ms: dict[str, float] = field(default_factory=dict)
    error: BaseException | None = None

    def enabled(self) -> Sequence[Action]:
        """What can go next; of a job that failed nothing, whatever is still on a wire."""
        return () if self.error is not None else self.simulation.enabled()


class Stepper:
    """Steps a job that can be built again: each reset and each fork takes its steps from the start.

    So the job's sources must give the same records again (a list does, an open file does not), and its functions run
    again, sinks included. `num_task_managers` and `max_delay_ms` are those of `Simulation`. What is chosen where you
    choose nothing follows from `seed` and the number of the step.

        stepper = Stepper(environment, seed=7)
        QueueView(stepper)
        stepper.fork(40, buffers=3)

    Several threads may use one: each move and each look holds `lock`, and whoever holds it sees one moment.
    `on_change` is called after each move, also one that failed, with whether all was made anew.

    Raises (all methods):
        LocalUsageError: there is no such action, step or task, or the change cannot be made; or the job has failed.
        SluiceError, AssertionError: as `Simulation.step`; from then on `error` says why.
    """

    def __init__(
        self, environment: StreamEnvironment, seed: int = 0, num_task_managers: int = 1, max_delay_ms: float = 0.0
    ) -> None:
        if not isinstance(environment, StreamEnvironment):
            raise LocalUsageError(f"a {type(environment).__name__} cannot be stepped; give a StreamEnvironment")
        whole_number("num_task_managers", num_task_managers, 1, _MOST_TASK_MANAGERS)
        is_number = isinstance(max_delay_ms, int | float) and not isinstance(max_delay_ms, bool)
        if not is_number or not 0 <= max_delay_ms <= _LONGEST_DELAY_MS:
            raise LocalUsageError(f"max_delay_ms={max_delay_ms!r} cannot work: from 0 to {_LONGEST_DELAY_MS}")
        self.environment = environment
        self.seed = whole_number("seed", seed, 0, 2**32)
        self.change: Change | None = None
        self.fork_step = -1
        self.on_change: list[Callable[[bool], object]] = []
        self.lock = threading.RLock()  # a listener looks, and the job's own functions may
        self._num_task_managers, self._max_delay_ms = num_task_managers, max_delay_ms
        self._other: _Branch | None = None
        self._main = self._branch()

    def __repr__(self) -> str:
        branch = f", a fork from step {self.fork_step}: {self.change}" if self._other else ""
        return f"Stepper(step {self.num_steps}, {len(self.enabled())} actions enabled{branch})"

    # -- how it stands ---------------------------------------------------------------------------------

    @property
    def num_steps(self) -> int:
        return len(self._main.choices)

    @property
    def is_done(self) -> bool:
        """Whether nothing is enabled in either branch."""
        with self.lock:
            return not any(branch.enabled() for branch in self._branches)

    @property
    def error(self) -> BaseException | None:
        """Why the job failed, in either branch; `None` if it did not."""
        return next((branch.error for branch in self._branches if branch.error is not None), None)

    @property
    def recording(self) -> Recording:
        """Every moment so far, one for each step."""
        return self._main.recording

    @property
    def fork_recording(self) -> Recording | None:
        """Every moment of the other branch, from the first step on; `None` without one."""
        return self._other.recording if self._other else None

    @property
    def tasks(self) -> list[str]:
        """The tasks that a fork can slow down."""
        return [task["name"] for task in self.recording.topology["tasks"]]

    def snapshot(self) -> JobSnapshot:
        with self.lock:
            return self._main.simulation.snapshot()

    def enabled(self) -> list[str]:
        """What can go next, in words that `step` takes."""
        with self.lock:
            return [str(action) for action in self._main.enabled()]

    # -- moving ----------------------------------------------------------------------------------------

    def step(self, action: str | None = None) -> str | None:
        """Do `action`, or what the seed chooses, in both branches where it can be; returns it, `None` at the end."""
        with self.lock:
            self._refuse_if_over()
            if action is not None and action not in self.enabled():
                meant = what_was_meant(action, self.enabled())
                enabled = ", ".join(self.enabled()) or "nothing"
                raise LocalUsageError(f"{action!r} is not enabled{meant} Enabled: {enabled}")
            chosen = None
            with self._telling():
                for branch in self._branches:
                    done = self._step(branch, action)
                    chosen = done if branch is self._main else chosen
            return chosen

    def run(self, most_steps: int = 1_000) -> int:
        """Step until nothing can move, or `most_steps` have been taken; returns how many."""
        whole_number("most_steps", most_steps, 1, _MOST_STEPS)
        with self.lock:
            self._refuse_if_over()
            before = self.num_steps
            with self._telling():
                for _ in range(most_steps):
                    if not [branch for branch in self._branches if self._step(branch, None) is not None]:
                        break
            return self.num_steps - before

    def reset(self, seed: int | None = None) -> None:
        """Go back to the start, with another seed if one is given; the fork is forgotten."""
        with self.lock:
            self.seed = self.seed if seed is None else whole_number("seed", seed, 0, 2**32)
            self._close(self._main, self._other)
            self._main, self._other, self.change, self.fork_step = self._branch(), None, None, -1
            self._tell(True)

    def fork(self, at_step: int | None = None, **change: Any) -> Change:
        """From `at_step` on (by default from now), let a second branch do as the first, but for `change`.

        It goes as far as the first has gone. A fork that was there before is forgotten.
        """
        known = list(Change.__slots__)
        for name in change:
            if name not in known:
                meant = what_was_meant(name, known)
                raise LocalUsageError(f"a fork cannot change {name!r}{meant} It can: {', '.join(known)}")
        wanted = Change(**change)
        with self.lock, ExitStack() as left_open:
            at = self.num_steps if at_step is None else whole_number("at_step", at_step, 0, self.num_steps)
            self._check(wanted)
            other = self._branch()
            left_open.callback(self._close, other)
            for action in self._main.choices[:at]:
                self._step(other, action)
            _apply(wanted, other)
            while len(other.choices) < self.num_steps and self._step(other, None) is not None:
                pass
            left_open.pop_all()
            self._close(self._other)
            self._other, self.change, self.fork_step = other, wanted, at
            self._tell(True)
        return wanted

    # -- to and from a file ----------------------------------------------------------------------------

    def to_json(self) -> str:
        """All choices as JSON: with the same job, `from_json` comes to the same moments."""
        with self.lock:
            fork = None
            if self._other is not None and self.change is not None:
                change = {name: getattr(self.change, name) for name in Change.__slots__}
                fork = {"at_step": self.fork_step, "change": change, "choices": self._other.choices}
            data = {
                "format": _FORMAT, "seed": self.seed, "num_task_managers": self._num_task_managers,
                "max_delay_ms": self._max_delay_ms, "choices": self._main.choices, "fork": fork,
            }  # fmt: skip
            return json_text(data, indent=1)

    @classmethod
    def from_json(cls, text: str, environment: StreamEnvironment) -> Stepper:
        """The run that `to_json` wrote, of the same job.

        Raises:
            LocalUsageError: the text is no run, or not one of this job.
        """
        with _reading() as left_open:
            data = _data_of(text)
            stepper = cls(environment, data["seed"], data["num_task_managers"], data["max_delay_ms"])
            left_open.callback(stepper.close)
            choices, fork = data["choices"], data["fork"]
            stepper._replay(stepper._main, choices)
            if fork is not None:
                change = Change(**fork["change"])
                at = whole_number("at_step", fork["at_step"], 0, len(fork["choices"]))
                stepper._check(change)
                stepper._other = stepper._branch()
                stepper._replay(stepper._other, fork["choices"][:at])
                _apply(change, stepper._other)
                stepper._replay(stepper._other, fork["choices"][at:])
                stepper.change, stepper.fork_step = change, at
            left_open.pop_all()
        return stepper

    def restore(self, text: str) -> None:
        """Become the run that `to_json` wrote, of the same job; if that cannot be, all stays as it was.

        Raises:
            LocalUsageError: the text is no run, not one of this job, or one on another number of TaskManagers.
        """
        with _reading():
            theirs = _data_of(text)["num_task_managers"]
        if theirs != self._num_task_managers:
            raise LocalUsageError(
                f"this run was on {theirs} TaskManagers and this one is on {self._num_task_managers}, so its pictures "
                "are others; `Stepper.load(PATH, job)` makes a stepper of it"
            )
        with self.lock:
            read = Stepper.from_json(text, self.environment)
            self._close(self._main, self._other)
            self.seed, self._max_delay_ms = read.seed, read._max_delay_ms
            self._main, self._other, self.change, self.fork_step = read._main, read._other, read.change, read.fork_step
            self._tell(True)

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        path_of(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, environment: StreamEnvironment) -> Stepper:
        """Read what `save` wrote."""
        return cls.from_json(text_of_file(path), environment)

    def close(self) -> None:
        """Give back what both branches hold."""
        with self.lock:
            self._close(self._main, self._other)

    # -- helpers ---------------------------------------------------------------------------------------

    @property
    def _branches(self) -> list[_Branch]:
        return [branch for branch in (self._main, self._other) if branch is not None]

    def _branch(self) -> _Branch:
        simulation = Simulation(
            self.environment, self.seed, num_task_managers=self._num_task_managers, max_delay_ms=self._max_delay_ms
        )
        start = simulation.snapshot()
        recording = Recording(topology(start), _MOST_STEPS + 1)
        recording.add(start, "start")
        return _Branch(simulation, recording)

    def _step(self, branch: _Branch, action: str | None) -> str | None:
        enabled = branch.enabled()
        if not enabled or len(branch.choices) >= _MOST_STEPS:
            return None
        chosen = next((each for each in enabled if str(each) == action), None) or self._choose(branch, enabled)
        try:
            branch.simulation.step(chosen)
        except BaseException as error:
            branch.error = error
            raise
        for pool, most in branch.limits:
            _limit(pool, most)  # lower, when what was lent has come home
        if isinstance(chosen, StepTask) and chosen.task == branch.slow:
            branch.rests_until_ms[chosen.task] = branch.simulation.time_ms + branch.delay_ms
        branch.choices.append(str(chosen))
        branch.recording.add(branch.simulation.snapshot(), str(chosen))
        return str(chosen)

    def _choose(self, branch: _Branch, enabled: Sequence[Action]) -> Action:
        """What goes next where nobody chooses; a task that rests does so as long as others can move."""
        now = branch.simulation.time_ms
        rested = [each for each in enabled if now >= branch.rests_until_ms.get(getattr(each, "task", ""), 0.0)]
        among = rested or enabled
        luck = np.random.default_rng((self.seed, len(branch.choices))).random()
        return among[int(luck * len(among))]

    def _replay(self, branch: _Branch, choices: Sequence[str]) -> None:
        if len(branch.choices) + len(choices) > _MOST_STEPS:
            raise LocalUsageError(f"this run has more than {_MOST_STEPS} steps")
        for action in choices:
            if action not in map(str, branch.enabled()):
                raise LocalUsageError(
                    f"this run is not one of this job: {action!r}, its step {len(branch.choices) + 1}, is not enabled"
                )
            self._step(branch, action)

    def _check(self, change: Change) -> None:
        for name, least in (("buffers", 2), ("credits", 0)):
            if getattr(change, name) is not None:
                whole_number(name, getattr(change, name), least, 100_000)
        if change.slow is not None and change.slow not in self.tasks:
            meant = what_was_meant(change.slow, self.tasks)
            raise LocalUsageError(f"no task {change.slow!r}{meant} There are: {', '.join(self.tasks)}")
        is_number = isinstance(change.delay_ms, int | float) and not isinstance(change.delay_ms, bool)
        if not is_number or not 0 <= change.delay_ms <= 10_000:
            raise LocalUsageError(f"delay_ms={change.delay_ms!r} cannot work: from 0 to 10000")

    def _refuse_if_over(self) -> None:
        """A job that has failed or was given up takes no step, which is not the same as being done."""
        if self.error is None and self._main.simulation.is_closed and not self._main.simulation.is_done:
            raise LocalUsageError("this Stepper is closed; `reset()` goes back to the start")
        if self.error is not None and self.is_done:
            raise LocalUsageError(
                f"the job has failed after {self.num_steps} steps ({type(self.error).__name__}: {self.error}); "
                "`reset()` goes back to the start, `fork(STEP, ...)` takes another way from a step before"
            )

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell of the steps taken inside, also if the last one failed: why is part of how the job stands."""
        try:
            yield
        finally:
            self._tell(False)

    def _tell(self, is_anew: bool) -> None:
        for listener in list(self.on_change):
            listener(is_anew)

    @staticmethod
    def _close(*branches: _Branch | None) -> None:
        for branch in branches:
            if branch is not None:
                branch.simulation.__exit__()


@contextmanager
def _reading() -> Iterator[ExitStack]:
    """Whatever goes wrong while a text is read is the text's fault; closes what the reader leaves in the stack."""
    with ExitStack() as left_open:
        try:
            yield left_open
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise LocalUsageError(f"this text is not a run of Sluice: {error!r}") from error


def _data_of(text: str) -> dict[str, Any]:
    """What `to_json` wrote, as far as it can be told before the steps are taken."""
    data: dict[str, Any] = json.loads(text)
    if data["format"] != _FORMAT:
        raise LocalUsageError(f"this is {data['format']!r}, not {_FORMAT!r}")
    whole_number("num_task_managers", data["num_task_managers"], 1, _MOST_TASK_MANAGERS)
    return data


def _apply(change: Change, branch: _Branch) -> None:
    """Change a branch that has come to where it forks."""
    for deployment in branch.simulation.deployments:
        outputs = [(partition.pool, change.buffers) for partition in deployment.partitions]
        inputs = [(pool, change.credits) for pool in deployment.shuffle.gate_pools]
        limits = [(pool, most) for pool, most in (*outputs, *inputs) if most is not None]
        for pool, most in limits:
            _limit(pool, most)
        if limits:
            deployment.pool.promises.redistribute()
        branch.limits += limits
    branch.slow, branch.delay_ms = change.slow, change.delay_ms


def _limit(pool: LocalBufferPool, num_buffers: int) -> None:
    """Let a pool have at most so many, but all that it requires, and for now what is lent."""
    pool.num_max = max(pool.num_required, num_buffers, len(pool.lent))
    if pool.size > pool.num_max:
        pool.set_num_buffers(pool.num_max)
