"""The words of a watermark strategy, and what `explain` says of quiet subtasks."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from refimpl.job import DataStream, StreamEnvironment, WatermarkStrategy
from refimpl.task import (
    BoundedOutOfOrderness,
    IterableReader,
    ProcessingTimeService,
    WatermarkOutput,
    WatermarksWithIdleness,
)

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(5)


def test_each_word_makes_another_strategy() -> None:
    strategy = BOUNDED.with_timestamp_assigner(len).with_idleness(30)
    assert (BOUNDED.timestamp_of, BOUNDED.idle_timeout_ms) == (None, None)
    assert (strategy.timestamp_of, strategy.idle_timeout_ms) == (len, 30)


def test_a_strategy_makes_a_generator_for_each_subtask() -> None:
    time = ProcessingTimeService()
    one, other = BOUNDED.create_generator(time), BOUNDED.create_generator(time)
    assert isinstance(one, BoundedOutOfOrderness)
    assert one is not other
    assert one.bound_ms == 5
    monotonous = WatermarkStrategy.for_monotonous_timestamps().create_generator(time)
    assert isinstance(monotonous, BoundedOutOfOrderness)
    assert monotonous.bound_ms == 0
    idle = BOUNDED.with_idleness(1).create_generator(time)
    assert isinstance(idle, WatermarksWithIdleness)
    assert isinstance(idle.generator, BoundedOutOfOrderness)


def test_a_generator_of_ones_own() -> None:
    class Never:
        def on_event(self, value: object, timestamp: int, output: WatermarkOutput) -> None: ...

        def on_periodic_emit(self, output: WatermarkOutput) -> None: ...

    assert isinstance(WatermarkStrategy.for_generator(Never).create_generator(ProcessingTimeService()), Never)


@pytest.mark.parametrize("timeout", [0, -1, 2.5, True])
def test_what_is_no_timeout_is_refused(timeout: int) -> None:
    with pytest.raises(LocalUsageError, match="an idle timeout of"):
        BOUNDED.with_idleness(timeout)


def stream(parallelism: int = 2) -> tuple[StreamEnvironment, DataStream]:
    environment = StreamEnvironment(parallelism=parallelism)
    return environment, environment.source(lambda *_: IterableReader([]), "rows")


def test_explain_says_that_one_quiet_subtask_holds_all_back_behind_an_exchange() -> None:
    environment, rows = stream()
    rows.assign_timestamps_and_watermarks(BOUNDED, "timed").map(len).rebalance().map(len, "counts").rebalance().map(
        len, "again"
    )
    told = environment.explain().partition("watermarks:\n")[2].splitlines()
    (line,) = told
    assert line == (
        "  timed, before the rebalance to counts: one quiet subtask of its 2 holds event time back for all behind; "
        "with_idleness lets it not"
    )


@pytest.mark.parametrize("way", ["alone", "idle", "forward", "ingested", "untimed"])
def test_explain_says_nothing_of_it_where_none_can(way: str) -> None:
    environment, rows = stream(1 if way == "alone" else 2)
    if way == "ingested":
        rows = rows.assign_ingestion_time()
    elif way != "untimed":
        rows = rows.assign_timestamps_and_watermarks(BOUNDED.with_idleness(9) if way == "idle" else BOUNDED)
    (rows if way == "forward" else rows.rebalance()).map(len)
    assert "watermarks:" not in environment.explain()
