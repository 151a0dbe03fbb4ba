"""A job on processes that fails goes on from its newest checkpoint, whichever process is killed; nothing is left."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from refimpl.checkpoint import CheckpointCompleted
from refimpl.cluster import FixedDelayRestart, NoRestart
from refimpl.config import Config
from refimpl.drivers import ProcessRun
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import (
    LocalUsageError,
    NoSuchKeyError,
    RemoteTransportError,
    RestoreRefusedError,
    StoreError,
    UserCodeError,
)
from refimpl.job import StreamEnvironment
from refimpl.job.data_stream import DataStream
from refimpl.records import StreamRecord
from refimpl.state import MemoryStore
from refimpl.task import TumblingWindows
from tests.support.driver_rig import TIMEOUT_S, Tally, nothing_left
from tests.support.polling import until
from tests.support.small_jobs import Count

pytestmark = pytest.mark.slow

NUM_KEYS, SIZE = 5, 10
NUM_RECORDS = 600
LONG_S = 3 * TIMEOUT_S
AT_ONCE = FixedDelayRestart(99, 0.0)


@dataclass(frozen=True)
class Numbers:
    """Readers of the first half of the numbers, and of the others as soon as the file `go` is there."""

    go: Path

    def __call__(self, _subtask: int, _parallelism: int) -> _Reader:
        return _Reader(self.go)


class _Reader:
    def __init__(self, go: Path) -> None:
        self.position = 0
        self._go = go

    def seek(self, position: int) -> None:
        self.position = position

    def read(self, max_records: int) -> Sequence[StreamRecord] | None:
        if self.position >= NUM_RECORDS:
            return None
        may_go_on = self._go.exists()
        until = min(NUM_RECORDS if may_go_on else NUM_RECORDS // 2, self.position + max_records)
        numbers = range(self.position, until)
        self.position = until
        return [StreamRecord((number % NUM_KEYS, number), number) for number in numbers]

    def close(self) -> None: ...


EXPECTED = Counter(
    (key, start, start + SIZE, SIZE // NUM_KEYS) for key in range(NUM_KEYS) for start in range(0, NUM_RECORDS, SIZE)
)


def counted(results: Iterable[Any]) -> Counter[Any]:
    return Counter(map(tuple, results))


class Case:
    """A job of `folder`: numbers by key, counted in windows, of which `function` sees each number."""

    def __init__(self, folder: Path) -> None:
        self.results = Tally()
        self.go = folder / "go"
        self.store = FileStore(folder / "store", fsync=False)

    def job(
        self,
        function: Callable[[Any], Any] = lambda value: value,
        parallelism: int = 2,
        exactly_once: bool = True,
        sink: Callable[[Any], object] | None = None,
        **options: Any,
    ) -> StreamEnvironment:
        given = {"checkpoint_interval_ms": 10, "source_batch": 8, "max_parallelism": 128, **options}
        config = Config(segment_size_bytes=256, num_buffers=80, **given)
        environment = StreamEnvironment(config, parallelism)
        windows = (
            environment.source(Numbers(self.go), "numbers", parallelism=1)
            .assign_timestamps(lambda value: value[1], 3, every=4)
            .rebalance()
            .map(function, name="function")
            .key_by(lambda value: value[0])
            .window(TumblingWindows(SIZE))
            .aggregate(Count())
        )
        windows.sink(sink or self.results, exactly_once=exactly_once)
        return environment

    def run(
        self, environment: StreamEnvironment | None = None, num_task_managers: int = 2, **options: Any
    ) -> ProcessRun:
        given = {"store": self.store, "restart": AT_ONCE, **options}
        return ProcessRun(environment or self.job(), num_task_managers, **given)

    @property
    def files(self) -> list[str]:
        """What is in the store of checkpoints, temporary files too."""
        return [str(path) for path in self.store.folder.rglob("*") if path.is_file() and "leader-" not in path.name]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def stream_of(environment: StreamEnvironment, name: str) -> DataStream:
    """What an operator of the job gives."""
    return DataStream(environment, next(node for node in environment.graph.nodes.values() if node.name == name))


def num_completed(run: ProcessRun) -> int:
    assert run.recovery is not None
    return sum(isinstance(each, CheckpointCompleted) for each in list(run.recovery.checkpoints.history))


def generation(run: ProcessRun) -> int:
    assert run.recovery is not None
    return run.recovery.graph.generation


def went_on_from(run: ProcessRun) -> int | None:
    """The checkpoint of the last deployment."""
    assert run.recovery is not None
    recovered = run.recovery.checkpoints.recovered
    return None if recovered is None or recovered.manifest is None else recovered.manifest.checkpoint_id


def kill(run: ProcessRun, number: int, sent: signal.Signals = signal.SIGKILL) -> int:
    pid = run.process_ids[number]
    os.kill(pid, sent)
    return pid


# -- it goes on ------------------------------------------------------------------------------------


def test_checkpoints_change_no_result_and_leave_nothing(case: Case) -> None:
    with nothing_left(), case.run() as run:
        run.start()
        until(lambda: num_completed(run) >= 3)
        case.go.touch()
        assert run.join(LONG_S)
    assert counted(case.results) == EXPECTED
    assert generation(run) == 0
    assert case.files == []


@pytest.mark.sampled(one_in=4)
@pytest.mark.parametrize("seed", range(4))
def test_whichever_process_is_killed_and_whenever_each_result_comes_once(case: Case, seed: int) -> None:
    random = Random(seed)
    print(f"{seed=}")
    with nothing_left(), case.run() as run:
        run.start()
        num_kills = random.randint(1, 3)
        for _ in range(num_kills):
            before, wanted = num_completed(run), random.randint(0, 3)
            until(lambda before=before, wanted=wanted: num_completed(run) >= before + wanted)
            number = random.randrange(2)
            died, at = kill(run, number), generation(run)
            until(lambda at=at: generation(run) > at)
            until(lambda number=number, died=died: run.process_ids[number] != died)
        case.go.touch()
        assert run.join(LONG_S)
    assert counted(case.results) == EXPECTED
    assert generation(run) >= 1
    assert case.files == []


def test_processes_that_live_stay_and_the_dead_one_is_replaced(case: Case) -> None:
    with case.run() as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        first, second = run.process_ids
        kill(run, 1)
        case.go.touch()
        assert run.join(LONG_S)
        assert run.process_ids[0] == first
        assert run.process_ids[1] != second
        assert went_on_from(run) is not None
    assert counted(case.results) == EXPECTED


def test_a_plain_sink_gets_each_result_at_least_once(case: Case) -> None:
    with case.run(case.job(exactly_once=False)) as run:
        run.start()
        until(lambda: num_completed(run) >= 2)
        kill(run, 0)
        until(lambda: generation(run) == 1)
        case.go.touch()
        assert run.join(LONG_S)
    assert set(map(tuple, case.results)) == set(EXPECTED)


def test_a_checkpoint_counts_only_if_the_sinks_have_had_what_went_before(case: Case) -> None:
    """A sink that stands still keeps the word of a saved state waiting behind its results, and both die with it."""
    stands, may_go_on = threading.Event(), threading.Event()

    def sink(result: Any) -> None:
        stands.set()
        assert may_go_on.wait(LONG_S)
        case.results(result)

    with nothing_left(), case.run(case.job(exactly_once=False, sink=sink)) as run:
        run.start()
        assert stands.wait(LONG_S)
        newest = num_completed(run) + 1
        until(lambda: len(list(case.store.folder.glob(f"job/chk-{newest}/window-*.state"))) == 2)
        for number in (0, 1):
            kill(run, number)
        until(lambda: generation(run) >= 1)
        may_go_on.set()
        case.go.touch()
        assert run.join(LONG_S)
    assert set(map(tuple, case.results)) == set(EXPECTED)


# -- user code -------------------------------------------------------------------------------------


def refuse(value: Any) -> Any:
    if value[1] >= NUM_RECORDS // 2:
        raise OSError("the disk is full")
    return value


def test_user_code_that_always_fails_is_named_when_restarts_are_used_up(case: Case) -> None:
    with nothing_left(), case.run(case.job(refuse), restart=FixedDelayRestart(2, 0.0)) as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        case.go.touch()
        with pytest.raises(UserCodeError, match="the disk is full"):
            run.join(LONG_S)
        assert isinstance(run.error, UserCodeError)
    assert generation(run) == 2
    assert case.files, "what a failed job leaves stays, so that another run can go on"


def test_without_restarts_the_first_death_is_the_last(case: Case) -> None:
    with nothing_left(), case.run(restart=NoRestart()) as run:
        run.start()
        died = kill(run, 1)
        with pytest.raises(RemoteTransportError, match=f"tm-1, process {died}, was killed by SIGKILL"):
            run.join(LONG_S)
    assert generation(run) == 0


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_sink_that_fails_once_is_given_what_it_has_not_had(case: Case, exactly_once: bool) -> None:
    failures = [OSError("the network is down")]

    def sink(result: Any) -> None:
        if len(case.results) == 7 and failures:
            raise failures.pop()
        case.results(result)

    with nothing_left(), case.run(case.job(sink=sink, exactly_once=exactly_once)) as run:
        case.go.touch()
        assert run.start().join(LONG_S)
    assert generation(run) == 1
    assert set(map(tuple, case.results)) == set(EXPECTED)
    assert not exactly_once or counted(case.results) == EXPECTED


def test_a_store_that_processes_do_not_share_is_refused_by_name(case: Case) -> None:
    with nothing_left(), pytest.raises(LocalUsageError, match="MemoryStore is in the memory of one process"):
        case.run(store=MemoryStore())
    assert counted(case.results) == {}


class LocalFiles:
    """A store that begins anew in each process: it copies no files."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return LocalFiles, ()

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        self.files[key] = b"".join(parts)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        return self.files[key]

    def size(self, key: str) -> int:
        if key not in self.files:
            raise NoSuchKeyError(key)
        return len(self.files[key])

    def list(self, prefix: str) -> Sequence[str]:
        return sorted(key for key in self.files if key.startswith(prefix))

    def delete(self, keys: Iterable[str]) -> None: ...


