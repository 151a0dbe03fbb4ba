"""A job on threads or in a loop that fails goes on from its newest checkpoint: what holds in the simulation does here.

Where something happens to a run it is at a call of the store or of the user's code, so that no test waits for a time.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from refimpl.checkpoint import CheckpointAborted, CheckpointCompleted
from refimpl.cluster import FixedDelayRestart, NoRestart
from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import AsyncRun, Simulation, ThreadedRun
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import LocalUsageError, RemoteTransportError, RestoreRefusedError, SluiceError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import Fault, FaultKind, MemoryStore
from tests import test_checkpoints, test_exactly_once
from tests.support.driver_rig import nothing_left, num_out
from tests.support.recovering_runs import (
    DRIVERS,
    Run,
    StoreWithEvents,
    crashing,
    held_back_once,
    manifests_in,
    of_checkpoints,
    recovering,
    went_on_from,
)
from tests.test_checkpoints import FAULTS, WINDOWS, job
from tests.test_exactly_once import Collect, Outside, committed, sinks, squares

SEEDS = range(4)

pytestmark = pytest.mark.parametrize("driver", DRIVERS)


def crashing_at(key_end: str, crash: Callable[[], object]) -> Callable[[str], None]:
    """For a store: crash when something so called has been put."""

    def put(key: str) -> None:
        if key.endswith(key_end):
            crash()

    return put


class LostError(Exception):
    """What a test has done, and no strategy allows for."""


@cache
def undisturbed(windows: str = "tumbling", num_records: int = 60) -> list[Any]:
    """What the job gives when nothing happens to it."""
    results: list[Any] = []
    Simulation(job(results.append, WINDOWS[windows], num_records), check_every=0).run()
    return results


# -- a crash, anywhere -----------------------------------------------------------------------------


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("windows", WINDOWS)
def test_crashes_at_some_puts_lose_nothing_and_make_nothing_wrong(driver: str, windows: str) -> None:
    expected = set(undisturbed(windows))
    for seed in SEEDS:
        print(f"seed {seed}")
        results: list[Any] = []
        with nothing_left():
            run, _ = crashing(driver, job(results.append, WINDOWS[windows]), Random(seed), most_puts=16)
            assert num_out(*run.deployments) == 0
        assert set(results) == expected, seed


def test_at_least_once_some_count_too_much_and_none_too_little(driver: str) -> None:
    expected = undisturbed()
    for seed in SEEDS:
        results: list[Any] = []
        mode = CheckpointingMode.AT_LEAST_ONCE
        crashing(driver, job(results.append, checkpointing_mode=mode), Random(seed), most_puts=16)
        assert {each[:3] for each in results} == {each[:3] for each in expected}, seed
        counts = {each[:3]: each[3] for each in expected}
        assert all(each[3] >= counts[each[:3]] for each in results), seed


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("name", ["buckets", "join", "with_rules"])
def test_what_a_process_function_remembers_survives(driver: str, name: str) -> None:
    """What timers of processing time give is left out: how many fire before the end is a matter of the clock."""
    make: Callable[[Collect], StreamEnvironment] = getattr(test_exactly_once, name)
    wanted: list[Any] = []
    test_exactly_once.simulation(make(wanted.append)).run()
    expected = {each for each in wanted if each[0] != "after"}
    for seed in SEEDS:
        print(f"seed {seed}")
        results: list[Any] = []
        crashing(driver, make(results.append), Random(seed), most_puts=14)
        assert {each for each in results if each[0] != "after"} == expected, seed


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("seed", range(6))
def test_crashes_commit_every_value_once(driver: str, seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    outside: Outside = [], tmp_path
    with nothing_left():
        run, _ = crashing(driver, sinks(outside, 200), Random(seed))
        assert num_out(*run.deployments) == 0
    assert committed(outside) == squares(200)
    assert run.recovery is not None
    assert run.recovery.graph.generation > 0


@pytest.mark.parametrize("interval_ms", [0, 1])
def test_an_undisturbed_run_commits_all_at_the_latest_at_its_end(driver: str, interval_ms: int, tmp_path: Path) -> None:
    outside: Outside = [], tmp_path / "out"
    with nothing_left():
        environment = sinks(outside, 60, checkpoint_interval_ms=interval_ms)
        store = FileStore(tmp_path / "store", fsync=False)
        run = recovering(driver, environment, store)
        run.run()
    assert committed(outside) == squares(60)
    assert of_checkpoints(store) == []
    assert run.is_done


# -- user code -------------------------------------------------------------------------------------


def failing(results: list[Any], times: int) -> Callable[[Any], None]:
    left = iter(range(times))

    def sink(result: Any) -> None:
        if len(results) >= 12 and next(left, None) is not None:
            raise OSError("the disk is full")
        results.append(result)

    return sink


def test_user_code_that_fails_once_is_met_again_and_passes(driver: str) -> None:
    results: list[Any] = []
    run = recovering(driver, job(failing(results, 1)), MemoryStore())
    run.run()
    assert set(results) == set(undisturbed())
    assert run.recovery is not None
    assert run.recovery.graph.generation == 1


def test_user_code_that_always_fails_ends_the_job_after_so_many_restarts(driver: str) -> None:
    with nothing_left():
        run = recovering(driver, job(failing([], 0) and failing([0] * 12, 99)), MemoryStore(), restart=twice())
        with pytest.raises(UserCodeError, match="the disk is full"):
            run.run()
        assert num_out(*run.deployments) == 0
    assert run.is_done
    assert run.recovery is not None
    assert run.recovery.graph.generation == 2


def twice() -> FixedDelayRestart:
    return FixedDelayRestart(2, 0.0)


def test_what_a_job_that_has_failed_for_ever_leaves_is_there_for_another_run(driver: str) -> None:
    results = list[Any]()
    store = StoreWithEvents(MemoryStore(), after=crashing_at("chk-1/_metadata", lambda: run.crash()))
    run = recovering(driver, job(results.append, num_records=400, must_crash=True), store, restart=NoRestart())
    with pytest.raises(RemoteTransportError, match="crashed"):
        run.run()
    assert {key.split("/")[1] for key in of_checkpoints(store)} == {"chk-1"}, "and no file that no manifest names"
    again = recovering(driver, job(results.append, num_records=400), store)
    assert went_on_from(again) == 1
    again.run()
    assert set(results) == set(undisturbed(num_records=400))


# -- the store -------------------------------------------------------------------------------------


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("tolerable", [0, 5])
def test_a_store_that_fails_once_costs_a_checkpoint_at_most(driver: str, tolerable: int) -> None:
    for fault in FAULTS:
        results: list[Any] = []
        environment = job(results.append, tolerable_failed_checkpoints=tolerable)
        run = recovering(driver, environment, MemoryStore([fault]))
        run.run()
        assert set(results) == set(undisturbed()), fault


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.NO_SPACE])
def test_a_fault_at_some_put_and_crashes_commit_every_value_once(driver: str, kind: FaultKind, tmp_path: Path) -> None:
    for seed in SEEDS:
        print(f"seed {seed}")
        rng = Random(seed)
        outside: Outside = [], tmp_path / str(seed)
        faults = [Fault(kind, "put", "chk-", rng.randrange(1, 20))]
        run = StoreWithEvents(MemoryStore(faults))
        made = recovering(driver, sinks(outside, 60), run)
        run.events = {rng.randrange(1, 20): lambda _key, made=made: made.crash()}
        made.run()
        assert committed(outside) == squares(60), seed


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("kind", [FaultKind.FLIP, FaultKind.TRUNCATE])
@pytest.mark.parametrize("within", ["chk-2/_metadata", "chk-2/"])
def test_a_damaged_checkpoint_is_left_and_the_one_before_is_taken(driver: str, kind: FaultKind, within: str) -> None:
    results, problems = list[Any](), list[str]()
    crash = crashing_at("chk-2/_metadata", lambda: run.crash())
    store = StoreWithEvents(MemoryStore([Fault(kind, "put", within)]), after=crash)
    environment = job(results.append, num_records=400, must_crash=True, checkpoints_retained=3)
    run = recovering(driver, environment, store)
    run.run()
    assert run.recovery is not None
    assert run.recovery.checkpoints.recovered is not None
    problems += run.recovery.checkpoints.recovered.problems
    assert went_on_from(run) == 1
    assert "chk-2/" in problems[0]
    assert set(results) == set(undisturbed(num_records=400))


def test_a_job_with_checkpoints_of_which_none_is_sound_does_not_start_empty(driver: str) -> None:
    store = StoreWithEvents(
        MemoryStore([Fault(FaultKind.FLIP, "put", "chk-1/_metadata")]),
        after=crashing_at("chk-1/_metadata", lambda: run.crash()),
    )
    with nothing_left():
        run = recovering(driver, job(lambda _: None, num_records=400, must_crash=True), store)
        with pytest.raises(RestoreRefusedError, match="chk-1/_metadata"):
            run.run()
        assert num_out(*run.deployments) == 0


def test_what_no_store_may_raise_ends_the_run_with_it(driver: str) -> None:
    def lose(_key: str) -> None:
        raise LostError("in the store")

    with nothing_left():
        run = recovering(driver, job(lambda _: None), StoreWithEvents(MemoryStore(), {2: lose}))
        with pytest.raises(LostError, match="in the store"):
            run.run()
        assert num_out(*run.deployments) == 0
    assert run.is_done


def test_a_slow_store_keeps_no_task_waiting(driver: str) -> None:
    """The first put returns when the sink has had everything that comes before the end."""
    results, has_all = list[Any](), threading.Event()

    def sink(value: int) -> None:
        results.append(value)
        if len(results) == 100:
            has_all.set()

    environment = test_exactly_once.environment()
    environment.from_collection(range(100)).map(abs).rebalance().sink(sink)
    run = recovering(driver, environment, StoreWithEvents(MemoryStore(), {1: lambda _key: has_all.wait(60)}))
    run.run()
    assert has_all.is_set()
    assert set(results) == set(range(100))


def test_a_run_that_has_lost_its_lead_stops(driver: str) -> None:
    store = StoreWithEvents(MemoryStore())

    def take_over(key: str) -> None:
        recovering(driver, job(lambda _: None), store, job="job")

    store.events = {1: take_over}
    run = recovering(driver, job(lambda _: None), store)
    with nothing_left(), pytest.raises(SluiceError, match="is led by epoch 2"):
        run.run()


# -- another run, and savepoints -------------------------------------------------------------------


def test_another_run_at_another_parallelism_commits_what_the_first_has_left(driver: str, tmp_path: Path) -> None:
    values = held_back_once(range(400))  # for both runs: it is the first one that has to be crashed

    def numbers(parallelism: int) -> StreamEnvironment:
        made = test_exactly_once.environment()
        stream = made.source(values, "numbers", parallelism=1)
        stream.sink_to(FileSink(tmp_path), name="files").set_parallelism(parallelism)
        return made

    store = StoreWithEvents(MemoryStore(), after=crashing_at("chk-2/_metadata", lambda: left.crash()))
    left = recovering(driver, numbers(2), store, restart=NoRestart())
    with pytest.raises(RemoteTransportError):
        left.run()
    again = recovering(driver, numbers(3), store)
    assert went_on_from(again) == 2
    again.run()
    assert committed(([], tmp_path))[1] == list(range(400))


def test_what_another_run_has_pickled_is_read_only_by_who_trusts_it(driver: str) -> None:
    has_counted, since_then = threading.Event(), list[str]()

    class Counting(test_checkpoints.PickledCount):
        def add(self, value: object, accumulator: Any) -> Any:
            has_counted.set()
            return super().add(value, accumulator)

    def pickled(*, must_crash: bool = False) -> StreamEnvironment:
        return job(lambda _: None, num_records=400, aggregate=Counting(), must_crash=must_crash)

    def put(key: str) -> None:
        if key.endswith("/_metadata") and has_counted.is_set():
            since_then.append(key)
            if len(since_then) == 2:  # the first one may be of a time at which nothing was counted yet
                left.crash()

    store = StoreWithEvents(MemoryStore(), after=put)
    left = recovering(driver, pickled(must_crash=True), store, restart=NoRestart())
    with pytest.raises(RemoteTransportError):
        left.run()
    with pytest.raises(RestoreRefusedError, match="trust_pickle"):
        recovering(driver, pickled(), store)
    assert recovering(driver, pickled(), store, trust_pickle=True).run().is_done


def test_a_savepoint_stays_and_another_job_can_begin_with_it(driver: str) -> None:
    asked, has_asked = list[Any](), iter([True])

    def ask(value: Any) -> None:
        if next(has_asked, False):
            asked.append(run.savepoint("before the sale"))
            with pytest.raises(LocalUsageError, match="'before the sale' already"):
                run.savepoint("before the sale")

    environment = test_exactly_once.environment(checkpoint_interval_ms=0)
    environment.from_collection(range(400), name="numbers").rebalance().sink(ask)
    store = MemoryStore()
    run = recovering(driver, environment, store)
    run.run()
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    told = [each.request for each in history if isinstance(each, CheckpointCompleted)]
    assert asked[0] in told, [each for each in history if isinstance(each, CheckpointAborted)]
    assert manifests_in(store) == ["job/sp-before%20the%20sale/_metadata"]
    with pytest.raises(LocalUsageError, match="no task runs"):
        run.savepoint("too late")
    assert went_on_from(recovering(driver, environment, store)) is None
    with pytest.raises(RestoreRefusedError, match="sp-another/_metadata"):
        recovering(driver, environment, store, savepoint="another")
    again = recovering(driver, environment, store, savepoint="before the sale")
    assert went_on_from(again) is not None
    with pytest.raises(LocalUsageError, match="no task runs"):
        again.savepoint("too early")


class WhoCalls(MemoryStore):
    """A store that notes the threads it is called on."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = set[int]()

    def list(self, prefix: str) -> Sequence[str]:
        self.threads.add(threading.get_ident())
        return super().list(prefix)


