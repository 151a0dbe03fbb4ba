"""A job that fails goes on from its newest checkpoint: no window is wrong, none is missing, wherever it failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from refimpl.checkpoint import CheckpointAborted, CheckpointCompleted, CheckpointFailureReason, CheckpointStatus
from refimpl.cluster import FixedDelayRestart, NoRestart
from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError, RemoteTransportError, RestoreRefusedError, SluiceError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import PICKLE, Fault, FaultKind, MemoryStore, read_table
from refimpl.task import IterableReader, ReaderFactory, SessionWindows, SlidingWindows, TumblingWindows, WindowAssigner
from tests.support.recovering_runs import held_back_once

STEP_MS = 0.2
WINDOWS = {"tumbling": TumblingWindows(10), "sliding": SlidingWindows(20, 10), "session": SessionWindows(7)}


class Count:
    """How many values there are in a window."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


def job(
    sink: Callable[[Any], object],
    windows: WindowAssigner = WINDOWS["tumbling"],
    num_records: int = 60,
    aggregate: Count | None = None,
    must_crash: bool = False,
    **options: Any,
) -> StreamEnvironment:
    """Numbers by key in windows, which two subtasks count; small buffers, and a barrier now and then.

    With `must_crash` its first attempt does not end by itself.
    """
    given: dict[str, Any] = {"checkpoint_interval_ms": 1, "source_batch": 4, "segment_size_bytes": 64, **options}
    environment = StreamEnvironment(Config(num_buffers=64, **given), parallelism=2)
    records = [StreamRecord((number % 5, number), number) for number in range(num_records)]
    whole: ReaderFactory = lambda *_: IterableReader(records)  # noqa: E731
    (
        environment.source(held_back_once(records) if must_crash else whole, name="numbers", parallelism=1)
        .assign_timestamps(lambda value: value[1], 3, every=4)
        .key_by(lambda value: value[0])
        .window(windows)
        .aggregate(aggregate or Count())
        .sink(sink)
    )
    return environment


def simulation(environment: StreamEnvironment, store: MemoryStore, **options: Any) -> Simulation:
    given = {"restart": FixedDelayRestart(9, 1.0), "step_ms": STEP_MS, **options}
    return Simulation(environment, store=store, **given)


def undisturbed(windows: WindowAssigner) -> list[Any]:
    """What the job gives when nothing happens to it."""
    results: list[Any] = []
    Simulation(job(results.append, windows), step_ms=STEP_MS).run()
    return results


def completed(run: Simulation) -> list[int]:
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    return [each.checkpoint.checkpoint_id for each in history if isinstance(each, CheckpointCompleted)]


def aborted(run: Simulation) -> list[CheckpointFailureReason]:
    assert run.recovery is not None
    return [each.reason for each in run.recovery.checkpoints.history if isinstance(each, CheckpointAborted)]


def went_on_from(run: Simulation) -> int | None:
    """The checkpoint of the last deployment."""
    assert run.recovery is not None
    recovered = run.recovery.checkpoints.recovered
    return None if recovered is None or recovered.manifest is None else recovered.manifest.checkpoint_id


# -- nothing happens -------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_checkpoints_change_no_result_and_leave_nothing(windows: str, num_task_managers: int) -> None:
    results: list[Any] = []
    store = MemoryStore()
    run = simulation(job(results.append, WINDOWS[windows]), store, num_task_managers=num_task_managers).run()
    assert sorted(results) == sorted(undisturbed(WINDOWS[windows]))
    assert completed(run)[0] == 1
    assert not [key for key in store.files if "chk-" in key]


def test_a_checkpoint_is_complete_when_its_manifest_is_there_and_not_before() -> None:
    store = MemoryStore()
    run = simulation(job(print), store)
    while not any(call.endswith("chk-1/_metadata") and call.startswith("put") for call in store.calls):
        assert completed(run) == []
        run.step()
    assert completed(run) == [1]
    keys = [call for call in store.calls if "chk-1/" in call and call.startswith("put")]
    assert len(keys) > 2
    assert keys[-1].endswith("_metadata")


def test_the_newest_checkpoints_are_kept() -> None:
    store = MemoryStore()
    run = simulation(job(lambda _: None, num_records=400, checkpoints_retained=2), store)
    while len(completed(run)) < 5:
        run.step()
    while run.recovery is not None and run.recovery.checkpoints.work:
        run.step(next(action for action in run.enabled() if str(action).startswith("store")))
    there = {key.split("/")[1] for key in store.files if key.endswith("/_metadata")}
    assert there == {"chk-4", "chk-5"}


