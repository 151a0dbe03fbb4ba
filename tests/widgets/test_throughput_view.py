"""Rates over time: true, also between two looks, and with a word where something was changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from tests.support.polling import until
from widgets import OnSight, Recording, ThroughputView
from widgets.throughput_view import _heights, _number, _round_up


class Flow:
    """A job whose one task has taken what a function of time says."""

    is_done = False

    def __init__(self, snapshot: JobSnapshot, counts) -> None:
        self.time_ms = 0.0
        self._snapshot, self._counts = snapshot, counts

    def snapshot(self) -> JobSnapshot:
        part = self._snapshot.task_managers[0]
        task = replace(part.tasks[0], num_records_in=int(self._counts(self.time_ms)))
        parts = (replace(part, tasks=(task, *part.tasks[1:])),)
        return replace(self._snapshot, time_ms=self.time_ms, task_managers=parts)


@pytest.fixture
def flow(simulation):
    """60 records a millisecond for ten seconds, then 30."""
    return Flow(simulation.snapshot(), lambda t: 60 * t if t < 10_000 else 600_000 + 30 * (t - 10_000))


def rates(view):
    return view.model()["series"][0]["rates_per_s"]


def test_the_rate_is_what_has_flowed_in_the_time(flow):
    view = ThroughputView(flow, seconds=20)
    for time_ms in range(0, 20_001, 100):
        flow.time_ms = float(time_ms)
        view.model()
    found = rates(view)
    view.close()
    assert found[5:20] == [60_000.0] * 15
    assert found[-15:] == [30_000.0] * 15
    assert found[0] is None  # before that nobody looked
    assert "30k /s now, 900k in all" in view.text()


def test_only_the_last_seconds_are_shown(flow):
    view = ThroughputView(flow, seconds=2)
    for time_ms in range(0, 20_001, 100):
        flow.time_ms = float(time_ms)
        view.model()
    model = view.model()
    view.close()
    assert (model["start_ms"], model["end_ms"]) == (18_000.0, 20_000.0)
    assert set(model["series"][0]["rates_per_s"]) == {30_000.0}


def test_a_recording_has_one_scale_and_nothing_after_its_moment(job):
    with Simulation(job(), seed=3) as simulation:
        recording = Recording.of(simulation)
    view = ThroughputView(recording, at=len(recording) // 2)
    models = [view.model_of(*moment, view._known) for moment in recording.moments]
    view.close()
    assert {(model["start_ms"], model["end_ms"]) for model in models} == {(0.0, models[-1]["end_ms"])}
    num_known = [sum(rate is not None for rate in model["series"][0]["rates_per_s"]) for model in models]
    assert num_known == sorted(num_known)
    assert num_known[-1] >= 46
    last = models[-1]["series"]
    width = models[-1]["end_ms"] / 47
    for series in last:
        area = sum(rate for rate in series["rates_per_s"] if rate is not None) * width / 1_000
        assert area == pytest.approx(series["num_total"], rel=0.05, abs=2)


def test_bytes_and_single_tasks(recording):
    view = ThroughputView(recording, flow="bytes", by="task", at=-1)
    names = [series["name"] for series in view.model()["series"]]
    assert names == [partition.name for partition in recording.moments[0][0].partitions]
    assert sum(series["num_total"] for series in view.model()["series"]) > 100
    view.close()


def test_a_mark_stands_where_it_was_made(job):
    with ThreadedRun(job(200_000)) as run:
        view = ThroughputView(run.start())
        view.mark("30 % & less of all")
        marks = view.model()["marks"]
        assert [mark["words"] for mark in marks] == ["30 % & less…"]
        assert "30 % &amp; less…" in view.svg()
        assert "30 % & less…" in view.text()
        view.close()


def test_a_mark_made_before_the_first_look_is_shown(job):
    """A browser asks for the job to begin and for a swap; both can come before the first frame."""
    sight = OnSight(job(200_000))
    view = ThroughputView(sight)
    sight.begin()
    view.mark("first")
    time_ms = sight.snapshot().time_ms
    until(lambda: sight.snapshot().time_ms > time_ms)
    assert [mark["words"] for mark in view.model()["marks"]] == ["first"]
    view.close()
    sight.cancel()


def test_as_many_seconds_as_are_asked_for_are_shown_however_often_it_is_looked(flow):
    view = ThroughputView(flow, seconds=3_600)
    view.mark("first")
    for time_ms in range(0, 300_001, 33):
        flow.time_ms = float(time_ms)
        view.model()
    model = view.model()
    view.close()
    assert model["start_ms"] == 0.0
    assert [mark["words"] for mark in model["marks"]] == ["first"]
    assert model["series"][0]["rates_per_s"][-30:] == [30_000.0] * 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flow": "bits"}, "flow='bits': it is one of 'records', 'bytes'"),
        ({"by": "job"}, "by='job': it is one of 'vertex', 'task'"),
        ({"seconds": 0}, "seconds=0 cannot work"),
        ({"seconds": "5"}, "seconds='5' cannot work"),
        ({"second": 5}, "did you mean 'seconds'"),
    ],
)
def test_what_cannot_be_is_refused(recording, options, message):
    with pytest.raises(LocalUsageError, match=message):
        ThroughputView(recording, **options)


def test_numbers_are_short_and_scales_round():
    assert [_number(value) for value in (0, 7, 999, 1_000, 1_500, 12_345, 2e6)] == [
        "0",
        "7",
        "999",
        "1k",
        "1500",
        "12.3k",
        "2M",
    ]
    assert [_round_up(value) for value in (0, 0.5, 3, 10, 11, 499, 501)] == [0, 1, 5, 10, 20, 500, 1000]
    assert _heights([None, 0.0, 5.0, 10.0], 10) == "- 0 120 240"
