"""The five failures a cluster outlives: who dies, what goes on untouched, and where the slots come from again.

Who and when is drawn from a seed; tasks run until they are told to end, so that each failure meets a running job.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refimpl.cluster import AllocationId, ExecutionId, GiveSlot, JobState, ManagedSlotState, OfferedSlots, TaskState
from tests.support.cluster_rig import JM, RM, ClusterRig, plan_of

SEEDS = range(8)
EACH = pytest.mark.parametrize("seed", SEEDS)


def running_rig(seed: int) -> ClusterRig:
    """A cluster of 3 TaskManagers with 2 slots each, on which a job of 3 slots runs all its 6 tasks."""
    rig = ClusterRig(seed, plan_of(2, 3), delay=0, is_endless=True)
    until(rig, lambda: len(everything(rig)) == 6 and is_running(rig))
    rig.run(rig.rng.randrange(100))
    return rig


def until(rig: ClusterRig, is_true: Callable[[], bool], num_steps: int = 20_000) -> None:
    for _ in range(num_steps):
        if is_true():
            return
        rig.step()
    raise AssertionError(f"seed {rig.seed}: it did not come, {rig.job_master.scheduler.status.history}")


def everything(rig: ClusterRig) -> set[ExecutionId]:
    return {task for each in rig.running.values() for task in each}


def is_running(rig: ClusterRig) -> bool:
    states = {each.state.name for each in rig.job_master.scheduler.executions.values()}
    return rig.job_master.scheduler.status.state is JobState.RUNNING and states == {"RUNNING"}


def allocations(rig: ClusterRig) -> set[AllocationId]:
    return {each.allocation for each in rig.job_master.pool.slots}


def finish(rig: ClusterRig) -> None:
    rig.is_endless = False
    rig.settle()
    assert rig.job_master.scheduler.status.state is JobState.FINISHED, f"seed {rig.seed}"
    rig.check_end()


@EACH
def test_1_a_task_manager(seed: int) -> None:
    """Its attempts fail, the job begins again, in slots of the pool and of the ResourceManager."""
    rig = running_rig(seed)
    victim = rig.rng.choice(sorted(address for address, tasks in rig.running.items() if tasks))
    before = everything(rig)
    rig.crash(victim)
    until(rig, lambda: is_running(rig) and len(everything(rig)) == 6)
    assert [state for state, _ in rig.job_master.scheduler.status.history] == [
        JobState.CREATED,
        JobState.RUNNING,
        JobState.RESTARTING,
        JobState.RUNNING,
    ], f"seed {seed}"
    assert not before & everything(rig), f"seed {seed}: the job is one region, so each task has its next attempt"
    assert {each.attempt for each in everything(rig)} == {1}
    finish(rig)


@EACH
def test_2_the_resource_manager(seed: int) -> None:
    """The job goes on untouched; the next leader hears whose the slots are."""
    rig = running_rig(seed)
    before, held = everything(rig), allocations(rig)
    rig.crash(RM)
    rig.run(rig.rng.randrange(300))
    rig.revive(RM)
    rig.run(600)
    assert everything(rig) == before, f"seed {seed}"
    assert [state for state, _ in rig.job_master.scheduler.status.history] == [JobState.CREATED, JobState.RUNNING]
    managed = {s.allocation for s, state in rig.resource_manager.slots.slots() if state is ManagedSlotState.ALLOCATED}
    assert managed == held, f"seed {seed}"
    finish(rig)


@EACH
def test_3_the_job_master(seed: int) -> None:
    """Its tasks are ended, its slots are kept, and the next leader is offered them before it gets others."""
    rig = running_rig(seed)
    before, held = everything(rig), allocations(rig)
    rig.crash(JM)
    rig.run(rig.rng.randrange(60))
    rig.sent.clear()
    rig.revive(JM)
    until(rig, lambda: is_running(rig) and len(everything(rig)) == 6)
    assert not before & everything(rig), f"seed {seed}: the attempts of another leader"
    offered = {allocation for each in rig.sent if isinstance(each, OfferedSlots) for allocation, _ in each.offers}
    assert held & offered, f"seed {seed}: nothing was kept"
    finish(rig)


@EACH
def test_4_the_job_master_and_the_resource_manager(seed: int) -> None:
    """As 3; and the slots are told to the next ResourceManager as the job's, so that none is given twice."""
    rig = running_rig(seed)
    held = allocations(rig)
    rig.crash(JM)
    rig.crash(RM)
    rig.run(rig.rng.randrange(60))
    rig.sent.clear()
    for address in rig.rng.sample([RM, JM], 2):
        rig.revive(address)
        rig.run(rig.rng.randrange(40))
    until(rig, lambda: is_running(rig) and len(everything(rig)) == 6)
    given = {each.slot for each in rig.sent if isinstance(each, GiveSlot)}
    kept = {each.slot for each in rig.job_master.pool.slots if each.allocation in held}
    assert not given & kept, f"seed {seed}: a slot that was kept was given again"
    finish(rig)


@EACH
def test_5_a_task_manager_and_the_resource_manager(seed: int) -> None:
    """The job waits for a slot until there is a ResourceManager to ask, and goes on then."""
    rig = running_rig(seed)
    rig.crash(RM)
    victims = [address for address, tasks in rig.running.items() if tasks]
    for victim in victims:
        rig.crash(victim)
    until(rig, lambda: rig.job_master.scheduler.status.state is JobState.RESTARTING)
    until(rig, lambda: bool(rig.job_master.pool.waiting))
    rig.run(100)
    assert not is_running(rig), f"seed {seed}: without slots"
    rig.revive(RM)
    until(rig, lambda: is_running(rig) or not rig.job_master.pool.waiting or rig.now_ms > 250_000)
    for victim in victims:
        rig.revive(victim)
    until(rig, lambda: is_running(rig) and len(everything(rig)) == 6)
    finish(rig)


@EACH
def test_a_task_manager_that_was_stopped_for_long_and_goes_on_does_no_harm(seed: int) -> None:
    """It hears nothing and says nothing until it counts as gone; then it goes on with what it believed."""
    rig = running_rig(seed)
    victim = rig.rng.choice(sorted(address for address, tasks in rig.running.items() if tasks))
    old = set(rig.running[victim])
    rig.paused.add(victim)
    until(rig, lambda: rig.job_master.scheduler.status.state is JobState.RESTARTING)
    rig.run(rig.rng.randrange(200))
    rig.paused.clear()
    for task in sorted(old & rig.running[victim]):
        if rig.rng.random() < 0.5:
            rig.end(victim, task, TaskState.FINISHED)  # what it says of it is nothing to anybody
    until(rig, lambda: is_running(rig) and len(everything(rig) - old) == 6)
    until(rig, lambda: not old & everything(rig))
    finish(rig)