def test_a_store_that_no_other_process_sees_is_refused(case: Case) -> None:
    with nothing_left(), pytest.raises(LocalUsageError, match="LocalFiles is no store for processes"):
        case.run(store=LocalFiles())


@pytest.mark.parametrize("timeout_s", [0, -1.0, True])
def test_a_heartbeat_that_never_is_is_refused(case: Case, timeout_s: float) -> None:
    with nothing_left(), pytest.raises(LocalUsageError, match="heartbeat_timeout_s"):
        case.run(heartbeat_timeout_s=timeout_s)


@dataclass(frozen=True)
class FailsOnce:
    """Raises at the second half as long as the file `failed` is not there, and makes it."""

    failed: Path
    seen: list[Any] = field(default_factory=list)

    def __call__(self, value: Any) -> Any:
        assert len(self.seen) < NUM_RECORDS, "what an attempt has changed is not there for the next one"
        self.seen.append(value)
        if value[1] >= NUM_RECORDS // 2 and not self.failed.exists():
            self.seen.extend(range(NUM_RECORDS))
            self.failed.touch()
            raise OSError("the disk is full")
        return value


def test_user_code_that_fails_once_begins_as_it_was_at_first(case: Case, tmp_path: Path) -> None:
    with nothing_left(), case.run(case.job(FailsOnce(tmp_path / "failed"), parallelism=1), 1) as run:
        run.start()
        first = run.process_ids
        until(lambda: num_completed(run) >= 1)
        case.go.touch()
        assert run.join(LONG_S)
        assert run.process_ids == first
    assert generation(run) == 1
    assert counted(case.results) == EXPECTED