# -- what is seen of them ----------------------------------------------------------------------------


def test_a_run_without_a_store_says_nothing_of_checkpoints() -> None:
    assert Simulation(job(print)).snapshot().checkpoints is None


def test_a_look_at_the_run_tells_what_became_of_its_checkpoints() -> None:
    store = MemoryStore()
    run = simulation(job(lambda _: None, num_records=400), store)
    while len(completed(run)) < 2:
        run.step()
    seen = run.snapshot().checkpoints
    assert seen is not None
    newest = next(each for each in seen.history if each.checkpoint_id == 2)
    keys = [key for key in store.files if "/chk-2/" in key and key.endswith(".state")]
    assert newest.state_bytes == sum(len(store.files[key]) for key in keys) > 0
    assert [each.task for each in newest.subtasks] == [task.name for task in run.snapshot().tasks]
    assert [each.task for each in newest.subtasks if each.alignment_ms is None] == ["numbers-0"]
    assert max(each.alignment_ms or 0.0 for each in newest.subtasks) > 0
    assert all(newest.triggered_ms <= (each.acked_ms or 0) <= (newest.ended_ms or 0) for each in newest.subtasks)
    run.crash()
    while run.enabled() and went_on_from(run) is None:
        run.step()
    assert went_on_from(run) == 2
    run.run()
    seen = run.snapshot().checkpoints
    assert seen is not None
    assert seen.latest_restored is not None
    assert (seen.latest_restored.checkpoint_id, seen.counts.num_restored) == (2, 1)
    assert seen.counts.num_completed == len(completed(run))
    assert seen.counts.num_failed == len(aborted(run))
    assert seen.counts.num_in_progress == 0
    assert all(each.is_discarded for each in seen.history if each.status is CheckpointStatus.COMPLETED)


# -- a crash, anywhere -----------------------------------------------------------------------------


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("mode", CheckpointingMode)
def test_a_crash_after_any_step_loses_nothing_and_makes_nothing_wrong(windows: str, mode: CheckpointingMode) -> None:
    """With barriers aligned no window is wrong; at least once some count too much, and none counts too little."""
    expected = undisturbed(WINDOWS[windows])
    sources = set()
    num_wrong = num_steps = 0
    while True:
        results: list[Any] = []
        run = simulation(job(results.append, WINDOWS[windows], checkpointing_mode=mode), MemoryStore())
        run.run(num_steps)
        if run.is_done:
            break
        run.crash()
        run.run()
        sources.add(went_on_from(run))
        assert {each[:3] for each in results} == {each[:3] for each in expected}, num_steps
        wrong = set(results) - set(expected)
        num_wrong += len(wrong)
        assert mode is CheckpointingMode.AT_LEAST_ONCE or not wrong, num_steps
        num_steps += 3
    assert {None, 1, 2} <= sources


def test_many_crashes_one_after_the_other() -> None:
    results: list[Any] = []
    run = simulation(job(results.append), MemoryStore())
    for _ in range(6):
        run.run(25)
        if not run.is_done:
            run.crash()
    run.run()
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))


def test_user_code_that_fails_once_is_met_again_and_passes() -> None:
    results, failures = list[Any](), iter([True])

    def sink(result: Any) -> None:
        if len(results) == 12 and next(failures, False):
            raise OSError("the disk is full")
        results.append(result)

    simulation(job(sink), MemoryStore()).run()
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))


def test_user_code_that_always_fails_ends_the_job_after_so_many_restarts() -> None:
    def sink(result: Any) -> None:
        raise OSError("no disk")

    run = simulation(job(sink), MemoryStore(), restart=FixedDelayRestart(2, 1.0))
    with pytest.raises(UserCodeError, match="no disk"):
        run.run()
    assert run.recovery is not None
    assert run.recovery.graph.generation == 2


def test_without_restarts_the_first_failure_is_the_last() -> None:
    run = simulation(job(print), MemoryStore(), restart=NoRestart())
    run.run(20)
    with pytest.raises(RemoteTransportError, match="crashed"):
        run.crash()
    assert run.is_closed


def test_a_job_that_is_over_cannot_be_crashed() -> None:
    run = simulation(job(lambda _: None), MemoryStore()).run()
    with pytest.raises(LocalUsageError, match="over"):
        run.crash()
    assert run.is_done


# -- the store fails -------------------------------------------------------------------------------

