"""Keys, values and times at the edges of what Python and Java call equal: one answer on every driver, at any width."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.loop import AsyncRun
from refimpl.errors import UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, DOUBLE, LONG, STRING, Field, RecordBatch, TupleType, TypeSerializer, Vectorized
from refimpl.task import LATE, TumblingWindows
from tests.support.small_jobs import Count

LAST = 2**63 - 1

DRIVERS: dict[str, Callable[[StreamEnvironment], Any]] = {
    "simulation": lambda job: Simulation(job, seed=5),
    "threads": ThreadedRun,
    "loop": AsyncRun,
    "processes": ProcessRun,
}
WIDE = [(drive, width) for drive in ("simulation", "threads") for width in (1, 2, 5)] + [("loop", 2), ("processes", 2)]


def told(value: object) -> object:
    """The value, its type and its sign, so that a `Counter` tells apart what Python calls equal."""
    return [*map(told, value)] if isinstance(value, tuple) else (type(value).__name__, repr(value))


def counted(keys: Sequence[object], drive: str, width: int, size_ms: int = 10) -> Counter[str]:
    environment = StreamEnvironment(parallelism=width)
    results: list[Any] = []
    (
        environment.from_collection([(key, place) for place, key in enumerate(keys)])
        .assign_timestamps(lambda value: value[1], 1_000)
        .key_by(lambda value: value[0])
        .window(TumblingWindows(size_ms))
        .aggregate(Count())
        .sink(results.append)
    )
    DRIVERS[drive](environment).run()
    return Counter(str((told(key), count)) for key, _start, _end, count in results)


# -- keys ------------------------------------------------------------------------------------------

KEYS = [
    ([math.nan, float("nan"), -math.nan], [3]),
    ([(1, math.nan), (1, float("nan"))], [2]),
    ([0.0, -0.0, 0.0], [2, 1]),
    ([1, 1.0, True, 1], [2, 1, 1]),
    ([(1,), (1.0,), (True,), (1,)], [2, 1, 1]),
    ([0, False, -0.0, 0.0, None, "", b"", ()], [1] * 8),
    ([((0.0,),), ((-0.0,),), ((math.nan,),), ((math.nan,),)], [1, 1, 2]),
    (["1", 1, b"1", ("1",), ("1", None)], [1] * 5),
    ([2**53, float(2**53), 2**53 + 1], [1, 1, 1]),
]  # fmt: skip


@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize(("keys", "counts"), KEYS, ids=repr)
@pytest.mark.parametrize(("drive", "width"), WIDE)
def test_keys_are_equal_where_java_says_so(keys: list[object], counts: list[int], drive: str, width: int) -> None:
    found = counted(keys, drive, width)
    assert sorted(found.elements()) == sorted(
        str((told(key), n)) for key, n in zip(distinct(keys), counts, strict=True)
    )


def distinct(keys: list[object]) -> list[object]:
    """The first of each kind, in order."""
    first: dict[str, object] = {}
    for key in keys:
        first.setdefault(str(told(key)), key)
    return list(first.values())


class Columns:
    """A source of one batch of keys; the time of a record is its place."""

    def __init__(self, keys: np.ndarray) -> None:
        self.batches = [RecordBatch([keys, np.arange(len(keys))], names=("key", "time"))]

    def read(self, max_records: int) -> RecordBatch | None:
        return self.batches.pop() if self.batches else None

    def close(self) -> None: ...


class CountInBatches(Count):
    """The same for batches."""

    def accumulate_groups(self, batch: RecordBatch, starts: np.ndarray) -> list[int]:
        return np.diff(starts, append=len(batch)).tolist()

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other


COLUMNS = [
    np.array([math.nan, 1.0, -math.nan, 0.0, -0.0, 0.0]),
    np.array([math.nan, 1.0, math.nan, -0.0, 0.0], np.float32),
    np.array([1, 1.0, True, "1", math.nan, math.nan, None, None, -0.0, 0.0], object),
    np.array(["a", "", "a", "é", "😀", "\ud83d"]),
    np.array([True, False, True]),
    np.ma.array([1, 2, 1, 3], mask=[False, True, False, True]),
]


@pytest.mark.parametrize("keys", COLUMNS, ids=repr)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("drive", ["simulation", "threads"])
def test_keys_in_columns_are_those_one_by_one(keys: np.ndarray, width: int, drive: str) -> None:
    answers = []
    for key, time in (
        (Field("key"), Field("time")),
        (lambda value: value["key"], lambda value: value["time"]),
    ):
        environment = StreamEnvironment(Config(source_batch=64), parallelism=width)
        results: list[Any] = []
        (
            environment.source(lambda *_: Columns(keys), parallelism=1)
            .assign_timestamps(time, 0)
            .key_by(key)
            .window(TumblingWindows(100))
            .aggregate(CountInBatches())
            .sink(results.append)
        )
        DRIVERS[drive](environment).run()
        answers.append(Counter(str((told(key), count)) for key, _start, _end, count in results))
    assert answers[0] == answers[1]
    assert answers[0].total() == len(distinct(keys.tolist()))


# -- values that change ----------------------------------------------------------------------------


@dataclass
class Box:
    items: list[int] = field(default_factory=lambda: [1])


def _add_to_box(box: Box) -> int:
    box.items.append(2)
    return len(box.items)


CHANGES: list[tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], int]]] = [
    (lambda: {1}, lambda value: value.add(2) or len(value), len),
    (lambda: np.array([1]), lambda value: value.__setitem__(0, 7) or 2, lambda value: int(value[0])),
    (Box, _add_to_box, lambda box: len(box.items)),
    (lambda: [[1]], lambda value: value[0].append(2) or 2, lambda value: len(value[0])),
    (lambda: {"a": [1]}, lambda value: value["a"].append(2) or 2, lambda value: len(value["a"])),
    (lambda: ([1],), lambda value: value[0].append(2) or 2, lambda value: len(value[0])),
    (lambda: [{1}], lambda value: value[0].add(2) or 2, lambda value: len(value[0])),
    (lambda: (Box(),), lambda value: _add_to_box(value[0]), lambda value: len(value[0].items)),
]


@pytest.mark.parametrize(("make", "change", "look"), CHANGES, ids=lambda case: "")
@pytest.mark.parametrize("drive", ["simulation", "threads", "loop"])
def test_a_branch_of_a_chain_does_not_see_what_another_changes(
    make: Callable[[], Any], change: Callable[[Any], Any], look: Callable[[Any], int], drive: str
) -> None:
    given = make()
    environment = StreamEnvironment()
    source = environment.from_collection([given])
    results: list[object] = []
    source.map(change, "a").sink(results.append, "sink a")
    source.map(look, "b").sink(results.append, "sink b")
    DRIVERS[drive](environment).run()
    assert sorted(results) == [1, 2]
    assert look(given) == 1, "nor does whoever gave the values"


# -- one type on every way -------------------------------------------------------------------------


class Point(NamedTuple):
    x: int


class Word(str):
    __slots__ = ()


GIVEN: list[tuple[TypeSerializer, object]] = [
    (LONG, True), (DOUBLE, 1), (DOUBLE, np.float32(1.5)), (LONG, np.int64(7)), (STRING, Word("a")),
    (STRING, np.str_("a")), (BYTES, bytearray(b"a")), (BYTES, memoryview(np.array([1, 2], np.int32))),
    (TupleType(LONG), Point(1)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), GIVEN, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("shortcuts", [False, True])
def test_a_declared_type_says_what_a_value_becomes_within_a_chain_too(
    kind: TypeSerializer, value: object, shortcuts: bool
) -> None:
    found = [_through(kind, value, chaining, shortcuts) for chaining in (True, False)]
    assert told(found[0]) == told(found[1])
    assert "numpy" not in type(found[0]).__module__


@pytest.mark.parametrize(
    ("kind", "value"),
    [(LONG, 2**63), (LONG, 1.5), (LONG, "1"), (STRING, 1), (BYTES, "a"), (DOUBLE, "1.5"), (TupleType(LONG), [1])],
    ids=repr,
)
@pytest.mark.parametrize("chaining", [True, False])
def test_what_is_not_of_a_declared_type_is_refused_within_a_chain_too(
    kind: TypeSerializer, value: object, chaining: bool
) -> None:
    with pytest.raises(UserCodeError, match=rf"is not (a|an|bytes)\b.*{kind.name[:4]}|is not bytes"):
        _through(kind, value, chaining, shortcuts=False)


@pytest.mark.parametrize("value", [Point(1), Word("a"), np.float64(1.5), [Point(1)], Counter("a")], ids=repr)
@pytest.mark.parametrize("chaining", [True, False])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_a_kind_of_a_plain_type_is_refused_by_name_on_every_way(value: object, chaining: bool, shortcuts: bool) -> None:
    with pytest.raises(UserCodeError, match="would come back as a plain"):
        _through(None, value, chaining, shortcuts)


def _through(kind: TypeSerializer | None, value: object, chaining: bool, shortcuts: bool) -> Any:
    environment = StreamEnvironment(Config(chaining=chaining, shortcuts=shortcuts))
    results: list[object] = []
    source = environment.from_collection([0]) if kind is None else environment.from_collection([0], type=LONG)
    mapped = source.map(lambda _: value) if kind is None else source.map(lambda _: value, type=kind)
    mapped.sink(results.append)
    Simulation(environment).run()
    return results[0]


# -- times near the ends of 64 bits ----------------------------------------------------------------

TIMES = [LAST, LAST - 1, LAST - 10, LAST - 4_999, 0, -1, -(2**63) + 1, -(2**63) + 4_999]


@pytest.mark.parametrize("size_ms", [1, 7, 10_000, 86_400_000, 2**40])
@pytest.mark.parametrize("drive", ["simulation", "threads"])
@pytest.mark.parametrize("in_columns", [False, True])
def test_no_record_vanishes_near_the_ends_of_time(size_ms: int, drive: str, in_columns: bool) -> None:
    environment = StreamEnvironment(Config(source_batch=64))
    results: list[Any] = []
    late: list[object] = []
    rows = np.array(TIMES)
    windows = (
        environment.source(lambda *_: Columns(rows), parallelism=1)
        .assign_timestamps(Field("key") if in_columns else lambda row: row["key"], 2**64)
        .key_by(Vectorized(lambda row: row["time"] % 2, lambda batch: batch["time"] % 2))
        .window(TumblingWindows(size_ms, size_ms // 3))
        .aggregate(CountInBatches())
    )
    windows.sink(results.append)
    windows.side_output(LATE).sink(late.append, "late")
    DRIVERS[drive](environment).run()
    assert sum(count for *_, count in results) == len(TIMES)
    assert late == []
    for _, start, end, _ in results:
        assert end - start == size_ms
        assert any(start <= time < end for time in TIMES)


@pytest.mark.parametrize("time", [2**63, -(2**63) - 1, 2**70, math.inf, math.nan])
@pytest.mark.parametrize("drive", ["simulation", "threads"])
def test_a_time_that_is_no_long_is_refused_with_its_record(time: float, drive: str) -> None:
    environment = StreamEnvironment()
    environment.from_collection([("JFK", 1)]).assign_timestamps(lambda _: time, 0).sink(print)
    with pytest.raises(UserCodeError, match=r"timestamps, subtask 0, raised .*\('JFK', 1\)"):
        DRIVERS[drive](environment).run()


@pytest.mark.parametrize(("given", "time"), [(-0.5, -1), (-1.0, -1), (1.9, 1), (np.float32(-0.5), -1), (True, 1)])
def test_parts_of_a_millisecond_are_rounded_down(given: float, time: int) -> None:
    environment = StreamEnvironment()
    results: list[Any] = []
    windows = environment.from_collection([0]).assign_timestamps(lambda _: given, 0).key_by(lambda value: value)
    windows.window(TumblingWindows(1)).aggregate(Count()).sink(results.append)
    Simulation(environment).run()
    assert results == [(0, time, time + 1, 1)]


# -- long chains -----------------------------------------------------------------------------------


def _plus_one(value: int) -> int:
    return value + 1


@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("num_maps", [63, 64, 164, 1_000])
@pytest.mark.parametrize("drive", DRIVERS)
def test_a_job_may_be_longer_than_calls_can_nest(num_maps: int, drive: str) -> None:
    environment = StreamEnvironment(parallelism=2)
    stream = environment.from_collection(range(3))
    for number in range(num_maps):
        stream = stream.map(_plus_one, f"map {number}")
    results: list[int] = []
    stream.sink(results.append)
    DRIVERS[drive](environment).run()
    assert sorted(results) == [num_maps, num_maps + 1, num_maps + 2]