@dataclass(frozen=True)
class StaysOnce:
    """Never returns from its first call that finds the file `go`; the next attempt finds the file `stuck`."""

    go: Path
    stuck: Path

    def __call__(self, value: Any) -> Any:
        if self.go.exists() and not self.stuck.exists():
            self.stuck.touch()
            threading.Event().wait()
        return value


def test_a_process_whose_code_does_not_let_go_is_replaced(case: Case, tmp_path: Path) -> None:
    function = StaysOnce(case.go, tmp_path / "stuck")
    environment = case.job(function, parallelism=2)
    stream_of(environment, "function").set_parallelism(1)
    with nothing_left(), case.run(environment) as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        case.go.touch()
        until(function.stuck.exists)
        before = run.process_ids
        kill(run, 1)
        assert run.join(LONG_S)
        assert not set(before) & set(run.process_ids)
    assert counted(case.results) == EXPECTED


# -- a process that is stopped -----------------------------------------------------------------------


def test_a_process_that_is_stopped_for_too_long_is_ended_and_replaced(case: Case) -> None:
    with nothing_left(), case.run(heartbeat_timeout_s=3.0) as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        stopped = kill(run, 1, signal.SIGSTOP)
        until(lambda: stopped not in run.process_ids)
        assert not psutil.pid_exists(stopped), "nothing is left that could go on"
        case.go.touch()
        assert run.join(LONG_S)
    assert generation(run) >= 1
    assert counted(case.results) == EXPECTED


def test_a_process_that_goes_on_in_time_has_done_no_harm(case: Case) -> None:
    with nothing_left(), case.run() as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        stopped, before = kill(run, 0, signal.SIGSTOP), num_completed(run)
        case.go.touch()
        assert not run.join(0.0)
        os.kill(stopped, signal.SIGCONT)
        assert run.join(LONG_S)
        assert num_completed(run) > before
    assert generation(run) == 0
    assert counted(case.results) == EXPECTED


# -- the store -------------------------------------------------------------------------------------


class FaultyFiles(FileStore):
    """Refuses the next puts of states, in whichever process, as many as there are files in `faults`."""

    faults: Path

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        if key.endswith(".state"):
            for fault in sorted(self.faults.iterdir()):
                with suppress(FileNotFoundError):
                    fault.unlink()
                    raise StoreError(key, "no space left")
        super().put(key, parts, replace=replace)


