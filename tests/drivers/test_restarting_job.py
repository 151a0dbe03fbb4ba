"""What a driver is to do next for a job that may fail, step by step, in one thread and with a clock of the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.cluster import FixedDelayRestart, NoRestart
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.restarting_job import DeployTasks, Over, RestartingJob, Step, StopTasks, Wait
from refimpl.drivers.task_gateways import LocalTask
from refimpl.errors import LocalUsageError, RemoteTransportError, StoreError
from refimpl.job.deployment import Deployment
from refimpl.state import Fault, FaultKind, MemoryStore
from refimpl.task.task import Task
from tests.support.driver_rig import num_out
from tests.test_checkpoints import WINDOWS, job, undisturbed

LOST = RemoteTransportError("its TaskManager is gone")


class ByHand:
    """A driver that does one thing when it is told to: a step of the job, a call of the store, a step of each task."""

    def __init__(self, store: MemoryStore, results: list[Any], restart: Any = None, **options: Any) -> None:
        graph = job(results.append, **options).execution_graph(1)
        self.store = store
        self.now_ms = 0.0
        self.deployment: Deployment | None = None
        self.job = RestartingJob(JobRecovery(graph, store, "job", restart or FixedDelayRestart(9, 10.0)))

    def step(self) -> Step:
        """Carry out the step that is next; it is returned."""
        step = self.job.next_step(self.now_ms)
        match step:
            case DeployTasks():
                graph, snapshots = self.job.recovery.graph, self.job.recovery.snapshots()
                self.deployment = Deployment(graph, snapshots=snapshots)
                self.job.deployed({each.name: LocalTask(each) for each in self.tasks}, self.now_ms)
            case StopTasks(error):
                assert self.deployment is not None
                self.deployment.close_after(error or LOST)
                assert num_out(self.deployment) == 0
                self.deployment = None
                self.job.stopped(self.now_ms)
        return step

    @property
    def tasks(self) -> list[Task]:
        return [] if self.deployment is None else self.deployment.tasks

    def call_store(self) -> bool:
        """Make a call of the store, if one waits."""
        call = self.job.next_call()
        if call is not None:
            self.job.called(call.call(), self.now_ms)
        return call is not None

    def work(self) -> None:
        """Let every task do a step, and a little time pass."""
        self.now_ms += 0.2
        for task in self.tasks:
            task.on_timeout(self.now_ms)
            task.step()

    def run(self, until: Callable[[], bool] = lambda: False) -> Over | None:
        """Go on to the end, or until then: after each step, and after each call of the store."""
        while not until():
            step = self.step()
            if isinstance(step, Over):
                return step
            if until():
                break
            self.call_store()
            if not isinstance(step, Wait):
                continue
            if self.deployment is None:
                self.now_ms = step.until_ms or self.now_ms
            elif all(task.is_done for task in self.tasks):
                self.job.ended(self.now_ms)
            else:
                self.work()
        return None

    @property
    def of_checkpoints(self) -> list[str]:
        return [key for key in self.store.files if "chk-" in key]


def puts_of(store: MemoryStore) -> list[str]:
    return [call for call in store.calls if call.startswith("put") and "chk-" in call]


def test_a_job_that_ends_well_leaves_nothing_in_the_store() -> None:
    results: list[Any] = []
    driver = ByHand(MemoryStore(), results)
    assert driver.run() == Over(None)
    assert sorted(results) == sorted(undisturbed(WINDOWS["tumbling"]))
    assert puts_of(driver.store)
    assert driver.of_checkpoints == []


def test_a_restart_waits_for_its_time_and_for_what_is_under_way_in_the_store() -> None:
    driver = ByHand(MemoryStore(), [])
    driver.run(lambda: any(call.what.endswith("chk-1/_metadata") for call in driver.job.recovery.checkpoints.work))
    driver.job.failed(LOST, driver.now_ms)
    assert driver.step() == StopTasks(LOST)
    failed_ms = driver.now_ms
    call = driver.job.next_call()
    assert call is not None
    assert driver.job.next_call() is None, "one call at a time"
    assert driver.step() == Wait(None)
    driver.now_ms += 3
    driver.job.called(call.call(), driver.now_ms)
    while driver.call_store():
        pass
    assert driver.step() == Wait(failed_ms + 10)
    driver.now_ms = failed_ms + 10
    assert driver.step() == DeployTasks()
    recovered = driver.job.recovery.checkpoints.recovered
    assert recovered is not None
    assert recovered.manifest is not None, "the manifest that was under way counts"


@pytest.mark.parametrize("num_steps", range(1, 60, 2))
def test_a_failure_anywhere_leaves_no_file_that_no_checkpoint_names(num_steps: int) -> None:
    results: list[Any] = []
    driver = ByHand(MemoryStore(), results)
    taken = iter(range(num_steps))
    driver.run(lambda: next(taken, None) is None)
    driver.job.failed(LOST, driver.now_ms)
    driver.run(lambda: isinstance(driver.job.next_step(driver.now_ms), DeployTasks))
    manifests = {key.split("/")[1] for key in driver.of_checkpoints if key.endswith("/_metadata")}
    assert {key.split("/")[1] for key in driver.of_checkpoints} == manifests
    assert driver.run() == Over(None)
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))
    assert driver.of_checkpoints == []


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_file_that_was_put_and_whose_task_could_not_say_so_any_more_is_deleted(is_cancelled: bool) -> None:
    driver = ByHand(MemoryStore(), [], NoRestart())
    driver.run(lambda: bool(driver.of_checkpoints))
    if is_cancelled:
        driver.job.cancel()
    else:
        driver.job.failed(LOST, driver.now_ms)
    assert driver.run() == Over(None if is_cancelled else LOST)
    assert driver.of_checkpoints == []


def test_what_waits_for_the_store_when_a_job_fails_is_not_written_any_more() -> None:
    driver = ByHand(MemoryStore(), [])
    driver.run(lambda: any(call.what.startswith("write") for call in driver.job.recovery.checkpoints.work))
    num_puts = len(puts_of(driver.store))
    driver.job.failed(LOST, driver.now_ms)
    driver.run(lambda: isinstance(driver.job.next_step(driver.now_ms), DeployTasks))
    assert len(puts_of(driver.store)) == num_puts


def test_without_a_restart_the_job_ends_with_its_error_and_what_it_has_saved_stays() -> None:
    driver = ByHand(MemoryStore(), [], NoRestart())
    driver.run(lambda: any(key.endswith("chk-1/_metadata") for key in driver.store.files))
    driver.job.failed(LOST, driver.now_ms)
    assert driver.run() == Over(LOST)
    assert any(key.endswith("chk-1/_metadata") for key in driver.store.files)


def test_a_deployment_that_fails_counts_as_a_failure() -> None:
    driver = ByHand(MemoryStore(), [], FixedDelayRestart(1, 10.0))
    assert driver.job.next_step(0.0) == DeployTasks()
    driver.job.recovery.snapshots()
    first, second = StoreError("chk-1", "no answer"), StoreError("chk-1", "no answer again")
    driver.job.failed(first, 0.0)
    assert driver.step() == Wait(10.0)
    driver.now_ms = 10.0
    assert driver.job.next_step(10.0) == DeployTasks()
    driver.job.failed(second, 10.0)
    assert driver.step() == Over(second)


@pytest.mark.parametrize("is_stopping", [False, True])
@pytest.mark.parametrize("has_failed", [False, True])
def test_a_store_that_raises_what_no_store_may_ends_the_job_with_that(has_failed: bool, is_stopping: bool) -> None:
    """Also when the job was to begin again."""
    driver = ByHand(MemoryStore(), [])
    driver.run(lambda: bool(driver.job.recovery.checkpoints.work))
    bug = ZeroDivisionError("in the store")
    assert driver.job.next_call() is not None
    if has_failed:
        driver.job.failed(LOST, driver.now_ms)
        assert is_stopping or driver.step() == StopTasks(LOST)
    driver.job.called(bug, driver.now_ms)
    assert driver.run() == Over(bug)


def test_a_job_that_has_failed_for_ever_keeps_its_own_error() -> None:
    driver = ByHand(MemoryStore(), [], NoRestart())
    driver.run(lambda: bool(driver.job.recovery.checkpoints.work))
    assert driver.job.next_call() is not None
    driver.job.failed(LOST, driver.now_ms)
    assert driver.step() == StopTasks(LOST)
    driver.job.called(ZeroDivisionError("in the store"), driver.now_ms)
    assert driver.run() == Over(LOST)


@pytest.mark.parametrize("num_steps", [0, 1, 5, 25])
def test_a_cancelled_job_ends_without_an_error_and_nothing_is_under_way(num_steps: int) -> None:
    driver = ByHand(MemoryStore(), [])
    taken = iter(range(num_steps))
    driver.run(lambda: next(taken, None) is None)
    driver.job.cancel()
    assert driver.run() == Over(None)
    assert not driver.job.recovery.checkpoints.work
    names = {key.split("/")[1] for key in driver.of_checkpoints}
    assert names == {key.split("/")[1] for key in driver.of_checkpoints if key.endswith("/_metadata")}


def test_a_job_that_waits_for_its_restart_can_be_cancelled() -> None:
    driver = ByHand(MemoryStore(), [])
    driver.run(lambda: driver.now_ms > 1)
    driver.job.failed(LOST, driver.now_ms)
    driver.job.cancel()
    assert driver.run() == Over(None)


def test_a_savepoint_is_taken_while_tasks_run_and_is_refused_while_they_do_not() -> None:
    driver = ByHand(MemoryStore(), [])
    driver.run(lambda: driver.now_ms > 1)
    recovery = driver.job.recovery
    recovery.savepoint("now", driver.now_ms)
    with pytest.raises(LocalUsageError, match="'now' already"):
        recovery.savepoint("now", driver.now_ms)
    assert driver.run() == Over(None)
    with pytest.raises(LocalUsageError, match="no task runs"):
        recovery.savepoint("late", driver.now_ms)
    assert [key for key in driver.store.files if key.endswith("/_metadata")] == ["job/sp-now/_metadata"]


@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.NO_SPACE])
def test_a_checkpoint_that_cannot_be_put_starts_the_job_anew(kind: FaultKind) -> None:
    results: list[Any] = []
    driver = ByHand(MemoryStore([Fault(kind, "put", "chk-1/")]), results)
    assert driver.run() == Over(None)
    assert driver.job.recovery.graph.generation == 1
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))
