"""What a machine's pace is: figures of this machine, and words for them."""

from __future__ import annotations

import pytest

from tests.bench import pace as module
from tests.bench.pace import pace, pace_in_words


def test_it_says_what_a_call_a_wake_and_a_copy_take() -> None:
    found = pace()
    assert list(found) == ["call_ns", "wake_us", "copy_us"]
    assert all(value > 0 for value in found.values())


def test_it_is_the_median_of_one_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    durations = iter([5.0, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0])

    def work(count: int) -> None:
        nonlocal now_s
        now_s += next(durations) * count

    monkeypatch.setattr(module.time, "perf_counter", lambda: now_s)
    assert module.median_of(work, 4) == 5.0


def test_it_is_said_in_words() -> None:
    found = {"call_ns": 20.4, "wake_us": 11.6, "copy_us": 0.84}
    words = "an empty call of Python's takes 20 ns, waking a thread 12 us, copying 32 KiB 0.8 us"
    assert pace_in_words(found) == words
