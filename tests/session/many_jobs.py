"""Many jobs at once in one session: submitted, left to end and cancelled at random, and nothing is left of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from refimpl.drivers.cluster.client import ClusterClient
from tests.session.job import batch_lines, committed, windows_job
from tests.support.polling import until

__all__ = ["ManyJobs"]

_NUM_RECORDS = 120
_PAUSE_S = 0.1


@dataclass
class ManyJobs:
    """A user with `num_at_once` jobs, and what is asked of each; all that is drawn comes from `seed`."""

    client: ClusterClient
    folder: Path
    seed: int
    num_at_once: int = 20
    ends: Counter[str] = field(default_factory=Counter)
    _asked: dict[str, str] = field(default_factory=dict)  # job -> the state in which it is to end
    _gates: dict[str, Path] = field(default_factory=dict)
    _num_jobs: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._wanted = batch_lines(self.folder, _NUM_RECORDS, parallelism=1)

    def play(self, seconds: float, look: Callable[[], None] = lambda: None) -> None:
        """Submit and cancel for so long, then see all to their end; `look` is called now and then."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._step(may_submit=True)
            look()
            time.sleep(_PAUSE_S * self.random.random())
        for gate in self._gates.values():
            gate.touch()
        until(self._are_all_over, timeout_s=300)

    def _step(self, may_submit: bool) -> None:
        if may_submit and len(self._asked) < self.num_at_once:
            self._submit()
            return
        job = self.random.choice(list(self._asked))
        if self.random.random() < 0.5:
            self._asked[job] = "cancelled"
            shown = self.client.cancel(job)
            self._is_over(job, shown["state"])
        else:
            self._gates[job].touch()
            self._take_ends()

    def _submit(self) -> None:
        self._num_jobs += 1
        name = f"job-{self._num_jobs}"
        environment, gate = windows_job(self.folder, name, _NUM_RECORDS, parallelism=1)
        self.client.submit(name, environment)
        self._asked[name], self._gates[name] = "finished", gate

    def _are_all_over(self) -> bool:
        self._take_ends()
        return not self._asked

    def _take_ends(self) -> None:
        for shown in self.client.jobs():
            if shown["job"] in self._asked and shown["state"] in ("finished", "cancelled", "failed"):
                self._is_over(shown["job"], shown["state"], shown["why"])

    def _is_over(self, job: str, state: str, why: str = "") -> None:
        """A job has ended as it was asked to; one that had finished before it was cancelled has finished."""
        asked = self._asked.pop(job)
        self._gates.pop(job)
        said = f"seed {self.seed}: {job} is {state} ({why}), asked was {asked}"
        assert state == asked or (state, asked) == ("finished", "cancelled"), said
        if state == "finished":
            assert committed(self.folder, job) == self._wanted, said
        self.ends[state] += 1
