"""A job that begins with another's savepoint: what it goes on with, and what it refuses before anything is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.successor import begin_with_savepoint
from refimpl.errors import CorruptFileError, LeadershipLostError, LocalUsageError, RestoreRefusedError, StoreError
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state.layout import JobStore
from refimpl.state.store import Fault, FaultKind, MemoryStore
from refimpl.task import TumblingWindows
from tests.support.small_jobs import Count

NUM_RECORDS = 60


class Numbers:
    """The numbers below 60, one in each read; the second half once it may come."""

    may_end = False
    sought: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.position = 0

    def seek(self, position: int) -> None:
        self.position = position
        Numbers.sought.append(position)

    def read(self, _max_records: int) -> Sequence[StreamRecord] | None:
        if self.position == (NUM_RECORDS if Numbers.may_end else NUM_RECORDS // 2):
            return None if Numbers.may_end else []
        self.position += 1
        return [StreamRecord(self.position - 1)]

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def first_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Numbers, "may_end", False)
    monkeypatch.setattr(Numbers, "sought", [])


def counts(sink: Callable[[object], object], parallelism: int = 2, key: str = "count") -> StreamEnvironment:
    environment = StreamEnvironment(Config(num_buffers=64), parallelism=parallelism)
    numbers = environment.source(lambda *_: Numbers(), "numbers", parallelism=1)
    keyed = numbers.assign_timestamps(lambda number: number, 0).key_by(lambda number: number % 3)
    keyed.window(TumblingWindows(10)).aggregate(Count()).uid(key).sink(sink)
    return environment


def saved(store: MemoryStore) -> list[object]:
    """What job "first" has given until its savepoint "friday" was there."""
    given: list[object] = []
    with Simulation(counts(given.append), store=store, job="first") as run:
        run.run(40)
        assert run.recovery is not None
        run.savepoint("friday")
        while not (history := run.recovery.checkpoints.history):
            run.step()
        assert history[-1].request.name == "friday"
        return [*given]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_it_goes_on_from_there_with_any_parallelism(parallelism: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store, whole, rest = MemoryStore(), list[object](), list[object]()
    before = saved(store)
    files = {key: store.get(key) for key in store.list("first/")}
    monkeypatch.setattr(Numbers, "may_end", True)
    Simulation(counts(whole.append)).run()
    job = counts(rest.append, parallelism)
    begin_with_savepoint(store, "second", job.execution_graph(), "first", "friday")
    with Simulation(job, store=store, job="second", trust_pickle=True) as run:
        assert run.recovery is not None
        assert run.recovery.checkpoints.recovered is not None
        assert run.recovery.checkpoints.recovered.key == "sp-friday/_metadata"
        run.run()
    assert sorted(map(repr, [*before, *rest])) == sorted(map(repr, whole))
    assert 0 < Numbers.sought[-1] < NUM_RECORDS
    assert {key: store.get(key) for key in store.list("first/")} == files


def test_no_attempt_has_the_number_of_one_of_the_job_before() -> None:
    store = MemoryStore()
    saved(store)
    JobStore(store, "first").put("leader-7.claim", [b'{"run": "of later"}\n'])
    begin_with_savepoint(store, "second", counts(print).execution_graph(), "first", "friday")
    with Simulation(counts(print), store=store, job="second", trust_pickle=True) as run:
        assert run.recovery is not None
        assert run.recovery.checkpoints.leader.epoch > 7


@pytest.mark.parametrize(
    ("job_id", "of", "name", "why"),
    [
        ("second", "first", "monday", "job first has no savepoint 'monday'; it has friday"),
        ("second", "third", "friday", "job third has no savepoint 'friday'; no job of that id has kept"),
        ("first", "first", "friday", "there has been a job first already; what begins with a savepoint needs a new id"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(job_id: str, of: str, name: str, why: str) -> None:
    store = MemoryStore()
    saved(store)
    before = store.list("")
    with pytest.raises(LocalUsageError, match=why):
        begin_with_savepoint(store, job_id, counts(print).execution_graph(), of, name)
    assert store.list("") == before


def test_a_job_with_other_operators_is_refused_and_leaves_nothing() -> None:
    store = MemoryStore()
    saved(store)
    before = store.list("")
    with pytest.raises(RestoreRefusedError, match="count"):
        begin_with_savepoint(store, "second", counts(print, key="other").execution_graph(), "first", "friday")
    assert store.list("") == before


def test_a_damaged_savepoint_is_named_and_leaves_nothing() -> None:
    store = MemoryStore()
    saved(store)
    own = JobStore(store, "first")
    state = next(key for key in own.list("sp-friday/") if key.endswith(".state") and own.size(key))
    own.put(state, [bytes(own.size(state))], replace=True)
    before = store.list("")
    with pytest.raises((RestoreRefusedError, CorruptFileError), match=r"sp-friday/.*\.state"):
        begin_with_savepoint(store, "second", counts(print).execution_graph(), "first", "friday")
    assert store.list("") == before


@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.NO_SPACE])
def test_a_store_that_fails_at_any_put_leaves_nothing_of_the_job(kind: FaultKind) -> None:
    def begin(*faults: Fault) -> MemoryStore:
        store = MemoryStore(faults)
        saved(store)
        with suppress(StoreError):
            begin_with_savepoint(store, "second", counts(print).execution_graph(), "first", "friday")
        return store

    num_files = len(begin().list("second/"))
    begun = [begin(Fault(kind, within="second/", number=number + 1)).list("second/") for number in range(num_files)]
    assert {len(each) for each in begun} <= {0, num_files}
    assert sum(not each for each in begun) >= num_files - 2, "an answer lost for a claim or a record is looked for"


def test_what_belongs_to_somebody_who_leads_by_now_is_left_alone() -> None:
    fault = Fault(FaultKind.SLOW, within="second/sp-friday/_metadata")
    store = MemoryStore([fault], lambda _ms: JobStore(store, "second").put("leader-99.claim", [b"{}"]))
    saved(store)
    with pytest.raises(LeadershipLostError):
        begin_with_savepoint(store, "second", counts(print).execution_graph(), "first", "friday")
    assert "second/leader-99.claim" in store.list("second/")
