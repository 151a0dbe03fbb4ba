"""The laws of slots, attempts and fencing: each holds while members die, and each catches what no other does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refimpl.cluster import ExecutionEvent, ExecutionState, FixedDelayRestart, JobState
from refimpl.cluster.fencing import Envelope, Fence, FenceRefusal
from refimpl.cluster.scheduler import Scheduler
from refimpl.cluster.slot_manager import SlotManager
from refimpl.cluster.slot_pool import PooledSlot, SlotPool
from refimpl.cluster.slot_table import SlotTable
from refimpl.cluster.slots import AllocationId
from refimpl.drivers.cluster_simulation import RESOURCE_MANAGER, ClusterSimulation, job_master_of
from tests.support.cluster_worlds import JOB, committed, expected, is_running, running_cluster

Patch = pytest.MonkeyPatch
MOST_STEPS = 30_000
JOB_MASTER = job_master_of(JOB)


def keep_all(folder: Path, seed: int = 0) -> None:
    """Run a job: leaders stand still and go on beside the next, a JobMaster and a TaskManager die.

    The laws are checked after each step, and in the end everything is committed once.
    """
    print(f"seed {seed}")
    chance = Random(f"laws {seed}")
    cluster = running_cluster(folder, seed).run(is_running)
    for trouble in (stands_still, dies, stands_still, dies):
        for _ in range(chance.randrange(60)):
            cluster.step()
        victims = sorted(address for address, each in cluster.data.running().items() if each)
        trouble(cluster, chance.choice([JOB_MASTER, *victims] if trouble is dies else [JOB_MASTER, RESOURCE_MANAGER]))
        cluster.run(lambda run: run.is_at_rest or is_running(run), MOST_STEPS)
    cluster.run(lambda run: run.is_at_rest, MOST_STEPS)
    assert cluster.end_of(JOB) is JobState.FINISHED
    cluster.check_at_rest()
    assert committed(folder) == expected()


def stands_still(cluster: ClusterSimulation, address: str) -> None:
    """Until another leads, and the job runs under that one."""
    before = cluster.members.present(address)
    cluster.members.pause(address)
    cluster.run(lambda run: run.members.alive.get(address) is not before, MOST_STEPS)
    cluster.run(lambda run: run.is_at_rest or is_running(run), MOST_STEPS)
    cluster.members.resume(address)


def dies(cluster: ClusterSimulation, address: str) -> None:
    cluster.crash(address)
    cluster.revive(address)


@pytest.mark.parametrize("seed", range(3))
def test_all_hold(seed: int, tmp_path: Path) -> None:
    keep_all(tmp_path, seed)


# -- broken on purpose -----------------------------------------------------------------------------


def a_task_is_in_no_slot(patch: Patch) -> None:
    def mutant(self: SlotTable, allocation: AllocationId, task: Any) -> bool:
        is_added = add_task(self, allocation, task)
        if is_added:
            slot = self._find(allocation)
            assert slot is not None
            slot.tasks.remove(task)
        return is_added

    add_task = SlotTable.add_task
    patch.setattr(SlotTable, "add_task", mutant)


def the_resource_manager_is_not_told_of_a_free_slot(patch: Patch) -> None:
    patch.setattr(SlotManager, "slot_available", lambda *_given: [])


def a_pool_takes_every_slot_twice(patch: Patch) -> None:
    def mutant(self: SlotPool, task_manager: str, offers: Any, now_ms: float) -> Any:
        answer, decisions = offer(self, task_manager, offers, now_ms)
        for allocation in answer.accepted:
            again = AllocationId(allocation.job_id, allocation.epoch, 1_000 + allocation.number)
            self._slots[again] = PooledSlot(again, self._slots[allocation].slot, "nobody", now_ms)
        return answer, decisions

    offer = SlotPool.offer
    patch.setattr(SlotPool, "offer", mutant)


def who_is_told_to_stop_counts_as_stopped(patch: Patch) -> None:
    """And the next attempts begin at once."""

    def mutant(self: Scheduler, places: Any, now_ms: float) -> None:
        end(self, places, now_ms)
        for place in sorted(places):
            if self.executions[place].state is ExecutionState.CANCELING:
                self._on(self.executions[place], ExecutionEvent.CANCELED, now_ms)

    end = Scheduler._end
    patch.setattr(Scheduler, "_end", mutant)
    patch.setattr("tests.support.cluster_worlds.FixedDelayRestart", lambda most, _ms: FixedDelayRestart(most, 0.0))


def check(self: Fence, envelope: Envelope[Any], but: str) -> FenceRefusal | None:
    """The door without one of its two questions."""
    refusal = plain_check(self, envelope)
    return None if refusal is not None and but in refusal.why else refusal


plain_check = Fence.check


def nobody_asks_who_is_meant(patch: Patch) -> None:
    patch.setattr(Fence, "check", lambda self, envelope: check(self, envelope, "the message is for"))


def nobody_asks_who_speaks(patch: Patch) -> None:
    patch.setattr(Fence, "check", lambda self, envelope: check(self, envelope, "speaks as"))


RUN = "refimpl.drivers.cluster_simulation.run"
SLOTS, SLOTS_AT_REST, ATTEMPTS = f"{RUN}.check_slots", f"{RUN}.check_slots_at_rest", f"{RUN}.check_attempts"
FENCING = "refimpl.laws.fencing.FencingLaw.note"

MUTANTS: dict[Callable[[Patch], None], tuple[str, str]] = {
    a_task_is_in_no_slot: ("in no slot", SLOTS),
    a_pool_takes_every_slot_twice: ("has a slot twice", SLOTS),
    the_resource_manager_is_not_told_of_a_free_slot: ("the ResourceManager believes", SLOTS_AT_REST),
    who_is_told_to_stop_counts_as_stopped: ("still runs, and attempt", ATTEMPTS),
    nobody_asks_who_is_meant: ("which was for epoch", FENCING),
    nobody_asks_who_speaks: ("after it had heard epoch", FENCING),
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_mutant_breaks_one_law_and_no_other(
    mutate: Callable[[Patch], None], monkeypatch: Patch, tmp_path: Path
) -> None:
    said, law = MUTANTS[mutate]
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        keep_all(tmp_path / "with")
    monkeypatch.setattr(law, lambda *_given, **_named: None)
    keep_all(tmp_path / "without")
