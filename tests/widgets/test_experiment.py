"""The experiment that varies a consumer's speed: it marks, measures, ends, and leaves the task at full speed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from widgets import ConsumerSpeed, ThroughputView

DEADLINE_S = 120.0


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
    assert rests(run)[-1] == 4.0
    assert experiment.join(DEADLINE_S)
    assert [phase.percent for phase in experiment.phases] == [50, 100]
    assert [mark["words"] for mark in view.model()["marks"]] == ["50 %", "100 %"]
    assert all(rate > 0 for phase in experiment.phases for rate in phase.records_per_s.values())
    assert rests(run) == [0.0] * len(rests(run))
    assert "2 of 2 phases" in repr(experiment)
    view.close()


class Modelled:
    """A run as arithmetic: each look at it is 100 ms later, and all are as fast as the slower of the two tasks.

    A step of the source is 64 records and 0.2 ms of work, one of the sink a buffer of 2,700 and 9 ms.
    """

    is_done = False

    def __init__(self, run):
        self.shot, self.rests, self.calls, self.passed = run.snapshot(), {"source": 0.0, "sink": 0.0}, [], 0.0

    def slow(self, name, rest_ms):
        self.rests[name] = rest_ms
        self.calls.append((name, round(rest_ms, 1)))

    def snapshot(self):
        self.passed += 100 * min(64 / (0.2 + self.rests["source"]), 2_700 / (9 + self.rests["sink"]))
        (manager,) = self.shot.task_managers
        tasks = tuple(replace(task, num_records_in=round(self.passed)) for task in manager.tasks)
        self.shot = replace(self.shot, time_ms=self.shot.time_ms + 100, task_managers=(replace(manager, tasks=tasks),))
        return self.shot


def test_by_default_the_producer_is_held_first_and_then_the_consumer(run):
    """As the texts have it: the producer at 60 %, the consumer at 30 %, both free, the consumer at 30 % again."""
    view, modelled = ThroughputView(run), Modelled(run)
    experiment = ConsumerSpeed(modelled, "sink", seconds=0.1, pace_ms=4, view=view)
    assert "not started; .start() begins" in repr(experiment)
    assert experiment.start().join(DEADLINE_S)
    words = ["sender 60 %", "reader 30 %", "100 %", "reader 30 %", "100 %"]
    assert [mark["words"] for mark in view.model()["marks"]] == words
    assert list(dict.fromkeys(name for name, rest_ms in modelled.calls if rest_ms > 4)) == ["source", "sink"]
    assert modelled.rests == {"source": 0.0, "sink": 0.0}
    view.close()


def test_whoever_is_held_is_held_at_that_part_of_the_records_however_many_a_step_has(run):
    experiment = ConsumerSpeed(Modelled(run), "sink", seconds=0.1, pace_ms=4)
    assert experiment.start().join(DEADLINE_S)
    full = 2_700 / (9 + 4) * 1_000  # records a second at 100 %, by arithmetic
    for phase, percent in zip(experiment.phases, (60, 30, 100, 30, 100), strict=True):
        assert phase.percent == percent
        assert list(phase.records_per_s.values()) == pytest.approx([full * percent / 100] * 2, rel=0.05)


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
