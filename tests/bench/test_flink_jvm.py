"""Flink as a contender: it moves our records, all of them, and says so when it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench import flink_jvm
from tests.bench.contenders import checksum, expected
from tests.bench.flink_jvm import FLINK, FlinkError, jvm, lacking


@pytest.fixture(scope="module", autouse=True)
def _flink() -> Iterator[None]:
    if reason := lacking():
        pytest.skip(f"NOT TESTED AGAINST THE REAL FLINK: {reason}")
    yield
    while flink_jvm._running:
        flink_jvm._running.pop().close()


@pytest.mark.slow
@pytest.mark.parametrize("name", FLINK)
def test_flink_delivers_every_record_in_order(name: str) -> None:
    num_moved, arrived = FLINK[name].deliver(9_001)
    assert num_moved == 9_001
    assert arrived == expected(9_001)


@pytest.mark.slow
def test_a_turn_of_flink_comes_to_our_sum() -> None:
    turn = FLINK["flink/local"].run(20_000)
    assert turn.checksum == checksum(20_000)
    assert turn.wall_s > 0


@pytest.mark.slow
def test_a_job_that_fails_is_an_error_and_the_next_one_gets_a_new_jvm() -> None:
    first = jvm()
    with pytest.raises(FlinkError, match="Flink ended"):
        first.run("local", -1)
    assert not first.is_running
    assert FLINK["flink/local"].run(10).checksum == checksum(10)
