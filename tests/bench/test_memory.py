"""Memory over many records: every way moves them all, and what is lost for each buffer is found."""

from __future__ import annotations

from functools import partial

import pytest

from tests.bench.memory import PARTS, WAYS, Curve, Sample, moved, sampled

A_BUFFER = 1_129  # records of 29 bytes
START = 100 << 20


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_way_moves_all_and_is_weighed_after_the_warm_up(way: str) -> None:
    found: list[Sample] = []
    num_records = 409_600
    moved(way, num_records, partial(sampled, num_records=num_records, weigh=lambda: START, found=found))
    assert found[0][0] >= num_records / 10
    assert found[-1][0] <= num_records
    assert len(found) > PARTS / 2
    assert Curve(found).is_flat


@pytest.mark.parametrize(("lost_bytes", "is_flat"), [(0, True), (32, False), (16, False)])
def test_an_object_lost_for_each_buffer_is_found(lost_bytes: int, is_flat: bool) -> None:
    samples = [(records, START + records // A_BUFFER * lost_bytes) for records in range(10**7, 10**8, 10**6)]
    assert Curve(samples).is_flat is is_flat
    assert ("IT GROWS" in str(Curve(samples))) is not is_flat


def test_memory_that_goes_up_and_comes_down_is_flat() -> None:
    assert Curve([(records, START + records // 10**6 % 2 * (1 << 16)) for records in range(0, 10**8, 10**6)]).is_flat
