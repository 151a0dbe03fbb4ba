"""A learner's matching of slots in the pool of a job that loses a TaskManager, then its JobMaster.

The learner's is asked by each pool that there is, and told first what the pool has. What it answers is held against
what the pool knows: a slot that is in use, a request that does not wait, or a slot left idle beside a request that
waits would harm the job. Then the part is out, and ours goes on from what the pool knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course.swap.guard import Guard
from course.swap.report import first_lines
from refimpl.cluster import AllocationId, ExecutionState, FixedDelayRestart, JobState, SlotMatching, SlotPool
from refimpl.config import Config
from refimpl.drivers.cluster_simulation import DISPATCHER, ClusterSimulation, job_master_of
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment

__all__ = ["SlotsReport", "run_in_a_cluster"]

_JOB = "numbers"
_SEED = 2
_NUM_RECORDS = 150
_LOOK_EACH = 5  # steps; a look at a whole cluster takes longer than a step
_NUM_SLOTS = 3


@dataclass(frozen=True, slots=True)
class SlotsReport:
    """What became of a job whose slots were given away by a part.

    `given` says for each part of the run how many slots went to requests, `num_committed` how many of the `num_in`
    numbers were written for good.
    """

    exercise: str
    part_name: str
    is_learners: bool
    given: tuple[tuple[str, int], ...]
    num_in: int
    num_committed: int
    is_equal: bool
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0
    error: str = ""

    @property
    def num_lost(self) -> int:
        return self.num_in - self.num_committed

    def __repr__(self) -> str:
        lines = first_lines(self, f"in the slot pool of a job with {_NUM_SLOTS} slots on 3 TaskManagers")
        if self.error:
            lines.append(f"✗ the job came to no end: {self.error}")
        lines += [f"  {what:<24}{number:>3} slots given to requests" for what, number in self.given]
        sign = "✓" if self.is_equal else "✗"
        words = "each once" if self.is_equal else "not all, or some twice"
        lines.append(f"{sign} {self.num_committed} of {self.num_in} numbers are written, {words}")
        return "\n".join(lines)


def run_in_a_cluster(exercise_id: str, part: Any) -> SlotsReport:
    """Let `part`, or ours, give the slots of a job away, while members of its cluster die."""
    if part is None:
        return _report(exercise_id, SlotMatching.__name__, None)
    with Guard(part) as guard:
        return _report(exercise_id, getattr(part, "__name__", type(part).__name__), guard)


def _report(exercise_id: str, name: str, guard: Guard | None) -> SlotsReport:
    with TemporaryDirectory() as folder:
        run = _Run(Path(folder), guard)
        error = ""
        try:
            run.go()
        except USER_CODE_RAISES as raised:  # whatever stopped the job is reported, not hidden
            error = described(raised)
        committed = sorted(
            int(line)
            for each in Path(folder).iterdir()
            if not each.name.startswith(".")
            for line in each.read_text().split()
        )
    happened, num_calls = ((), 0) if guard is None else (tuple(guard.what_happened), guard.num_calls)
    return SlotsReport(
        exercise_id, name, guard is not None, tuple(run.given), _NUM_RECORDS, len(committed),
        committed == list(range(_NUM_RECORDS)), happened, num_calls, error,
    )  # fmt: skip


class _Run:
    """The cluster, its job, and what has been given away in it."""

    def __init__(self, folder: Path, guard: Guard | None) -> None:
        config = Config(segment_size_bytes=64, num_buffers=60, source_batch=1, checkpoint_interval_ms=4)
        self._guard = guard
        self._watched: list[_Watched] = []
        self._told = 0
        self.given: list[tuple[str, int]] = []
        self._cluster = ClusterSimulation(3, 2, _SEED, config=config, check_every=0)
        self._cluster.run(lambda run: DISPATCHER in run.members.alive)
        environment = StreamEnvironment(config, _NUM_SLOTS)
        numbers = environment.from_collection(range(_NUM_RECORDS), "numbers").set_parallelism(1).rebalance()
        numbers.map(str, "text").rebalance().sink_to(FileSink(folder), name="file")
        self._cluster.submit(_JOB, environment, lambda: FixedDelayRestart(99, 5.0))

    def go(self) -> None:
        """Start the job, lose a TaskManager, lose the JobMaster, and come to the end."""
        self._until(lambda run: _is_running(run) and bool(run.snapshot().jobs[0].completed), "the job starts")
        members = self._cluster.snapshot().members
        before = self._attempts()
        victim = max(members, key=lambda each: sum(bool(slot.executions) for slot in each.slots)).address
        self._cluster.crash(victim)
        self._until(lambda run: _is_running(run) and not before & self._attempts(), "a TaskManager is lost")
        self._cluster.revive(victim)
        leader = self._cluster.job_master(_JOB)
        self._cluster.crash(job_master_of(_JOB))
        self._cluster.revive(job_master_of(_JOB))
        self._until(
            lambda run: _is_running(run) and run.job_master(_JOB) is not leader,
            "the JobMaster is lost",
        )
        self._until(lambda run: run.is_at_rest, "the job ends")

    def _attempts(self) -> set[Any]:
        return {each for each, _ in self._cluster.snapshot().jobs[0].executions}

    def _until(self, is_so: Callable[[ClusterSimulation], bool], what: str) -> None:
        def watched(run: ClusterSimulation) -> bool:
            self._watch(run)
            return run.num_steps % _LOOK_EACH == 0 and is_so(run)

        self._cluster.run(watched)
        total = sum(each.num_given for each in self._watched)
        self.given.append((what, total - self._told))
        self._told = total

    def _watch(self, run: ClusterSimulation) -> None:
        """Put the part into each pool that has none yet."""
        leader = run.job_master(_JOB)
        if leader is not None and not isinstance(leader.pool.matching, _Watched):
            self._watched.append(_Watched(self._guard, leader.pool))


def _is_running(run: ClusterSimulation) -> bool:
    (job,) = run.snapshot().jobs
    return job.state is JobState.RUNNING and {state for _, state in job.executions} == {ExecutionState.RUNNING}


@dataclass(slots=True)
class _Known:
    """What a pool knows: where its slots are, whom each serves, and who waits."""

    at: dict[AllocationId, str] = field(default_factory=dict)
    serves: dict[AllocationId, AllocationId | None] = field(default_factory=dict)
    waiting: list[AllocationId] = field(default_factory=list)

    def tell(self, matching: Any) -> None:
        """Make a new matching know the same."""
        for slot, task_manager in self.at.items():
            matching.offer(slot, task_manager)
        for slot, request in self.serves.items():
            if request is not None:
                matching.request(request, slot, ())
        for request in self.waiting:
            matching.request(request, None, ())

    def why_not(self, slot: Any, request: Any) -> str:
        """Why this slot cannot serve this request; empty if it can."""
        if slot not in self.serves:
            return f"it handed out {slot}, which is no slot of the job"[:100]
        if self.serves[slot] is not None:
            return f"slot {slot} was handed out twice: to {self.serves[slot]}, and to {request}"[:100]
        return ""


class _Watched(SlotMatching):
    """The learner's matching, or ours, and what the pool knows."""

    def __init__(self, guard: Guard | None, pool: SlotPool) -> None:
        super().__init__()
        self._guard = guard
        self._known = _Known()
        for each in pool.slots:
            self._known.at[each.allocation] = each.slot.task_manager
            self._known.serves[each.allocation] = None if each.wish is None else each.allocation
        self._known.waiting += pool.waiting.values()
        self.num_given = 0
        self._chosen: Any = None
        if guard is not None and not guard.is_out:
            with guard.call():
                self._chosen = guard.part()
                self._known.tell(self._chosen)
        self._ours_if_out()
        pool.matching = self

    def request(self, request: AllocationId, before: AllocationId | None, near: Collection[str]) -> AllocationId | None:
        free = [slot for slot, user in self._known.serves.items() if user is None]

        def why_not(slot: Any) -> str:
            if slot is None:
                return f"request {request} was let wait, and slot {free[0]} is free" if free else ""
            return self._known.why_not(slot, request)

        chosen: AllocationId | None = self._asked(lambda part: part.request(request, before, tuple(near)), why_not)
        if chosen is None:
            self._known.waiting.append(request)
        else:
            self._known.serves[chosen] = request
            self.num_given += 1
        return chosen

    def offer(self, slot: AllocationId, task_manager: str) -> AllocationId | None:
        if slot in self._known.at:
            served: AllocationId | None = self._asked(
                lambda part: part.offer(slot, task_manager),
                lambda request: "" if request is None else self._known.why_not(slot, request) or "it was free before",
            )
            return served
        return self._freed(slot, task_manager, lambda part: part.offer(slot, task_manager))

    def release(self, slot: AllocationId) -> AllocationId | None:
        return self._freed(slot, self._known.at[slot], lambda part: part.release(slot))

    def withdraw(self, request: AllocationId) -> None:
        self._asked(lambda part: part.withdraw(request), lambda _: "")
        if request in self._known.waiting:
            self._known.waiting.remove(request)

    def remove(self, slot: AllocationId) -> None:
        self._asked(lambda part: part.remove(slot), lambda _: "")
        self._known.at.pop(slot, None)
        self._known.serves.pop(slot, None)

    def _freed(self, slot: AllocationId, task_manager: str, ask: Callable[[Any], Any]) -> AllocationId | None:
        """A slot is free, new or again: whom it serves."""
        waiting = self._known.waiting

        def why_not(request: Any) -> str:
            if request is None:
                return f"slot {slot} was left idle, and {waiting[0]} waits" if waiting else ""
            return "" if request in waiting else f"slot {slot} was given to {request}, and that does not wait"[:100]

        request: AllocationId | None = self._asked(ask, why_not)
        self._known.at[slot] = task_manager
        self._known.serves[slot] = request
        if request is not None:
            waiting.remove(request)
            self.num_given += 1
        return request

    def _asked(self, ask: Callable[[Any], Any], why_not: Callable[[Any], str]) -> Any:
        """What the part answers; where it raises, or harms the job, what ours answers."""
        if self._guard is not None and not self._guard.is_out:
            with self._guard.call():
                answer = ask(self._chosen)
                why = why_not(answer)
                if not why:
                    return answer
                self._guard.take_out(why)
            self._ours_if_out()
        return ask(self._chosen)

    def _ours_if_out(self) -> None:
        if self._guard is None or self._guard.is_out:
            self._chosen = SlotMatching()
            self._known.tell(self._chosen)