def test_who_asks_for_a_savepoint_does_not_wait_for_the_store(driver: str) -> None:
    """It may be the one thread on which all tasks run."""
    store, asked = WhoCalls(), list[Any]()

    def ask(value: Any) -> None:
        if not asked:
            store.threads.clear()
            asked.append(run.savepoint("one"))
            assert threading.get_ident() not in store.threads

    environment = test_exactly_once.environment(checkpoint_interval_ms=0)
    environment.from_collection(range(400), name="numbers").rebalance().sink(ask)
    run = recovering(driver, environment, store)
    assert run.run().is_done
    assert manifests_in(store) == ["job/sp-one/_metadata"]


def test_without_a_store_there_is_no_savepoint(driver: str) -> None:
    make, num_task_managers = DRIVERS[driver]
    run = make(job(print), num_task_managers=num_task_managers)
    with run, pytest.raises(LocalUsageError, match=r"without a store: \w+Run\(job, store="):
        run.savepoint("one")


def test_two_operators_of_one_uid_are_refused_before_anything_runs(driver: str) -> None:
    environment = StreamEnvironment(Config(), parallelism=2)
    environment.from_collection([1]).map(abs).map(abs, name="again").uid("map").sink(print)
    with pytest.raises(LocalUsageError, match=r"several operators are called 'map'.*uid"):
        recovering(driver, environment, MemoryStore())


