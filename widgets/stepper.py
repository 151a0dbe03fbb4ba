"""A job taken step by step: you choose what goes next, go back, fork with something changed, and compare.

Every view shows a stepper. After a fork there are two branches; each further step is taken in both, and as long as
nothing differs they choose alike, so that what comes to differ is what the change has led to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from refimpl.drivers.simulation import Costs
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot, StreamEnvironment
from widgets.base import json_text, path_of, text_of_file, what_was_meant, whole_number
from widgets.branch import MOST_STEPS, Branch, Change, Ground
from widgets.recording import Recording

__all__ = ["Stepper"]

_FORMAT = "sluice-run-1"


class Stepper:
    """Steps a job that can be built again: each reset and each fork takes its steps from the start.

    So the job's sources must give the same records again (a list does, an open file does not), and its functions run
    again, sinks included. `num_task_managers` and `max_delay_ms` are those of `Simulation`. What is chosen where you
    choose nothing follows from `seed` and the number of the step, and is no fault. With `checkpoints` these are kept in
    memory, what the coordinator and the tasks say to one another are steps, and there are faults to choose, from which
    the job goes on. With `costs` work takes virtual time.

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
        self,
        environment: StreamEnvironment,
        seed: int = 0,
        num_task_managers: int = 1,
        max_delay_ms: float = 0.0,
        checkpoints: bool = False,
        costs: Costs | None = None,
    ) -> None:
        if not isinstance(environment, StreamEnvironment):
            raise LocalUsageError(f"a {type(environment).__name__} cannot be stepped; give a StreamEnvironment")
        self.environment = environment
        self.ground = Ground(num_task_managers, max_delay_ms, checkpoints, costs)
        self.seed = whole_number("seed", seed, 0, 2**32)
        self.change: Change | None = None
        self.fork_step = -1
        self.on_change: list[Callable[[bool], object]] = []
        self.lock = threading.RLock()  # a listener looks, and the job's own functions may
        self._other: Branch | None = None
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
        """What can go next, in words that `step` takes: actions, and with checkpoints faults, as `lose tm-1`."""
        with self.lock:
            return [*map(str, self._main.enabled()), *self._main.faults()]

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
                    done = branch.step(action, self.seed)
                    chosen = done if branch is self._main else chosen
            return chosen

    def run(self, most_steps: int = 1_000) -> int:
        """Step until nothing can move, or `most_steps` have been taken; returns how many."""
        whole_number("most_steps", most_steps, 1, MOST_STEPS)
        with self.lock:
            self._refuse_if_over()
            before = self.num_steps
            with self._telling():
                for _ in range(most_steps):
                    if not [branch for branch in self._branches if branch.step(None, self.seed) is not None]:
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
                other.step(action, self.seed)
            other.apply(wanted)
            while len(other.choices) < self.num_steps and other.step(None, self.seed) is not None:
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
            run = {"choices": self._main.choices, "fork": fork}
            return json_text({"format": _FORMAT, "seed": self.seed, **self.ground.to_data(), **run}, indent=1)

    @classmethod
    def from_json(cls, text: str, environment: StreamEnvironment) -> Stepper:
        """The run that `to_json` wrote, of the same job.

        Raises:
            LocalUsageError: the text is no run, or not one of this job.
        """
        with _reading() as left_open:
            data, ground = _data_of(text)
            stepper = cls(
                environment,
                data["seed"],
                ground.num_task_managers,
                ground.max_delay_ms,
                checkpoints=ground.checkpoints,
                costs=ground.costs,
            )
            left_open.callback(stepper.close)
            choices, fork = data["choices"], data["fork"]
            stepper._replay(stepper._main, choices)
            if fork is not None:
                change = Change(**fork["change"])
                at = whole_number("at_step", fork["at_step"], 0, len(fork["choices"]))
                stepper._check(change)
                stepper._other = stepper._branch()
                stepper._replay(stepper._other, fork["choices"][:at])
                stepper._other.apply(change)
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
            theirs, ours = _data_of(text)[1].num_task_managers, self.ground.num_task_managers
        if theirs != ours:
            raise LocalUsageError(
                f"this run was on {theirs} TaskManagers and this one is on {ours}, so its pictures "
                "are others; `Stepper.load(PATH, job)` makes a stepper of it"
            )
        with self.lock:
            read = Stepper.from_json(text, self.environment)
            self._close(self._main, self._other)
            self.seed, self.ground = read.seed, read.ground
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
    def _branches(self) -> list[Branch]:
        return [branch for branch in (self._main, self._other) if branch is not None]

    def _branch(self) -> Branch:
        return Branch.at_start(self.ground.simulation(self.environment, self.seed))

    def _replay(self, branch: Branch, choices: Sequence[str]) -> None:
        if len(branch.choices) + len(choices) > MOST_STEPS:
            raise LocalUsageError(f"this run has more than {MOST_STEPS} steps")
        for action in choices:
            if action not in [*map(str, branch.enabled()), *branch.faults()]:
                raise LocalUsageError(
                    f"this run is not one of this job: {action!r}, its step {len(branch.choices) + 1}, is not enabled"
                )
            branch.step(action, self.seed)

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
    def _close(*branches: Branch | None) -> None:
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


def _data_of(text: str) -> tuple[dict[str, Any], Ground]:
    """What `to_json` wrote, as far as it can be told before the steps are taken."""
    data: dict[str, Any] = json.loads(text)
    if data["format"] != _FORMAT:
        raise LocalUsageError(f"this is {data['format']!r}, not {_FORMAT!r}")
    return data, Ground.of_data(data)
