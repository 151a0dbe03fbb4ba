"""A job on processes that fails goes on from its newest checkpoint, whichever process is killed; nothing is left."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refimpl.checkpoint import CheckpointCompleted
from refimpl.cluster import FixedDelayRestart, NoRestart
from refimpl.config import Config
from refimpl.drivers import ProcessRun
from refimpl.drivers.file_store import FileStore
from refimpl.errors import LocalUsageError, RemoteTransportError, UserCodeError
from refimpl.job import StreamEnvironment
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
