"""What the map does with each kind of source."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from widgets import PipelineMap, Recording, topology


@pytest.fixture
def sent(monkeypatch):
    messages = []
    monkeypatch.setattr(PipelineMap, "send", lambda self, content, buffers=None: messages.append(content))
    return messages


def test_a_snapshot_stands_still(simulation):
    view = PipelineMap(simulation.snapshot())
    assert (view._mode, view._controls) == ("still", [])


def test_a_recording_begins_where_most_buffers_wait(recording):
    view = PipelineMap(recording)
    queued = [sum(o["queued_buffers"] for o in recording.model(i)["outputs"]) for i in range(len(recording))]
    assert queued[view._at] == max(queued)
    assert view.model() == recording.model(view._at)
    assert PipelineMap(recording, at=-1)._at == len(recording) - 1


def test_a_simulation_takes_the_steps_that_were_asked_for(simulation, sent):
    view = PipelineMap(simulation)
    view._on_message(view, {"type": "step", "n": 3}, None)
    assert simulation.num_steps == 3
    assert [len(message["frames"]) for message in sent] == [3]
    view._on_message(view, {"type": "hello"}, None)
    assert len(sent[-1]["frames"]) == 4
    assert view.model()["num_steps"] == 3


def test_one_click_takes_a_bounded_number_of_steps(job, sent):
    with Simulation(job(2_000)) as simulation:
        view = PipelineMap(simulation)
        view._on_message(view, {"type": "step", "n": 10**9}, None)
        assert simulation.num_steps == 100


def test_a_finished_simulation_says_so(simulation, sent):
    simulation.run()
    view = PipelineMap(simulation)
    view._on_message(view, {"type": "step"}, None)
    assert sent == [{"type": "frames", "frames": [], "done": True, "error": ""}]


def no_runway(value: int) -> int:
    if value > 3:
        raise ValueError(f"no runway for {value}")
    return value


def failing_job() -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=12), 1)
    environment.from_collection(range(10)).map(no_runway).rebalance().sink(bool)
    return environment


def test_a_simulation_that_fails_says_why_and_takes_no_further_step(sent):
    simulation = Simulation(failing_job())
    view = PipelineMap(simulation)
    for _ in range(2):
        view._on_message(view, {"type": "step", "n": 100}, None)
    assert ["no runway for 4" in message["error"] for message in sent] == [True, True]
    assert sent[1]["frames"] == []
    assert "✗ the job failed: UserCodeError" in repr(view)
    assert "no runway for 4" in view.svg()


def test_a_run_on_threads_that_fails_says_why(sent):
    run = ThreadedRun(failing_job())
    view = PipelineMap(run)
    with pytest.raises(UserCodeError):
        run.run()
    view._on_message(view, {"type": "visible", "view": "a"}, None)
    view.sampler._thread.join(10)
    assert not view.sampler.is_alive
    assert [(m["done"], "no runway for 4" in m["error"]) for m in sent] == [(True, True)]
    assert "no runway for 4" in repr(view)
    view.close()


def test_a_threaded_run_is_live_and_untouched_until_someone_looks(job):
    with ThreadedRun(job()) as run:
        view = PipelineMap(run)
        assert (view._mode, view._controls) == ("live", ["pause", "resume", "slow", "set_buffer_timeout", "swap"])
        assert not view.sampler.is_alive
        assert repr(view) == repr(PipelineMap(run))


def test_two_shows_of_one_widget_count_as_two(job):
    with ThreadedRun(job()) as run:
        view = PipelineMap(run)
        for name, kind in (("a", "visible"), ("b", "visible"), ("a", "hidden")):
            view._on_message(view, {"type": kind, "view": name}, None)
        assert view.sampler._is_watched.is_set()
        view._on_message(view, {"type": "hidden", "view": "b"}, None)
        assert not view.sampler._is_watched.is_set()
        view.close()


def test_controls_a_source_does_not_have_are_not_obeyed(simulation, sent):
    view = PipelineMap(simulation)
    for kind in ("pause", "resume", "close", "snapshot", None):
        view._on_message(view, {"type": kind}, None)
    assert simulation.num_steps == 0
    assert sent == []


@pytest.mark.parametrize("source", [None, 3, "job", object()])
def test_what_cannot_be_shown_is_refused(source):
    with pytest.raises(LocalUsageError, match="cannot be shown; give a Simulation"):
        PipelineMap(source)


def test_an_empty_recording_is_refused(simulation):
    with pytest.raises(LocalUsageError, match="the recording is empty"):
        PipelineMap(Recording(topology(simulation.snapshot())))
