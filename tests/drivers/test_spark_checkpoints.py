"""Checkpoints of a job on Spark, without Spark: words on the way, results that are kept, batches that are dealt out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from refimpl.config import Config
from refimpl.consumer.barrier_handler import AbortReason
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.processes import unpack
from refimpl.drivers.processes.messages import TaskSaid, TellTask, Verdict
from refimpl.drivers.spark import (
    RESULTS_FOLDER,
    DealtBatches,
    FedReader,
    KeptResults,
    Where,
    kept_results,
    said_as_words,
    said_in,
    same_size,
    tell_as_words,
    tell_in,
)
from refimpl.errors import LocalUsageError, RestoreRefusedError, StoreError
from refimpl.records import Alignment, CheckpointBarrier, CheckpointType, StreamRecord
from refimpl.state import JobStore, MemoryStore, RestoredStates, StateFile, StateRecord
from refimpl.task import CountingOutput, OperatorContext, SourceInput
from refimpl.task.checkpoint_reports import Declined, Report, Snapshotted, Unwanted

FILE = StateFile("chk-3/a-0-1.state", 12, "ab" * 32, {"a/split/x": 3}, 5)
STATES = {"a": (StateRecord("x", "split", "long"), StateRecord("y", "keyed", "pickle", 2, pickled=True)), "b": ()}
REPORTS: list[Report | None] = [
    None, Snapshotted(3, FILE, STATES, is_final=True, alignment_ms=1.5), Snapshotted(4, None),
    Declined(5, AbortReason.IO, "the disk is full: “€”"), Unwanted("chk-3/a-0-1.state"),
]  # fmt: skip
TELLS = [
    Verdict(3, is_complete=True), Verdict(4, is_complete=False), CheckpointBarrier(5, 17),
    CheckpointBarrier(6, 18, CheckpointType.SAVEPOINT, b"name\xff", Alignment.UNALIGNED),
]  # fmt: skip
NONSENSE = [
    b"",
    b"[]",
    b"{}",
    b"[1]",
    b'[0, "a", {"is": "Order"}]',
    b'[0, "a", 7]',
    b"\xff",
    b'[0, "a", {"is": "Snapshotted"}]',
]


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", REPORTS)
def test_what_a_task_says_arrives_as_it_was_said(report: Report | None) -> None:
    said = TaskSaid(0, "a → b-0", report)
    assert said_in(said_as_words(said)) == said


@pytest.mark.parametrize("what", TELLS)
def test_a_word_to_a_task_arrives_as_it_was_given(what: Verdict | CheckpointBarrier) -> None:
    tell = TellTask(0, "a → b-0", what)
    assert tell_in(tell_as_words(tell)) == tell


@pytest.mark.parametrize("words", NONSENSE)
def test_other_words_are_no_words(words: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        said_in(words)
    with pytest.raises(ValueError, match=r"."):
        tell_in(words)


# -- results ---------------------------------------------------------------------------------------


class Rows:
    def __init__(self) -> None:
        self.values: list[Any] = []

    def put(self, node_id: int, subtask: int, value: bytes) -> None:
        self.values.append((node_id, subtask, unpack(value)))


class Try:
    """A sink of two subtasks in one try."""

    def __init__(self, store: MemoryStore, attempt: int, states: list[RestoredStates] | None = None) -> None:
        self.rows = Rows()
        self.results = KeptResults(self.rows, JobStore(store, "job"))
        self.sinks = [self.results.make(7) for _ in range(2)]
        for subtask, sink in enumerate(self.sinks):
            context = OperatorContext("sink", subtask, 2, 128, config=Config(), uid="sink", attempt=attempt)
            sink.setup(context, CountingOutput(lambda _: None))
            if states is not None:
                sink.restore(states[subtask])
        self.results.go_on()

    def take(self, *values: object) -> None:
        for value in values:
            for sink in self.sinks:
                sink.process(StreamRecord(value))

    def snapshot(self) -> list[RestoredStates]:
        found = []
        for sink in self.sinks:
            sink.prepare_barrier(1)
            found.append(RestoredStates({}, {}, sink.states.by_no_key.snapshot(), trust_pickle=True))
        return found

    @property
    def restored(self) -> list[tuple[int, int, Any]]:
        return [(node, sub, unpack(value)) for node, values in self.results.restored() for sub, value in values]


def by_subtask(*values: object) -> list[tuple[int, int, object]]:
    return [(7, subtask, value) for subtask in range(2) for value in values]


@pytest.mark.parametrize("most", [1, 40, 1 << 20], ids=["a file each", "some files", "all in the state"])
def test_results_up_to_the_checkpoint_come_again_and_those_behind_it_do_not(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_results, "_MOST_IN_STATE", most)
    store = MemoryStore()
    first = Try(store, 1)
    first.take(*range(10))
    assert first.restored == []
    states = first.snapshot()
    first.take("not in the checkpoint", *range(50))
    second = Try(store, 2, states)
    second.take("new")
    assert second.restored == by_subtask(*range(10))
    assert second.restored == []  # once
    assert [value for *_, value in second.rows.values] == ["new", "new"]
    third = Try(store, 3, second.snapshot())
    assert third.restored == by_subtask(*range(10), "new")
    assert any(key.startswith(f"job/{RESULTS_FOLDER}") for key in store.list("")) is (most < 100)


def test_a_store_that_fails_leaves_results_in_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "_MOST_IN_STATE", 1)

    class Full(MemoryStore):
        def put(self, key: str, parts: Any, *, replace: bool = False) -> None:
            raise StoreError(key, "no space left")

    first = Try(Full(), 1)
    first.take(*range(10))
    assert Try(MemoryStore(), 2, first.snapshot()).restored == by_subtask(*range(10))


def test_results_of_another_run_are_pickled_and_refused_without_trust() -> None:
    first = Try(MemoryStore(), 1)
    first.take(1)
    (elements, *_) = [state.elements for state in first.snapshot()]
    with pytest.raises(RestoreRefusedError, match="trust_pickle=True"):
        Try(MemoryStore(), 2, [RestoredStates({}, {}, elements, trust_pickle=False)] * 2)


# -- a store that all share --------------------------------------------------------------------------


def test_a_run_claims_an_epoch_and_who_does_not_see_it_is_refused(tmp_path: Path) -> None:
    where = Where.of(FileStore(tmp_path / "here"), "job", "run", trust_pickle=False)
    where.check()
    assert JobStore(where.store, "job").list("") == ["leader-1.claim"]
    elsewhere = Where(FileStore(tmp_path / "there"), "job", "run", where.epoch, trust_pickle=False)
    with pytest.raises(LocalUsageError, match=r"an executor does not see leader-1\.claim in .*there"):
        elsewhere.check()


def test_at_the_end_all_goes_but_who_led(tmp_path: Path) -> None:
    where = Where.of(FileStore(tmp_path), "job", "run", trust_pickle=False)
    own = JobStore(where.store, "job")
    for key in ("chk-1/_metadata", "chk-1/a-0-1.state", f"{RESULTS_FOLDER}sink-0-1/0", "sp-mine/_metadata"):
        own.put(key, [b"x"])
    where.remove()
    assert own.list("") == ["leader-1.claim", "leader-2.claim", "sp-mine/_metadata"]


# -- batches that Spark feeds ------------------------------------------------------------------------


def batches(values: list[int | None], sizes: list[int]) -> Iterator[pa.RecordBatch]:
    start = 0
    for size in sizes:
        yield pa.record_batch([pa.array(values[start : start + size], pa.int64())], ["value"])
        start += size
    assert start == len(values)


class Plain:
    """A reader of three records at a time."""

    def __init__(self, of: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._rest = of, list[Any]()

    def read(self, _most: int) -> list[StreamRecord] | None:
        if not self._rest:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._rest = batch.column(0).to_pylist()
        taken, self._rest = self._rest[:3], self._rest[3:]
        return [StreamRecord(value) for value in taken]

    def close(self) -> None: ...


def inputs(values: list[int | None], num_subtasks: int = 2, cut: int = 5) -> list[SourceInput]:
    given = batches(values, [cut] * (len(values) // cut) + [len(values) % cut])
    dealt = DealtBatches(same_size(given, 8), range(num_subtasks))
    return [SourceInput("fed", number, FedReader(dealt, number, Plain), 64) for number in range(num_subtasks)]


def some(source: SourceInput, most: int) -> list[int]:
    """Up to so many values; fewer if there are none now, or no more at all."""
    found: list[int] = []
    for _ in range(3 * most):
        source.take()
        while len(found) < most and isinstance(element := source.next_element(), StreamRecord):
            found.append(element.value)
    return found


def test_batches_have_one_size_however_they_come() -> None:
    values: list[int | None] = [*range(50)]
    for sizes in ([50], [1] * 50, [7, 0, 30, 13], [16, 16, 18]):
        found = [each.column(0).to_pylist() for each in same_size(batches(values, sizes), 8)]
        assert [len(each) for each in found] == [8] * 6 + [2]
        assert [value for each in found for value in each] == values


def test_each_batch_belongs_to_one_subtask_whoever_comes_first() -> None:
    values: list[int | None] = [*range(100)]
    own = [[v for v in range(100) if v // 8 % 2 == number] for number in range(2)]
    rng = np.random.default_rng(7)
    for _ in range(20):
        sources, found = inputs(values), [list[int](), list[int]()]
        while not all(source.is_finished for source in sources):
            number = int(rng.integers(2))
            found[number] += some(sources[number], int(rng.integers(1, 9)))
        assert found == own


def test_one_that_is_far_behind_lets_others_wait_without_an_end() -> None:
    fast, slow = inputs([*range(1_000)])
    assert 0 < len(some(fast, 500)) <= 5 * 8
    assert not fast.is_finished
    some(slow, 16)
    assert some(fast, 500)


@pytest.mark.parametrize("num_taken", range(0, 60, 7))
@pytest.mark.parametrize("cut", [1, 5, 30])
def test_who_goes_on_from_a_snapshot_reads_the_rest(num_taken: int, cut: int) -> None:
    values: list[int | None] = [*range(77), None, 3]
    whole = next(some(source, 100) for source in inputs(values, 1))
    (before,) = inputs(values, 1)
    taken = some(before, num_taken)
    (after,) = inputs(values, 1, cut)  # cut in another way
    after.seek(before.position, before.mark)
    assert taken + some(after, 100) == whole


@pytest.mark.parametrize("num_taken", [1, 8, 9, 40])
@pytest.mark.parametrize("change", ["other", "order", "null", "shorter"])
def test_rows_that_are_others_the_second_time_are_refused_before_one_leaves(num_taken: int, change: str) -> None:
    values: list[int | None] = [*range(77)]
    (before,) = inputs(values, 1)
    taken = some(before, num_taken)
    changed: list[int | None] = {
        "other": [1000, *values[1:]], "order": [values[1], values[0], *values[2:]], "null": [None, *values[1:]],
        "shorter": values[: max(0, num_taken - 9)],
    }[change]  # fmt: skip
    (after,) = inputs(changed, 1)
    after.seek(before.position, before.mark)
    with pytest.raises(RestoreRefusedError, match="subtask 0 is not what it was before the failure"):
        pytest.fail(f"these have left: {some(after, 100)}")
    assert len(taken) == num_taken


def test_what_lies_under_a_null_does_not_count() -> None:
    one = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 6], np.int64))])
    other = pa.array([5, None], pa.int64())
    marks = []
    for column in (one, other):
        dealt = DealtBatches(same_size(iter([pa.record_batch([column], ["v"])])), [0])
        source = SourceInput("fed", 0, FedReader(dealt, 0, Plain), 64)
        some(source, 2)
        marks.append(source.mark)
    assert marks[0] == marks[1]
