"""Spark's PID estimator and its token bucket."""

from __future__ import annotations

import pytest

from refimpl.rivals import SLOW, Course, PIDRateEstimator, SparkStreaming, TokenBucket, Workload, spark_rate


def test_the_constants_are_those_of_rate_estimator() -> None:
    assert (spark_rate.PROPORTIONAL, spark_rate.INTEGRAL, spark_rate.DERIVED) == (1.0, 0.2, 0.0)
    assert spark_rate.MIN_RATE == 100


def test_the_first_batch_only_stores() -> None:
    estimator = PIDRateEstimator(min_rate=10)
    assert estimator.compute(1_000, 500, 800, 0) is None
    assert estimator.compute(2_000, 500, 800, 0) == 625  # p of the first, and no error


def test_a_batch_that_teaches_nothing_is_skipped() -> None:
    estimator = PIDRateEstimator()
    assert [estimator.compute(1_000, 0, 10, 0), estimator.compute(1_000, 10, 0, 0)] == [None, None]
    estimator.compute(1_000, 500, 500, 0)
    assert estimator.compute(1_000, 500, 500, 0) is None  # not newer
    assert estimator.compute(1_001, 0, 500, 0) is None
    assert estimator.compute(1_001, 500, 500, 0) == 1_000


def test_the_error_is_the_last_rate_less_what_was_processed() -> None:
    estimator = PIDRateEstimator(min_rate=1)
    estimator.compute(1_000, 1_000, 1_000, 0)
    assert estimator.compute(2_000, 600, 1_000, 0) == 600
    half = PIDRateEstimator(proportional=0.5, min_rate=1)
    half.compute(1_000, 1_000, 1_000, 0)
    assert half.compute(2_000, 600, 1_000, 0) == 800


def test_what_waited_counts_as_missed() -> None:
    estimator = PIDRateEstimator(min_rate=1)
    estimator.compute(1_000, 1_000, 1_000, 0)
    assert estimator.compute(2_000, 1_000, 1_000, 2_000) == 1_000 - 0.2 * (2_000 * 1_000 / 1_000)


def test_the_derived_part_is_of_two_errors_over_the_time_between() -> None:
    estimator = PIDRateEstimator(proportional=0, integral=0, derived=1, min_rate=1)
    estimator.compute(1_000, 1_000, 1_000, 0)
    assert estimator.compute(3_000, 600, 1_000, 0) == 1_000 - (400 - 0) / 2


def test_never_below_the_least_rate() -> None:
    estimator = PIDRateEstimator()
    estimator.compute(1_000, 75, 1_000, 0)
    assert estimator.compute(2_000, 75, 1_000, 50_000) == 100


def test_a_bucket_lets_one_second_through_after_a_pause() -> None:
    bucket = TokenBucket()
    assert bucket.wait_ms(0) == 0
    bucket.update(10, 0)
    bucket.take(0)
    assert bucket.wait_ms(0) == 100
    at_once = 0
    while not bucket.wait_ms(60_000):
        bucket.take(60_000)
        at_once += 1
    assert at_once == 11  # ten stored, and one on debt


def test_a_bucket_keeps_its_rate() -> None:
    bucket, now, passed = TokenBucket(), 0.0, 0
    bucket.update(40, 0)
    while now < 10_000:
        now += bucket.wait_ms(now)
        bucket.take(now)
        passed += 1
    assert passed == pytest.approx(400, abs=2)


def test_a_rate_is_at_most_the_maximum_and_none_of_zero_is_taken() -> None:
    bucket = TokenBucket(max_rate=50.0)
    bucket.update(80, 0)
    assert bucket.rate == 50
    bucket.update(30, 0)
    bucket.update(0, 0)
    bucket.update(-5, 0)
    assert bucket.rate == 30


def test_batches_wait_without_a_bound_and_the_rate_is_a_whole_number() -> None:
    system = SparkStreaming()
    course = Course(system, Workload(3))
    course.run_until(120_000)
    assert len(system.waiting) >= 5
    assert system.limits[SLOW].rate == 100  # more than the 75 that the sink can do
    course.run_until(250_000)
    assert system.limits[SLOW].rate == int(system.limits[SLOW].rate) > 100
    assert system.num_batches > 150


def test_a_batch_begins_when_the_one_before_has_ended() -> None:
    system = SparkStreaming()
    course = Course(system, Workload(1))
    course.run_until(999)
    assert course.left == [0, 0]
    course.run_until(2_500)
    assert course.left[SLOW] >= 190