# -- the end of a run from outside -----------------------------------------------------------------


class AnHour(FixedDelayRestart):
    """An hour's delay; `on_failure` is called when it begins."""

    def __init__(self, on_failure: Callable[[], object]) -> None:
        super().__init__(9, 3_600_000.0)
        self._on_failure = on_failure

    def can_restart(self, now_ms: float) -> bool:
        self._on_failure()
        return super().can_restart(now_ms)


def cancelled_when(run: Run, has_come: threading.Event) -> None:
    """Run until that has come, then cancel; the wait for the end begins before."""
    if isinstance(run, ThreadedRun):
        run.start()
        assert has_come.wait(60)
        assert not run.join(0.0)
        run.cancel()
        assert run.join()
        return

    async def cancel(run: AsyncRun) -> None:
        executing = asyncio.create_task(run.execute())
        assert await asyncio.to_thread(has_come.wait, 60)
        executing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await executing

    asyncio.run(cancel(run))


def test_a_run_that_waits_for_its_restart_can_be_cancelled(driver: str) -> None:
    with nothing_left():
        fails = threading.Event()
        run = recovering(driver, job(failing([0] * 12, 1)), MemoryStore(), restart=AnHour(fails.set))
        cancelled_when(run, fails)
        assert num_out(*run.deployments) == 0
    assert run.is_done