FAULTS = [
    Fault(kind, "put", within, number)
    for kind in (FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.NO_SPACE)
    for within in ("chk-1/", "chk-2/", "chk-1/_metadata", "chk-2/_metadata")
    for number in (1, 2)
    if number == 1 or not within.endswith("_metadata")
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("tolerable", [0, 5])
def test_a_store_that_fails_once_costs_a_checkpoint_at_most(fault: Fault, tolerable: int) -> None:
    results: list[Any] = []
    run = simulation(job(results.append, tolerable_failed_checkpoints=tolerable), MemoryStore([fault])).run()
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))
    is_of_manifest = fault.within.endswith("_metadata")
    assert bool(aborted(run)) is not (is_of_manifest and fault.kind is FaultKind.LOSE_ANSWER)
    assert run.recovery is not None
    # Only what a task could not write counts against the job.
    assert bool(run.recovery.graph.generation) is not (is_of_manifest or tolerable > 0)


@pytest.mark.parametrize("kind", [FaultKind.FLIP, FaultKind.TRUNCATE])
@pytest.mark.parametrize("within", ["chk-2/_metadata", "chk-2/"])
def test_a_damaged_checkpoint_is_left_and_the_one_before_is_taken(kind: FaultKind, within: str) -> None:
    results: list[Any] = []
    store = MemoryStore([Fault(kind, "put", within)])
    run = simulation(job(results.append, num_records=200, checkpoints_retained=3), store)
    while 2 not in completed(run):
        run.step()
    run.crash()
    while went_on_from(run) is None:
        run.step()
    assert went_on_from(run) == 1
    assert run.recovery is not None
    assert run.recovery.checkpoints.recovered is not None
    assert "chk-2/" in run.recovery.checkpoints.recovered.problems[0]
    run.run()
    undamaged: list[Any] = []
    Simulation(job(undamaged.append, num_records=200)).run()
    assert set(results) == set(undamaged)


@pytest.mark.parametrize("call", ["list", "get"])
def test_a_store_that_fails_while_the_job_begins_again_is_asked_once_more(call: str) -> None:
    results: list[Any] = []
    store = MemoryStore()
    run = simulation(job(results.append), store)
    while not completed(run):
        run.step()
    run.crash()
    store.faults.append(Fault(FaultKind.FAIL, call))
    run.run()
    assert run.recovery is not None
    assert run.recovery.graph.generation == 2
    assert went_on_from(run) is not None
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))


def test_a_job_with_checkpoints_of_which_none_is_sound_does_not_start_empty() -> None:
    store = MemoryStore([Fault(FaultKind.FLIP, "put", "chk-1/_metadata")])
    run = simulation(job(print), store)
    while 1 not in completed(run):
        run.step()
    run.crash()
    with pytest.raises(RestoreRefusedError, match="chk-1/_metadata"):
        run.run()


# -- another run -----------------------------------------------------------------------------------


def test_another_run_goes_on_where_the_last_one_was_left() -> None:
    results: list[Any] = []
    store = MemoryStore()
    with simulation(job(results.append), store) as left:
        while not completed(left):
            left.step()
    before = list(results)
    run = simulation(job(results.append), store)
    assert went_on_from(run) == 1
    run.run()
    assert set(results) == set(undisturbed(WINDOWS["tumbling"]))
    assert min(completed(run)) > 1
    assert len(results) - len(before) < len(undisturbed(WINDOWS["tumbling"])) + 10


class PickledCount(Count):
    """A count that is kept as whatever can be pickled."""

    accumulator_type = PICKLE


def test_what_another_run_has_pickled_is_read_only_by_who_trusts_it() -> None:
    store = MemoryStore()
    with simulation(job(print, aggregate=PickledCount()), store) as left:
        while not completed(left):
            left.step()
        left.crash()
        left.run(60)  # its own it reads
    with pytest.raises(RestoreRefusedError, match="trust_pickle"):
        simulation(job(print, aggregate=PickledCount()), store)
    assert simulation(job(lambda _: None, aggregate=PickledCount()), store, trust_pickle=True).run().is_done


def test_a_run_that_has_lost_its_lead_stops() -> None:
    store = MemoryStore()
    old = simulation(job(print), store)
    while not completed(old):
        old.step()
    simulation(job(print), store)
    with pytest.raises(SluiceError, match="is led by epoch 2"):
        old.run()