@pytest.mark.parametrize("tolerable", [0, 9])
def test_a_store_that_is_full_for_a_while_makes_no_result_wrong(case: Case, tmp_path: Path, tolerable: int) -> None:
    store = FaultyFiles(tmp_path / "faulty", fsync=False)
    store.faults = tmp_path / "faults"
    store.faults.mkdir()
    with nothing_left(), case.run(case.job(tolerable_failed_checkpoints=tolerable), store=store) as run:
        run.start()
        until(lambda: num_completed(run) >= 1)
        for number in range(3):
            (store.faults / f"{number}").touch()
        until(lambda: not [*store.faults.iterdir()])
        case.go.touch()
        assert run.join(LONG_S)
    assert (generation(run) > 0) == (tolerable == 0)
    assert counted(case.results) == EXPECTED


class SlowFiles(FileStore):
    """Puts no state before the file `go` is there."""

    go: Path

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        if key.endswith(".state"):
            until(self.go.exists)
        super().put(key, parts, replace=replace)


def test_a_slow_store_keeps_no_result_waiting(case: Case, tmp_path: Path) -> None:
    store = SlowFiles(tmp_path / "slow", fsync=False)
    store.go = case.go
    with nothing_left(), case.run(case.job(exactly_once=False), store=store) as run:
        run.start()
        case.results.wait_for(sum(EXPECTED.values()) // 3)
        assert num_completed(run) == 0
        case.go.touch()
        assert run.join(LONG_S)
    assert counted(case.results) == EXPECTED


# -- another run -----------------------------------------------------------------------------------


def left_by(case: Case, num_checkpoints: int = 2, **options: Any) -> None:
    """Let a run leave what it has in the store."""
    with case.run(case.job(checkpoints_retained=3, sink=print, **options)) as run:
        run.start()
        until(lambda: num_completed(run) >= num_checkpoints)
        run.cancel()


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize(("parallelism", "count"), [(1, 1), (3, 3), (4, 2)])
def test_another_run_goes_on_with_another_parallelism(case: Case, parallelism: int, count: int) -> None:
    left_by(case, exactly_once=True)
    case.go.touch()
    with nothing_left():
        run = case.run(case.job(parallelism=parallelism), count, trust_pickle=True)
        assert went_on_from(run) is not None
        with run:
            assert run.start().join(LONG_S)
    assert counted(case.results) <= EXPECTED
    assert {each for each in EXPECTED if each[1] >= NUM_RECORDS // 2} <= set(map(tuple, case.results))
    assert case.files == []


def test_where_the_newest_is_damaged_the_next_one_is_taken_and_where_all_are_nothing_begins(case: Case) -> None:
    left_by(case, 3)
    manifests = sorted(case.store.folder.glob("job/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
    assert len(manifests) >= 2
    numbers = [int(path.parent.name[4:]) for path in manifests]
    manifests[-1].write_bytes(manifests[-1].read_bytes()[:-9])
    with nothing_left(), case.run(trust_pickle=True) as run:
        assert went_on_from(run) == numbers[-2]
    for manifest in manifests[:-1]:
        manifest.write_bytes(b"")
    with nothing_left(), pytest.raises(RestoreRefusedError, match="none is sound; it does not start empty"):
        case.run()
    assert all(path.exists() for path in manifests)


def test_files_of_a_sink_come_once(case: Case, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = case.job(exactly_once=False)
    stream_of(environment, "window").sink_to(FileSink(out), "files")
    with nothing_left(), case.run(environment) as run:
        run.start()
        for number in (0, 1):
            before, at = num_completed(run), generation(run)
            until(lambda before=before: num_completed(run) > before)
            kill(run, number)
            until(lambda at=at: generation(run) > at)
        case.go.touch()
        assert run.join(LONG_S)
    lines = Counter(line for path in out.iterdir() for line in path.read_text().splitlines())
    assert lines == Counter(map(str, EXPECTED.elements()))


class Told(FixedDelayRestart):
    """An hour's delay."""

    def __init__(self) -> None:
        super().__init__(9, 3_600_000.0)


def test_a_run_that_waits_for_its_restart_can_be_cancelled(case: Case) -> None:
    with nothing_left(), case.run(restart=Told()) as run:
        run.start()
        kill(run, 0)
        until(lambda: generation(run) == 1)
        assert not run.join(0.0)
        run.cancel()
        assert run.join()
    assert run.error is None


def test_an_interrupt_ends_a_run_that_waits_for_its_restart(case: Case) -> None:
    with nothing_left(), case.run(restart=Told()) as run:
        run.start()
        kill(run, 0)
        until(lambda: generation(run) == 1)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                run.join(LONG_S)
        finally:
            signal.signal(signal.SIGALRM, previous)
