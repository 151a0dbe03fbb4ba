"""The experiment that varies a consumer's speed: it marks, measures, ends, and leaves the task at full speed."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from widgets import ConsumerSpeed, ThroughputView

DEADLINE_S = 30.0


@pytest.fixture
def run():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=20, source_batch=2), 1)
    environment.from_collection(range(10**7)).map(str).start_new_chain().sink(bool)
    with ThreadedRun(environment) as run:
        yield run.start()


def rests(run):
    return [task.rest_ms for task in run.snapshot().tasks]


def test_it_goes_through_its_phases_marks_and_measures_them(run):
    view = ThroughputView(run)
    experiment = ConsumerSpeed(run, "sink", (50, 100), seconds=0.4, pace_ms=4, view=view).start()
    assert rests(run)[-1] == 8.0
    assert experiment.join(DEADLINE_S)
    assert [phase.percent for phase in experiment.phases] == [50, 100]
    assert [mark["words"] for mark in view.model()["marks"]] == ["50 %", "100 %"]
    assert all(rate > 0 for phase in experiment.phases for rate in phase.records_per_s.values())
    assert rests(run) == [0.0] * len(rests(run))
    assert "2 of 2 phases" in repr(experiment)
    view.close()


def test_by_default_the_producer_is_held_first_and_then_the_consumer(run):
    """As the texts have it: the producer at 60 %, the consumer at 30 %, both free, the consumer at 30 % again."""
    view, seen = ThroughputView(run), []

    class Noting:
        is_done = False

        def slow(self, name, rest_ms):
            run.slow(name, rest_ms)
            seen.append((name, round(rest_ms, 1)))

        def snapshot(self):
            return run.snapshot()

    producer = run.snapshot().tasks[0].name
    experiment = ConsumerSpeed(Noting(), "sink", seconds=0.05, pace_ms=3, view=view)
    assert "not started; .start() begins" in repr(experiment)
    assert experiment.start().join(DEADLINE_S)
    assert seen == [
        ("sink", 3.0), (producer, 5.0), ("sink", 10.0), ("sink", 3.0), (producer, 3.0), ("sink", 10.0), ("sink", 3.0),
        (producer, 3.0), ("sink", 0.0), (producer, 0.0),
    ]  # fmt: skip
    words = ["sender 60 %", "reader 30 %", "100 %", "reader 30 %", "100 %"]
    assert [mark["words"] for mark in view.model()["marks"]] == words
    view.close()


def test_it_can_be_stopped_and_ends_with_the_job(run):
    experiment = ConsumerSpeed(run, "sink", seconds=600).start()
    experiment.stop()
    assert experiment.join(DEADLINE_S)
    assert rests(run)[-1] == 0.0
    other = ConsumerSpeed(run, "sink", seconds=0.2).start()
    run.cancel()
    assert other.join(DEADLINE_S)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percents": ()}, "percents=.* cannot work"),
        ({"percents": (60, 0)}, "percents=.* cannot work"),
        ({"percents": 5}, "percents=5 cannot work"),
        ({"percents": (True,)}, "percents=.* cannot work"),
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": "x"}, "seconds='x'"),
        ({"pace_ms": -1}, "pace_ms=-1"),
        ({"pace_ms": None}, "pace_ms=None"),
        ({"view": 5}, "view=5 cannot be marked; give a ThroughputView"),
    ],
)
def test_what_cannot_be_is_refused(run, options, message):
    with pytest.raises(LocalUsageError, match=message):
        ConsumerSpeed(run, "sink", **options)


def test_a_task_that_is_not_there_is_refused_at_once(run):
    with pytest.raises(LocalUsageError, match="no operator 'snik'"):
        ConsumerSpeed(run, "snik").start()


def test_it_starts_once_and_is_not_waited_for_before(run):
    experiment = ConsumerSpeed(run, "sink", (100,), seconds=0.02)
    with pytest.raises(LocalUsageError, match="not been started"):
        experiment.join()
    assert experiment.start().join(DEADLINE_S)
    with pytest.raises(LocalUsageError, match="been started before"):
        experiment.start()


def test_why_it_ended_early_is_told_to_who_waits_for_it(run):
    """A run in processes that was closed meanwhile has nothing left to look at."""

    class Lost:
        is_done = False

        def slow(self, name, rest_ms):
            run.slow(name, rest_ms)

        def snapshot(self):
            raise LocalUsageError("the processes of this run have ended")

    experiment = ConsumerSpeed(Lost(), "sink", (100,), seconds=0.02).start()
    with pytest.raises(LocalUsageError, match="have ended"):
        experiment.join(DEADLINE_S)
    assert isinstance(experiment.error, LocalUsageError)
