"""Event time for batches: the same records, times and watermarks as one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment, WatermarkStrategy
from refimpl.records import Field, RecordBatch, StreamRecord, Watermark
from refimpl.shortcuts.operators import batch_form
from refimpl.task import (
    BoundedOutOfOrderness,
    OperatorContext,
    ProcessingTimeService,
    ProcessingTimeSessionWindows,
    SessionWindows,
    SlidingWindows,
    TimestampsAndWatermarksOperator,
    TumblingProcessingTimeWindows,
    TumblingWindows,
    WatermarkOutput,
    WindowAssigner,
)


class Out:
    """What came out, batches as their records."""

    def __init__(self) -> None:
        self.sent: list[object] = []
        self.num_batches = 0

    def collect(self, record: StreamRecord) -> None:
        self.sent.append((record.value, record.timestamp))

    def collect_batch(self, batch: RecordBatch) -> None:
        self.num_batches += 1
        for record in batch.records():
            self.collect(record)

    def collect_side(self, *_: object) -> None: ...

    def emit_watermark(self, watermark: Watermark) -> None:
        self.sent.append(watermark)

    def emit_status(self, status: object) -> None:
        self.sent.append(status)

    def emit_latency_marker(self, marker: object) -> None: ...


class Punctuated:
    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        if timestamp % 3 == 0:
            output.emit_watermark(Watermark(timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


STRATEGIES = {
    "bounded": WatermarkStrategy.for_bounded_out_of_orderness(5),
    "idle": WatermarkStrategy.for_monotonous_timestamps().with_idleness(10),
    "punctuated": WatermarkStrategy.for_generator(Punctuated),
}


class Rig:
    def __init__(self, strategy: WatermarkStrategy) -> None:
        self.time, self.out = ProcessingTimeService(), Out()
        self.operator = TimestampsAndWatermarksOperator(strategy.timestamp_of, strategy.create_generator)
        config = Config(auto_watermark_interval_ms=7)
        self.operator.setup(OperatorContext("timed", 0, 1, 128, self.time, config), self.out)
        self.operator.open()
        self.form = batch_form(self.operator, self.out)

    def pass_to(self, now_ms: int) -> None:
        self.time.advance(now_ms)
        self.time.fire_due()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", STRATEGIES)
def test_batches_get_the_times_and_watermarks_of_their_records_one_by_one(kind: str, seed: int) -> None:
    strategy = STRATEGIES[kind].with_timestamp_assigner(Field(1))
    one_by_one, at_once = Rig(strategy), Rig(strategy)
    assert at_once.form.takes_batches is (kind != "punctuated")
    random_, now_ms = random.Random(seed), 0
    for _ in range(30):
        rows = [(each, random_.randrange(100) + now_ms) for each in range(random_.choice([0, 0, 1, 5, 20]))]
        for row in rows:
            one_by_one.operator.process(StreamRecord(row))
        if rows:
            numbers, times = map(np.array, zip(*rows, strict=True))
            at_once.form.process_batch(RecordBatch([numbers, times]))
        now_ms += random_.randrange(15)
        one_by_one.pass_to(now_ms)
        at_once.pass_to(now_ms)
    assert at_once.out.sent == one_by_one.out.sent, f"seed {seed}"
    assert (at_once.out.num_batches > 0) is (kind != "punctuated")


def test_without_an_assigner_a_batch_comes_record_by_record() -> None:
    rig = Rig(STRATEGIES["bounded"])
    assert not rig.form.takes_batches
    rig.form.process_batch(RecordBatch([np.array([4, 6])], np.array([40, 60]), is_tuple=False))
    assert rig.out.sent == [(4, 40), (6, 60)]
    assert isinstance(rig.operator.generator, BoundedOutOfOrderness)
    assert rig.operator.generator.max_timestamp == 60


class Total:
    def create_accumulator(self) -> int:
        return 0

    def add(self, row: tuple[int, int, int], accumulator: int) -> int:
        return accumulator + row[2]

    def accumulate_groups(self, batch: RecordBatch, starts: np.ndarray) -> list[int]:
        return np.add.reduceat(batch[2], starts).tolist()

    def merge(self, one: int, other: int) -> int:
        return one + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Batches:
    """A reader of batches."""

    def __init__(self, seed: int) -> None:
        random_ = random.Random(seed)
        rows = [(random_.randrange(3), random_.randrange(60) + number, number) for number in range(300)]
        self._left = [rows[start : start + 50] for start in range(0, len(rows), 50)]

    def read(self, max_records: int) -> RecordBatch | None:
        return RecordBatch([np.array(each) for each in zip(*self._left.pop(0), strict=True)]) if self._left else None

    def close(self) -> None: ...


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("windows", "lateness_ms"),
    [
        (TumblingWindows(20), 0), (TumblingWindows(20), 15), (SlidingWindows(20, 7), 0), (SessionWindows(2), 0),
        (TumblingProcessingTimeWindows(20), 0), (ProcessingTimeSessionWindows(3), 0),
    ],
    ids=repr,
)  # fmt: skip
def test_windows_give_the_answers_of_one_by_one_or_take_no_batches(
    windows: WindowAssigner, lateness_ms: int, seed: int
) -> None:
    answers = []
    for shortcuts in (False, True):
        environment = StreamEnvironment(Config(shortcuts=shortcuts, auto_watermark_interval_ms=2))
        results: list[Any] = []
        rows = environment.source(lambda *_: Batches(seed), "rows")
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(9).with_timestamp_assigner(Field(1))
        timed = rows.assign_timestamps_and_watermarks(strategy)
        windowed = timed.key_by(0).window(windows).allowed_lateness(lateness_ms)
        windowed.aggregate(Total()).sink(results.append)
        Simulation(environment, seed=seed, policy="first", step_ms=1.0).run()
        answers.append(results)
    assert answers[0] == answers[1], f"seed {seed}"
    assert answers[0] or not getattr(windows, "is_event_time", True)
