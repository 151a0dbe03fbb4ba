"""The components of a cluster together, under loss, repetition and death: the job ends, and every slot comes home."""

from __future__ import annotations

import pytest

from refimpl.cluster import JobState, TaskState
from tests.support.cluster_rig import JM, RM, ClusterRig, plan_of

SEEDS = range(25)


def states_of(rig: ClusterRig) -> list[JobState]:
    return [state for state, _ in rig.job_master.scheduler.status.history]


@pytest.mark.parametrize("seed", SEEDS)
def test_without_faults_every_task_runs_once(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 3), delay=0)
    rig.settle()
    assert states_of(rig) == [JobState.CREATED, JobState.RUNNING, JobState.FINISHED], f"seed {seed}"
    assert sorted((task.place, state) for task, state in rig.ends) == [
        ((vertex, subtask), TaskState.FINISHED) for vertex in range(2) for subtask in range(3)
    ], f"seed {seed}"
    rig.check_end()


@pytest.mark.parametrize("seed", SEEDS)
def test_with_messages_lost_and_repeated_the_job_ends_all_the_same(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 3), loss=0.15, repeat=0.1)
    rig.run(600)
    rig.settle()
    assert states_of(rig)[-1] is JobState.FINISHED, f"seed {seed}: {rig.job_master.scheduler.failure}"
    rig.check_end()


@pytest.mark.parametrize("seed", SEEDS)
def test_with_tasks_that_fail_it_begins_again(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 2), task_failures=0.3)
    rig.run(400)
    rig.settle()
    assert states_of(rig)[-1] is JobState.FINISHED, f"seed {seed}: {rig.job_master.scheduler.failure}"
    rig.check_end()


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_dies_and_comes_back_the_job_ends(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 3), loss=0.05, repeat=0.05)
    for _ in range(6):
        rig.run(rig.rng.randrange(150))
        victim = rig.rng.choice([RM, JM, "tm-0", "tm-1", "tm-2"])
        rig.crash(victim)
        rig.run(rig.rng.randrange(100))
        rig.revive(victim)
    rig.settle()
    assert states_of(rig)[-1] is JobState.FINISHED, f"seed {seed}: {rig.job_master.scheduler.failure}"
    rig.check_end()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_was_paused_does_no_harm_when_it_goes_on(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 3), loss=0.05, repeat=0.05)
    for _ in range(4):
        rig.run(rig.rng.randrange(200))
        rig.depose(rig.rng.choice([RM, JM]))
    rig.settle()
    assert states_of(rig)[-1] is JobState.FINISHED, f"seed {seed}: {rig.job_master.scheduler.failure}"
    rig.check_end()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_that_is_cancelled_at_any_moment_leaves_nothing(seed: int) -> None:
    rig = ClusterRig(seed, plan_of(2, 3), loss=0.05)
    rig.run(rig.rng.randrange(200))
    rig.job_master.cancel(rig.now_ms)
    rig.collect(JM)
    rig.settle()
    assert rig.job_master.scheduler.status.state in (JobState.CANCELED, JobState.FINISHED), f"seed {seed}"
    rig.check_end()
