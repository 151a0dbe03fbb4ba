"""A job that counts, on a cluster that loses members: five ways, and what becomes of the job, its tasks and its slots.

Three TaskManagers with a slot each; the job needs two of them, so one is to spare. What a run comes to depends on its
records, its failure, its seed and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from course.data.crashes import counting
from course.data.sample import sample_flights
from refimpl.cluster import ExecutionId, ExecutionState, FixedDelayRestart, JobState
from refimpl.config import CheckpointingMode, Config
from refimpl.drivers.cluster_simulation import (
    DISPATCHER,
    RESOURCE_MANAGER,
    ClusterAction,
    ClusterSimulation,
    CrashMember,
    ReviveMember,
    job_master_of,
)

__all__ = [
    "FAILURES",
    "JOB",
    "LossRow",
    "LossRun",
    "counted_airports",
    "is_running",
    "log_of",
    "logs",
    "loss_run",
]  # fmt: skip

JOB = "flights"
FAILURES = {
    1: "TaskManager",
    2: "ResourceManager",
    3: "JobMaster",
    4: "JobMaster and ResourceManager",
    5: "TaskManager and ResourceManager",
}
"""Who is lost, by the number of the failure."""

_NUM_FLIGHTS = 500
_NUM_TASK_MANAGERS = 3
_CONFIG = Config(segment_size_bytes=64, num_buffers=64)
_PAUSE_MS = 5.0
_SUCCESSOR_AFTER_MS = 8.0
"""How long nobody leads, after a leader is lost; less if nothing happens before."""

_MOST_STEPS = 50_000
LossRow = tuple[int, int, float, str, str, str]
"""Failure, seed, time in ms, what has happened (`loss`, `begins`, `ends`), to which task or member, and where."""


def is_running(cluster: ClusterSimulation) -> bool:
    """Whether somebody leads the job and knows all its tasks to run."""
    job_master = cluster.job_master(JOB)
    if job_master is None or job_master.scheduler.status.state is not JobState.RUNNING:
        return False
    return all(each.state is ExecutionState.RUNNING for each in job_master.scheduler.executions.values())


@dataclass(slots=True)
class LossRun:
    """One cluster through one failure; `on_step` sees each action and what it led to.

    `lost` are those who were killed, at `lost_ms`; at `again_ms` all tasks ran again, or still.
    """

    failure: int
    cluster: ClusterSimulation
    counts: dict[str, int] = field(default_factory=dict)
    num_counted: int = 0
    lost: tuple[str, ...] = ()
    lost_ms: float = 0.0
    again_ms: float = 0.0
    before: dict[ExecutionId, str] = field(default_factory=dict)
    after: dict[ExecutionId, str] = field(default_factory=dict)

    def in_slots(self) -> dict[ExecutionId, str]:
        """The attempts that are in a slot, and at which TaskManager."""
        tables = [each.task_manager.executor.slots for each in self.cluster.members if each.task_manager is not None]
        found = [(slot.slot, table.tasks_of(slot.slot.index)) for table in tables for slot in table.report()]
        return {task: slot.task_manager for slot, tasks in found for task in tasks if isinstance(task, ExecutionId)}

    def go_through(self, on_step: Callable[[ClusterSimulation, str], object] = lambda _cluster, _action: None) -> None:
        """Let the job run, lose who is to be lost, and go on until all of the job runs, under the next leaders."""
        self._until(self._has_checkpoint, on_step)
        self.before = self.in_slots()
        self.lost, self.lost_ms = tuple(self._victims()), self.cluster.time_ms
        for address in self.lost:
            self._do(CrashMember(address), on_step)
        for address in (each for each in self.lost if not each.startswith("tm-")):
            self._until(self._is_time_for_another, on_step)
            self._do(ReviveMember(address), on_step)
        self._until(lambda: is_running(self.cluster) and self._has_leaders(), on_step)
        self.again_ms = self.cluster.time_ms
        self.after = self.in_slots()

    def finish(self) -> None:
        """Let the job come to its end."""
        self.cluster.run(max_steps=_MOST_STEPS)

    def note(self, count: tuple[str, int]) -> None:
        """A count has come to the board; after a failure it may come twice."""
        self.num_counted += 1
        self.counts[count[0]] = max(count[1], self.counts.get(count[0], 0))

    def _victims(self) -> Iterator[str]:
        if self.failure in (1, 5):
            yield min(self.before.values())
        if self.failure in (3, 4):
            yield job_master_of(JOB)
        if self.failure in (2, 4, 5):
            yield RESOURCE_MANAGER

    def _has_checkpoint(self) -> bool:
        return is_running(self.cluster) and bool(self.cluster.snapshot().jobs[0].completed)

    def _has_leaders(self) -> bool:
        """Whether all who are there have registered with whoever leads now."""
        led = {address: member.token.epoch for address, member in self.cluster.members.alive.items()}
        if RESOURCE_MANAGER not in led:
            return False
        links = [link for each in self.cluster.snapshot().members for link in each.links]
        return all(link.epoch == led.get(link.address) for link in links)

    def _is_time_for_another(self) -> bool:
        """Whether nobody has led for long enough, or all stand still until somebody does."""
        now_ms, end_ms = self.cluster.time_ms, self.lost_ms + _SUCCESSOR_AFTER_MS
        return now_ms >= end_ms or all(getattr(each, "time_ms", now_ms) > end_ms for each in self.cluster.moves())

    def _until(self, is_so: Callable[[], bool], on_step: Callable[[ClusterSimulation, str], object]) -> None:
        for _ in range(_MOST_STEPS):
            if is_so():
                return
            if not self._do(None, on_step):
                break
        assert is_so(), f"failure {self.failure}: it did not come in {_MOST_STEPS} steps"

    def _do(self, action: ClusterAction | None, on_step: Callable[[ClusterSimulation, str], object]) -> bool:
        done = self.cluster.step(action)
        on_step(self.cluster, str(done or "nothing"))
        return done is not None


def loss_run(failure: int, keys: Sequence[str], seed: int = 1) -> LossRun:
    """A cluster with the job on its way, before anybody is lost; `keys` are what is counted."""
    cluster = ClusterSimulation(_NUM_TASK_MANAGERS, 1, seed, config=_CONFIG, check_every=0)
    run = LossRun(failure, cluster)
    cluster.run(lambda it: {DISPATCHER, RESOURCE_MANAGER} <= it.members.alive.keys())
    job = counting(keys, run.note, CheckpointingMode.EXACTLY_ONCE)
    cluster.submit(JOB, job, lambda: FixedDelayRestart(9, _PAUSE_MS))
    return run


def log_of(failure: int, keys: Sequence[str], seed: int) -> list[LossRow]:
    """What happens to tasks from a failure on, until all of the job runs: who is lost, who ends, who begins."""
    run, rows, seen = loss_run(failure, keys, seed), list[LossRow](), dict[ExecutionId, str]()

    def note(cluster: ClusterSimulation, _action: str) -> None:
        now, now_ms = run.in_slots(), cluster.time_ms
        for event, those, others in (("ends", seen, now), ("begins", now, seen)):
            for task in (each for each in those if each not in others):
                rows.append((failure, seed, now_ms, event, str(task), those[task]))
        seen.clear()
        seen.update(now)

    run.go_through(note)
    losses: list[LossRow] = [(failure, seed, run.lost_ms, "loss", address, address) for address in run.lost]
    return losses + [row for row in rows if row[2] > run.lost_ms]


def counted_airports() -> list[str]:
    """What the job counts: where each of some flights left from."""
    return [flight["origin"] for flight in sample_flights(_NUM_FLIGHTS)]


def logs(seed: int) -> Iterator[LossRow]:
    """The logs of all five failures in a cluster of this seed, then in one of the next, and so on for ever."""
    for each in itertools.count(seed):
        for failure in FAILURES:
            yield from log_of(failure, counted_airports(), each)
