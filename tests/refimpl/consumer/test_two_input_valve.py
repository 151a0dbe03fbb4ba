"""The least of two inputs' watermarks, and what becomes of it when one of them is idle."""

from __future__ import annotations

import random

import pytest

from refimpl.config import FlinkVersion
from refimpl.consumer import StatusWatermarkValve, TwoInputValve
from refimpl.records import MAX_WATERMARK, MIN_TIMESTAMP, StreamStatus, Watermark

IDLE, ACTIVE = StreamStatus.IDLE, StreamStatus.ACTIVE
V1_11, V2_2 = FlinkVersion.V1_11, FlinkVersion.V2_2
Step = tuple[int, object, list[object]]


def check(valve: TwoInputValve, steps: list[Step]) -> None:
    """Give each step's watermark or status to its channel; what comes out is compared."""
    for number, (channel, given, expected) in enumerate(steps):
        if isinstance(given, StreamStatus):
            out = valve.input_status(given, channel)
        else:
            out = valve.input_watermark(Watermark(given), channel)
        assert [each.timestamp if isinstance(each, Watermark) else each for each in out] == expected, f"step {number}"


@pytest.mark.parametrize("version", FlinkVersion)
def test_the_watermark_is_the_least_of_both_inputs(version: FlinkVersion) -> None:
    """Flink: `TwoInputStreamTaskTest#testWatermarkMetrics`; the channels of the first input are 0 and 1."""
    valve = TwoInputValve([2, 1], version)
    check(valve, [(0, 5, []), (2, 4, []), (1, 7, [4]), (2, 9, [5]), (0, 20, [7]), (1, 20, [9]), (2, 8, [])])
    assert valve.channel_watermarks == (20, 20, 9)
    assert valve.current_watermark == 9


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_status_goes_out_when_both_inputs_have_it(version: FlinkVersion) -> None:
    """Flink: `TwoInputStreamTaskTest#testWatermarkAndStreamStatusForwarding`."""
    check(TwoInputValve([1, 1], version), [(0, IDLE, []), (1, IDLE, [IDLE]), (1, ACTIVE, [ACTIVE]), (0, ACTIVE, [])])


ONE_IS_IDLE: dict[FlinkVersion, list[Step]] = {
    V1_11: [(0, 10, []), (1, 3, [3]), (1, IDLE, []), (0, 20, []), (0, 30, []), (1, ACTIVE, []), (1, 15, [15])],
    V2_2: [(0, 10, []), (1, 3, [3]), (1, IDLE, [10]), (0, 20, [20]), (0, 30, [30]), (1, ACTIVE, []), (1, 15, []),
           (1, 40, []), (0, 35, [35])],
}  # fmt: skip


@pytest.mark.parametrize("version", FlinkVersion)
def test_an_idle_input_holds_time_back_in_1_11_and_leaves_the_least_later(version: FlinkVersion) -> None:
    """Flink: FLINK-18934, `AbstractStreamOperatorTest#testIdleWatermarkHandling` of 1.14."""
    check(TwoInputValve([1, 1], version), ONE_IS_IDLE[version])


def test_when_both_are_idle_time_stands() -> None:
    steps: list[Step] = [(0, 10, []), (1, 3, [3]), (0, IDLE, []), (1, IDLE, [IDLE]), (0, 50, []), (1, 50, [])]
    check(TwoInputValve([1, 1], V2_2), steps)


def test_channels_are_numbered_through_for_whoever_looks_on() -> None:
    valve = TwoInputValve([2, 2])
    check(valve, [(1, IDLE, []), (3, IDLE, []), (2, 8, [])])
    assert valve.idle_channels == (1, 3)
    assert valve.channel_watermarks == (MIN_TIMESTAMP, MIN_TIMESTAMP, 8, MIN_TIMESTAMP)


def test_an_input_that_has_ended_holds_nothing_back() -> None:
    check(TwoInputValve([1, 1]), [(0, MAX_WATERMARK.timestamp, []), (1, 4, [4]), (1, 6, [6])])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("version", FlinkVersion)
def test_it_is_what_a_valve_for_each_and_the_least_of_the_two_say(version: FlinkVersion, seed: int) -> None:
    """Against the rule in one line, with random watermarks: time never goes back, and is the least of both."""
    rng = random.Random(seed)
    valve, inputs = TwoInputValve([2, 3], version), [StatusWatermarkValve(2), StatusWatermarkValve(3)]
    last = MIN_TIMESTAMP
    for _ in range(200):
        channel, timestamp = rng.randrange(5), rng.randrange(1_000)
        out = valve.input_watermark(Watermark(timestamp), channel)
        side = 0 if channel < 2 else 1
        inputs[side].input_watermark(Watermark(timestamp), channel - 2 * side)
        least = min(each.current_watermark for each in inputs)
        assert out == ([Watermark(least)] if least > last else []), f"seed {seed}"
        last = max(last, least)
