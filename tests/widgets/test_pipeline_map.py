"""What the map does with each kind of source."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from tests.support.drawings import SVG
from widgets import PipelineMap, Recording, topology
from widgets.pipeline_svg import MAX_CHANNELS


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
    view.sampler._thread.join(120)
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


@pytest.fixture(params=[9, 20])
def wide(request):
    """A moment of a job of so many subtasks, and how many."""
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=9_000), request.param)
    environment.from_collection(range(90)).rebalance().map(str).rebalance().sink(bool)
    with Simulation(environment, seed=1) as simulation:
        return simulation.run(max_steps=30).snapshot(), request.param


def test_of_a_wide_job_eight_of_each_are_drawn_and_the_rest_is_counted(wide):
    snapshot, parallelism = wide
    view = PipelineMap(snapshot)
    svg, text, total = view.svg(), repr(view), parallelism + parallelism**2
    root = ET.fromstring(svg)
    drawn = [element for element in root.iter(f"{SVG}g") if element.get("data-ch")]
    assert len(drawn) == 8 + 8 * 8
    assert len([element for element in root.iter(f"{SVG}g") if element.get("data-task")]) == 1 + 8 + 8
    assert f"… and {2 * (parallelism - 8)} more tasks and {total - len(drawn)} more channels, in the table" in svg
    assert text.splitlines()[0] == f"Pipeline map: {1 + 2 * parallelism} tasks, {total} channels"
    assert len(re.findall(r"^      \[\d+\] ", text, re.MULTILINE)) == total
    assert len(view.frame_of(view.model())[6]) == len(view._topology["channels"]) == total
    assert len(svg) - len(text) < 300_000
    for element in drawn:  # what is drawn is said of the right channel
        channel = view.model()["channels"][int(element.get("data-ch"))]
        assert element.get("data-queued") == str(len(channel["queue"]))


def test_of_a_long_job_no_more_channels_are_drawn_than_a_picture_holds():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=2_000), 8)
    stream = environment.from_collection(range(9))
    for number in range(4):
        stream = stream.rebalance().map(str, f"map {number}")
    stream.sink(bool)
    with Simulation(environment) as simulation:
        svg = PipelineMap(simulation.snapshot()).svg()
    assert svg.count("data-ch=") == MAX_CHANNELS
    assert f"… and {8 + 3 * 64 - MAX_CHANNELS} more channels, in the table" in svg


def test_a_job_that_fits_is_drawn_whole_and_nothing_is_counted(simulation):
    assert "more channels" not in PipelineMap(simulation.snapshot()).svg()
