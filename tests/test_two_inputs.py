"""Jobs with two inputs in one task, on every driver: the same answer as in plain Python, with shortcuts and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, TupleType
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