def test_what_a_leader_that_was_killed_has_left_unfinished_goes_with_the_first_checkpoint_of_the_next() -> None:
    store = MemoryStore()
    left = simulation(job(print, num_records=200), store)
    while not any(key.startswith("job/chk-3/") for key in store.files):
        left.step()
    unfinished = {key for key in store.files if key.startswith("job/chk-3/")}
    run = simulation(job(lambda _: None, num_records=200), store)
    assert unfinished <= store.files.keys()
    while not [each for each in completed(run) if each > 3] or (run.recovery and run.recovery.checkpoints.work):
        run.step()
    assert not unfinished & store.files.keys()


def test_a_manifest_of_which_nobody_knows_whether_it_counts_is_not_deleted_by_who_has_lost_the_lead() -> None:
    """The claim of the next leader is there, and no record yet: it may be about to choose this one."""
    store = MemoryStore()
    run = simulation(job(print), store)
    assert run.recovery is not None
    checkpoints = run.recovery.checkpoints
    while not (checkpoints.work and "_metadata" in checkpoints.work[0].what):
        run.step()
    store.put("job/leader-2.claim", [b"{}"])
    work = checkpoints.work.popleft()
    work.then(work.call(), run.time_ms)
    assert "job/chk-1/_metadata" in store.files
    while checkpoints.work:  # as a driver does that has a thread for it
        checkpoints.work.popleft().do()
    assert "job/chk-1/_metadata" in store.files
    assert simulation(job(print), store, restart=NoRestart()).recovery is not None


def test_a_savepoint_stays_and_another_job_can_begin_with_it() -> None:
    results: list[Any] = []
    store = MemoryStore()
    run = simulation(job(results.append), store)
    run.run(30)
    assert run.recovery is not None
    request = run.savepoint("before the sale")
    run.run()
    told = [each.request for each in run.recovery.checkpoints.history if isinstance(each, CheckpointCompleted)]
    assert request in told
    assert [key for key in store.files if key.endswith("/_metadata")] == ["job/sp-before%20the%20sale/_metadata"]


def test_a_savepoint_of_a_name_that_is_taken_is_refused_and_harms_nothing() -> None:
    store = MemoryStore()
    run = simulation(job(lambda _: None, num_records=200), store)
    run.run(30)
    assert run.recovery is not None
    run.savepoint("one")
    with pytest.raises(LocalUsageError, match="'one' already"):
        run.savepoint("one")
    while "job/sp-one/_metadata" not in store.files:
        run.step()
    with pytest.raises(LocalUsageError, match="'one' already"):
        run.savepoint("one")
    assert run.run().recovery is not None
    assert run.recovery.graph.generation == 0


def test_what_a_job_that_has_failed_for_ever_leaves_is_there_for_another_run() -> None:
    store = MemoryStore()
    run = simulation(job(lambda _: None), store, restart=NoRestart())
    while not completed(run):
        run.step()
    with pytest.raises(RemoteTransportError):
        run.crash()
    assert run.recovery is not None
    assert not run.recovery.checkpoints.work, "nothing is to be deleted"
    assert went_on_from(simulation(job(lambda _: None), store)) == 1


def test_two_operators_of_one_uid_are_refused_before_anything_runs() -> None:
    environment = StreamEnvironment(Config())
    environment.from_collection([1]).map(abs).map(abs, name="again").uid("map").sink(print)
    with pytest.raises(LocalUsageError, match=r"several operators are called 'map'.*uid"):
        Simulation(environment, store=MemoryStore())


# -- packed state ----------------------------------------------------------------------------------


def gone_on(*, is_packed: bool) -> tuple[list[Any], set[str]]:
    """What a job gives that goes on from one which kept its state so; and how that was packed."""
    store = MemoryStore()
    first = simulation(job(lambda _: None, num_records=400, snapshot_compression=is_packed), store)
    while len(completed(first)) < 3:
        first.step()
    files = [key for key in store.list("job/chk-") if key.endswith(".state")]
    codecs = set[str]()
    for key in files:
        codecs |= {entry.codec for entry in read_table(partial(store.get, key), store.size(key), key)}
    results: list[Any] = []
    second = simulation(job(results.append, num_records=400), store)
    second.run()
    assert went_on_from(second) == 3
    return results, codecs


def test_packed_state_is_gone_on_from_whatever_the_option_says_by_then() -> None:
    plain, packed = gone_on(is_packed=False), gone_on(is_packed=True)
    assert plain[1] == {""}
    assert "zlib" in packed[1]
    assert packed[0] == plain[0]