class Endless:
    """Reads numbers for ever; `closed` is set at the end."""

    def __init__(self, closed: threading.Event) -> None:
        self.position = 0
        self.closed = closed

    def seek(self, position: int) -> None:
        self.position = position

    def read(self, max_records: int) -> Sequence[StreamRecord]:
        numbers = range(self.position, self.position + max_records)
        self.position = numbers.stop
        return [StreamRecord(number) for number in numbers]

    def close(self) -> None:
        self.closed.set()


def endless(closed: threading.Event) -> StreamEnvironment:
    environment = test_exactly_once.environment()
    environment.source(lambda *_: Endless(closed), "numbers").rebalance().sink(lambda _: None)
    return environment


def test_a_run_can_be_cancelled_while_its_store_is_called(driver: str) -> None:
    """The call returns when the tasks are no more, and what it has put is deleted again."""
    with nothing_left():
        is_called, closed = threading.Event(), threading.Event()

        def hold(_key: str) -> None:
            is_called.set()
            assert closed.wait(60)

        store = StoreWithEvents(MemoryStore(), {1: hold})
        run = recovering(driver, endless(closed), store)
        cancelled_when(run, is_called)
        assert num_out(*run.deployments) == 0
    assert of_checkpoints(store) == []


def run_with(run: Run, cancel: list[Callable[[], object]]) -> None:
    """Run to the end, which is a cancellation; `cancel` gets how to cancel it from any thread."""
    if isinstance(run, ThreadedRun):
        cancel.append(run.cancel)
        run.run()
        return

    async def execute(run: AsyncRun) -> None:
        executing = asyncio.current_task()
        assert executing is not None
        cancel.append(partial(asyncio.get_running_loop().call_soon_threadsafe, executing.cancel))
        await run.execute()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(execute(run))


