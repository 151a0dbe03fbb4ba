"""A job that begins when a browser shows it: before that, always the same moment and no thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader
from tests.support.polling import until
from widgets import JobView, OnSight, QueueView, ThroughputView


def endless() -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64, buffer_timeout_ms=10), 2)
    environment.source(lambda i, n: IterableReader(range(i, 10**9, n))).rebalance().sink(bool)
    return environment


@pytest.fixture
def job() -> Iterator[OnSight]:
    job = OnSight(endless(), num_task_managers=2, rests={"sink": 5, "source": 1})
    yield job
    job.cancel()


def num_records(job: OnSight) -> int:
    return sum(task.num_records_in for task in job.snapshot().tasks)


def show(view: QueueView | JobView | ThroughputView) -> None:
    view._on_message(view, {"type": "visible", "view": "one"}, None)


def test_where_nobody_looks_it_is_one_moment_and_no_thread_begins(job: OnSight) -> None:
    before = threading.active_count()
    view = QueueView(job)
    words = view.text()
    assert "(recorded in the simulation, sink is slow)" in words
    assert "(recorded in the simulation, sink is slow)" in view.svg()
    again = OnSight(endless(), num_task_managers=2, rests={"sink": 5, "source": 1})
    assert (words, view.svg()) == (QueueView(again).text(), QueueView(again).svg())
    assert (threading.active_count(), job.run, job.is_done) == (before, None, False)
    with pytest.raises(LocalUsageError, match="has not begun"):
        job.slow("sink", 1)
    view.close()


def test_the_first_who_looks_begins_it_and_all_see_the_same(job: OnSight) -> None:
    one, other = QueueView(job), JobView(job)
    show(one)
    run = until(lambda: job.run)
    show(other)
    still = num_records(OnSight(endless(), num_task_managers=2))
    until(lambda: num_records(job) > still + 1_000)
    assert job.run is run
    rests = {"source-0": 1, "source-1": 1, "sink-0": 5, "sink-1": 5}
    until(lambda: {task.name: task.rest_ms for task in job.snapshot().tasks} == rests)
    assert "recorded" not in one.text()
    job.pause()
    assert job.is_paused
    for view in (one, other):
        view.close()
    job.cancel()
    assert until(lambda: not any(each.name.startswith(("tm-", "source-", "sink-")) for each in threading.enumerate()))
    job.begin()
    assert job.run is run, "after the end it begins no more"


def test_a_job_that_was_ended_before_anybody_looked_never_begins(job: OnSight) -> None:
    job.cancel()
    view = QueueView(job)
    show(view)
    until(lambda: view.sampler is not None and not view.sampler.is_alive)
    assert (job.run, job.is_done) == (None, True)
    view.close()


def test_the_slider_stands_where_the_job_is(job: OnSight) -> None:
    assert QueueView(job)._topology["control"]["rests_ms"] == {"sink": 5, "source": 1}
    with ThreadedRun(endless()) as run:
        run.start()
        run.slow("sink", 50)
        until(lambda: run.snapshot().tasks[-1].rest_ms)
        assert QueueView(run)._topology["control"]["rests_ms"] == {"sink-0": 50, "sink-1": 50}


def test_rates_begin_with_the_run_and_not_with_the_moment_before_it(job: OnSight) -> None:
    view = ThroughputView(job)
    assert all(rate in (None, 0) for series in view.model()["series"] for rate in series["rates_per_s"])
    assert not view._samples, "what was counted in the simulation is no beginning of what the run counts"
    show(view)
    until(lambda: num_records(job) > 1_000 and len(view._samples) > 2)
    assert min(rate for series in view.model()["series"] for rate in series["rates_per_s"] if rate is not None) >= 0
    view.close()
