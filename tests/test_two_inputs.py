"""Jobs with two inputs in one task, on every driver: the same answer as in plain Python, with shortcuts and without."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, TupleType
from refimpl.task import (
    BroadcastProcessFunction,
    FunctionContext,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapStateDescriptor,
    ProcessContext,
)
from tests.shortcuts.fast_parts import observe
from tests.test_barriers import run_with_cuts

DRIVERS: dict[str, Callable[[StreamEnvironment], Any]] = {
    "simulation": lambda job: Simulation(job, seed=4, check_every=3),
    "simulation of 2": lambda job: Simulation(job, seed=4, num_task_managers=2, max_delay_ms=0.5, check_every=3),
    "threads": ThreadedRun,
    "threads of 2": lambda job: ThreadedRun(job, num_task_managers=2),
    "loop": AsyncRun,
    "loop of 2": lambda job: AsyncRun(job, num_task_managers=2),
    "processes": lambda job: ProcessRun(job, num_task_managers=2),
}
PAIR = TupleType(LONG, LONG)
COUNTS = (300, 100, 10)
"""Numbers, words and other words."""


def spread(results: list[Any], width: int = 2, counts: Sequence[int] = COUNTS, **options: Any) -> StreamEnvironment:
    """Numbers and words, all over the place, into one operator behind which a chain goes on."""
    settings = {"segment_size_bytes": 64, "num_buffers": 300, "source_batch": 8}
    environment = StreamEnvironment(Config(**{**settings, **options}), width)
    numbers = environment.from_collection(range(counts[0]), "numbers", LONG).map(lambda n: n + 1, "more", LONG)
    words = environment.from_collection(["x" * (n % 9) for n in range(counts[1])], "words", STRING)
    others = environment.from_collection(["other"] * counts[2], "others", STRING).rebalance()
    both = numbers.rebalance().connect(words.shuffle().union(others))
    made = both.map(lambda n: (n, 1), lambda word: (len(word), 2), "both", PAIR).slot_sharing_group("far")
    behind = made.map(lambda pair: pair, "behind", PAIR).slot_sharing_group("far")
    behind.sink(results.append, "sink").set_parallelism(1).slot_sharing_group("far")
    return environment


def expected(counts: Sequence[int] = COUNTS) -> Counter[tuple[int, int]]:
    num_numbers, num_words, num_others = counts
    return Counter(
        [*((n + 1, 1) for n in range(num_numbers)), *((n % 9, 2) for n in range(num_words))] + [(5, 2)] * num_others
    )


@pytest.mark.slow
@pytest.mark.parametrize("shortcuts", [False, True], ids=["plain", "shortcuts"])
@pytest.mark.parametrize("drive", DRIVERS)
def test_every_record_of_both_inputs_comes_once(drive: str, shortcuts: bool) -> None:
    results: list[Any] = []
    DRIVERS[drive](spread(results, shortcuts=shortcuts)).run()
    assert Counter(results) == expected()


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("credit_based", [True, False])
@pytest.mark.parametrize("segment", [32, 600])
def test_with_shortcuts_a_job_takes_the_same_steps(segment: int, credit_based: bool, width: int) -> None:
    options = {"num_task_managers": width, "max_delay_ms": 0.5, "check_every": 0, "seed": 3}
    plain, fast = (
        observe(spread(results, segment_size_bytes=segment, credit_based=credit_based), results, shortcuts, **options)
        for shortcuts, results in ((False, []), (True, []))
    )
    assert plain == fast


@pytest.mark.slow
@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("mode", CheckpointingMode)
@pytest.mark.parametrize("width", [1, 2])
def test_a_barrier_cuts_both_inputs_at_once(width: int, mode: CheckpointingMode, shortcuts: bool) -> None:
    """What has come in before the cut is what went out before it at those who sent it, over both inputs together."""
    results: list[Any] = []
    options = {"checkpoint_interval_ms": 1, "checkpointing_mode": mode, "shortcuts": shortcuts}
    counts = (300, 300, 300)  # in 1.11 there is no checkpoint any more when a source has ended
    job = spread(results, counts=counts, chaining=False, **options)
    spread_over = {"num_task_managers": width, "max_delay_ms": 0.2, "step_ms": 0.05, "check_every": 0}
    cuts = run_with_cuts(Simulation(job, seed=5, **spread_over))
    num_whole = 0
    for by_task in cuts.values():
        before = {"sources": 0, "both": 0}
        names = Counter(name.rpartition("-")[0] for name in by_task)
        if names != Counter({"numbers": 1, "more": 2, "words": 1, "others": 1, "both": 2, "behind": 2, "sink": 1}):
            continue
        num_whole += 1
        for name, cut in by_task.items():
            if name.startswith("both"):
                before["both"] += cut.num_records_in
            elif name.startswith(("more", "words", "others")):
                before["sources"] += cut.num_records_out
        if mode is CheckpointingMode.EXACTLY_ONCE:
            assert before["sources"] == before["both"]
        else:
            assert before["sources"] <= before["both"]
    assert num_whole > 0
    assert Counter(results) == expected(counts)


def test_a_snapshot_shows_the_channels_of_both_inputs() -> None:
    """What views draw: a watermark for each channel, and one alignment over all of them."""
    with Simulation(spread([], width=1)) as simulation:
        simulation.step()
        snapshot = next(task for task in simulation.snapshot().tasks if task.operators[0] == "both")
        assert len(snapshot.channel_watermarks) == 3
        assert snapshot.alignment is not None
        simulation.run()
        snapshot = next(task for task in simulation.snapshot().tasks if task.operators[0] == "both")
    assert set(snapshot.channel_watermarks) == {snapshot.watermark}


# -- by key ------------------------------------------------------------------------------------------

WAIT_MS = 40
Row = tuple[str, int]
"""A key and a time in ms, which is the value as well."""


class JoinWithin(KeyedCoProcessFunction):
    """Each pair of one row of either side, of one key, that are at most `WAIT_MS` apart. A timer forgets old rows."""

    def open(self, context: FunctionContext) -> None:
        self.sides = [context.list_state("first"), context.list_state("second")]

    def process_element1(self, value: Row, ctx: ProcessContext) -> Iterator[object]:
        return self._join(value, ctx, 0)

    def process_element2(self, value: Row, ctx: ProcessContext) -> Iterator[object]:
        return self._join(value, ctx, 1)

    def _join(self, value: Row, ctx: ProcessContext, side: int) -> Iterator[object]:
        self.sides[side].add(value[1])
        ctx.timers.register_event_time_timer(value[1] + WAIT_MS)
        for other in self.sides[1 - side].get():
            if abs(other - value[1]) <= WAIT_MS:
                pair = (value[1], other) if side == 0 else (other, value[1])
                yield (ctx.current_key, *pair)

    def on_timer(self, timestamp: int, _ctx: ProcessContext) -> None:
        for side in self.sides:
            side.update([time for time in side.get() if time + WAIT_MS > timestamp])


def rows(seed: int, count: int) -> list[Row]:
    rng = random.Random(seed)
    return [(f"k{rng.randrange(5)}", max(0, number * 3 + rng.randrange(-9, 9))) for number in range(count)]


def joined(results: list[Any], width: int, shortcuts: bool | None = None) -> StreamEnvironment:
    config = Config(segment_size_bytes=256, num_buffers=600, source_batch=8, max_parallelism=16, shortcuts=shortcuts)
    environment = StreamEnvironment(config, width)
    sides = []
    for seed, name, count in ((1, "first", 120), (2, "second", 80)):
        source = environment.from_collection(rows(seed, count), name, TupleType(STRING, LONG))
        timed = source.assign_timestamps(lambda row: row[1], 20, f"{name} times", every=4).set_parallelism(1)
        sides.append(timed.key_by(lambda row: row[0]))
    both = sides[0].connect(sides[1]).process(JoinWithin(), "join").slot_sharing_group("far")
    both.sink(results.append, "sink").set_parallelism(1).slot_sharing_group("far")
    return environment


def joined_in_plain_python() -> Counter[Any]:
    first, second = rows(1, 120), rows(2, 80)
    return Counter((key, a, b) for key, a in first for other, b in second if key == other and abs(a - b) <= WAIT_MS)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("drive", DRIVERS)
def test_a_join_by_key_is_what_plain_python_joins(drive: str, width: int) -> None:
    results: list[Any] = []
    DRIVERS[drive](joined(results, width)).run()
    assert Counter(results) == joined_in_plain_python()


@pytest.mark.parametrize("width", [1, 3])
def test_a_join_takes_the_same_steps_with_shortcuts(width: int) -> None:
    plain, fast = (
        observe(joined(results, width), results, shortcuts, seed=6, check_every=0)
        for shortcuts, results in ((False, []), (True, []))
    )
    assert plain == fast
    assert plain.elements


# -- broadcast ---------------------------------------------------------------------------------------

FACTORS = MapStateDescriptor("factors", STRING, LONG)


class Scale(KeyedBroadcastProcessFunction):
    """Numbers times the factor of their key; those that come before it wait in a list."""

    def open(self, context: FunctionContext) -> None:
        self.waiting = context.list_state("waiting")

    def process_element(self, value: Row, ctx: ProcessContext) -> Iterator[object]:
        factor = ctx.broadcast_state(FACTORS).get(value[0])
        if factor is None:
            self.waiting.add(value[1])
        else:
            yield value[0], value[1] * factor

    def process_broadcast_element(self, value: Row, ctx: ProcessContext) -> list[object]:
        ctx.broadcast_state(FACTORS).put(*value)
        found: list[object] = []

        def release(key: str, waiting: Any) -> None:
            if key == value[0]:
                found.extend((key, number * value[1]) for number in waiting.get())
                waiting.clear()

        ctx.for_each_key(self.waiting, release)
        return found


class ScalePlain(BroadcastProcessFunction):
    """The same without keys: what comes too early waits in an attribute."""

    def __init__(self) -> None:
        self.waiting: list[Row] = []

    def process_element(self, value: Row, ctx: ProcessContext) -> Iterator[object]:
        factor = ctx.broadcast_state(FACTORS).get(value[0])
        if factor is None:
            self.waiting.append(value)
        else:
            yield value[0], value[1] * factor

    def process_broadcast_element(self, value: Row, ctx: ProcessContext) -> list[object]:
        ctx.broadcast_state(FACTORS).put(*value)
        found = [(key, number * value[1]) for key, number in self.waiting if key == value[0]]
        self.waiting = [row for row in self.waiting if row[0] != value[0]]
        return list(found)


@pytest.mark.slow
@pytest.mark.parametrize("is_keyed", [True, False], ids=["keyed", "not keyed"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("drive", DRIVERS)
def test_every_subtask_has_what_is_broadcast(drive: str, width: int, is_keyed: bool) -> None:
    results: list[Any] = []
    environment = StreamEnvironment(Config(segment_size_bytes=128, num_buffers=400, source_batch=8), width)
    numbers = environment.from_collection(rows(3, 100), "numbers", TupleType(STRING, LONG)).rebalance()
    factors = environment.from_collection([(f"k{n}", n + 2) for n in range(5)], "factors", TupleType(STRING, LONG))
    broadcast = factors.broadcast(FACTORS)
    made = (
        numbers.key_by(lambda row: row[0]).connect(broadcast).process(Scale())
        if is_keyed
        else numbers.connect(broadcast).process(ScalePlain())
    )
    made.slot_sharing_group("far").sink(results.append, "sink").set_parallelism(1).slot_sharing_group("far")
    DRIVERS[drive](environment).run()
    assert Counter(results) == Counter((key, number * (int(key[1:]) + 2)) for key, number in rows(3, 100))