@pytest.mark.parametrize("where", ["sink", "store"])
def test_a_run_can_be_cancelled_from_its_own_threads(driver: str, where: str) -> None:
    """Nobody waits for himself."""
    with nothing_left():
        calls, cancel = list[threading.Thread](), list[Callable[[], object]]()

        def call(_value: object) -> None:
            if not calls:
                calls.append(threading.current_thread())
                cancel[0]()

        environment = test_exactly_once.environment()
        stream = environment.source(lambda *_: Endless(threading.Event()), "numbers").rebalance()
        stream.sink(call if where == "sink" else lambda _: None)
        store = StoreWithEvents(MemoryStore(), {1: call if where == "store" else lambda _: None})
        run = recovering(driver, environment, store)
        run_with(run, cancel)
        assert num_out(*run.deployments) == 0
        if calls[0] is not threading.main_thread():
            calls[0].join(60)
    assert run.is_done


class Breaking(deque[Any]):
    """A history that takes nothing from whoever calls the store."""

    def append(self, value: Any) -> None:
        if threading.current_thread().name != "job master":
            raise LostError("nothing is taken")


def test_what_breaks_where_an_answer_of_the_store_is_taken_ends_the_run(driver: str) -> None:
    with nothing_left():
        run = recovering(driver, job(lambda _: None, num_records=400), MemoryStore())
        assert run.recovery is not None
        cast("Any", run.recovery.checkpoints).history = Breaking()
        with pytest.raises(LostError, match="nothing is taken"):
            run.run()
        assert num_out(*run.deployments) == 0
    assert run.is_done


def test_what_a_sink_leaves_and_cannot_be_removed_is_the_error_of_the_run(driver: str) -> None:
    """The job is done all the same, and does not begin again."""

    def fail() -> None:
        raise OSError("read-only file system")

    results: list[int] = []
    environment = test_exactly_once.environment()
    stream = environment.from_collection(range(40)).rebalance().sink(results.append, exactly_once=True)
    stream.node.on_job_finished = fail
    with nothing_left():
        run = recovering(driver, environment, MemoryStore())
        with pytest.raises(OSError, match="read-only"):
            run.run()
    assert sorted(results) == list(range(40))
    assert run.is_done


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_ctrl_c_ends_a_run_that_waits_for_its_restart(driver: str) -> None:
    with nothing_left():
        run = recovering(driver, job(failing([0] * 12, 1)), MemoryStore(), restart=AnHour(press_ctrl_c))
        with pytest.raises(KeyboardInterrupt):
            run.run()
        assert num_out(*run.deployments) == 0
    assert run.is_done


def test_ctrl_c_ends_a_run_whose_store_is_called(driver: str) -> None:
    with nothing_left():
        closed = threading.Event()

        def hold(_key: str) -> None:
            press_ctrl_c()
            assert closed.wait(60)

        store = StoreWithEvents(MemoryStore(), {3: hold})
        run = recovering(driver, endless(closed), store)
        with pytest.raises(KeyboardInterrupt):
            run.run()
        assert num_out(*run.deployments) == 0
    assert {key.split("/")[1] for key in of_checkpoints(store)} == {key.split("/")[1] for key in manifests_in(store)}


def test_a_run_that_was_never_started_gives_everything_back(driver: str) -> None:
    with nothing_left():
        with recovering(driver, job(print), MemoryStore()) as run:
            assert not run.is_done
        assert num_out(*run.deployments) == 0


REFUSED = {
    "threads": [("store", 1), ("job master", 1), ("numbers-0", 1), ("numbers-0", 2)],
    "loop": [("store", 1), ("store", 2)],
}
"""Names of threads, and which of that name the system refuses."""


def test_a_thread_that_the_system_refuses_ends_the_run_with_the_reason(
    driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    for name, number in REFUSED[driver.partition("-")[0]]:
        starts: list[str] = []

        def refuse(thread: threading.Thread, name: str = name, number: int = number, starts: Any = starts) -> None:
            starts.append(thread.name)
            if thread.name == name and starts.count(name) == number:
                raise RuntimeError("can't start new thread")
            start(thread)

        with nothing_left():
            run = recovering(driver, job(failing([0] * 12, 1)), MemoryStore())
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", refuse)
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    run.run()
            assert num_out(*run.deployments) == 0
        assert run.is_done, name
