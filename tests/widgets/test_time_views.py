"""Event time and the past: who holds a task back, and what was, in each branch its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader, TumblingWindows
from tests.support.small_jobs import Count
from widgets import Recording, Stepper, ThroughputView, TimelineView, WatermarkView


def timed(num_records=200):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=60, source_batch=2), 2)
    (
        environment.source(lambda i, n: IterableReader(range(i, num_records, n)))
        .assign_timestamps(lambda value: value * 1_000, 0, every=4)
        .key_by(lambda value: value % 5)
        .window(TumblingWindows(10_000))
        .aggregate(Count())
        .sink(bool)
    )
    return environment


@pytest.fixture(scope="module")
def run():
    with Simulation(timed(), seed=3) as simulation:
        return Recording.of(simulation)


def models_of(view_class, source):
    view = view_class(source)
    try:
        return [view.model_of(*moment, view._known) for moment in view.recording.moments], view
    finally:
        view.close()


def test_the_least_of_the_channels_is_the_time_of_the_task(run):
    models, view = models_of(WatermarkView, run)
    held = 0
    for model, (moment, _) in zip(models, run.moments, strict=True):
        for task, snapshot in zip(model["tasks"], moment.tasks, strict=True):
            least = [channel for channel in task["channels"] if channel["is_least"]]
            if not least:
                continue
            held += 1
            assert min(snapshot.channel_watermarks) == snapshot.channel_watermarks[task["channels"].index(least[0])]
            if least[0]["watermark_state"] == "set":
                assert least[0]["watermark_ms"] >= (task["watermark_ms"] or 0)
                words = f"{least[0]['name']}: {least[0]['watermark_ms']} ms  ▲ holds it back"
                assert words in view.text_of(model, "", "")
    assert held > 20
    last = models[-1]["tasks"]
    assert {channel["watermark_state"] for task in last for channel in task["channels"]} == {"end"}
    assert not any(channel["is_least"] for task in last for channel in task["channels"])


def test_the_axis_of_a_recording_does_not_move(run):
    models, _ = models_of(WatermarkView, run)
    spans = {(model["start_ms"], model["end_ms"]) for model in models}
    assert len(spans) == 1
    ((start, end),) = spans
    assert 0 <= start < end <= 200_000


def test_an_idle_channel_is_said_not_to_count(run):
    moment = run.moments[len(run) // 2][0]
    part = moment.task_managers[0]
    tasks = tuple(replace(task, idle_channels=(0,)) if task.channel_watermarks else task for task in part.tasks)
    idle = replace(moment, task_managers=(replace(part, tasks=tasks),))
    view = WatermarkView(idle)
    assert repr(view).count("idle: does not count") == 2
    assert "holds it back" not in repr(view)
    view.close()


def test_a_column_is_a_moment_and_the_newest_stands_at_the_end(run):
    models, _ = models_of(TimelineView, run)
    for at in (0, 5, 47, 60, len(run) - 1):
        columns = list(zip(*(task["progress"] for task in models[at]["tasks"]), strict=True))
        wanted = [tuple(task["progress"] for task in run.model(place)["tasks"]) for place in range(at + 1)][-48:]
        assert columns == wanted
    acting = [[task["name"] for task in model["tasks"] if task["is_acting"]] for model in models]
    for names, (_, action) in zip(acting, run.moments, strict=True):
        assert names == ([action.removeprefix("step ")] if action.startswith("step ") else [])


def test_each_branch_of_a_stepper_has_its_own_past():
    stepper = Stepper(timed(), seed=3)
    stepper.run(120)
    stepper.fork(30, slow="window → sink-0", delay_ms=5)
    view = TimelineView(stepper)
    known = view._known
    main = view.model_of(*stepper.recording.moments[100], known)
    other = view.model_of(*stepper.fork_recording.moments[100], known)
    assert main["tasks"] != other["tasks"]
    for model, recording in ((main, stepper.recording), (other, stepper.fork_recording)):
        wanted = [tuple(task["progress"] for task in recording.model(place)["tasks"]) for place in range(53, 101)]
        assert list(zip(*(task["progress"] for task in model["tasks"]), strict=True)) == wanted
    view.close()
    stepper.close()


def test_a_source_has_no_watermark_to_show_and_no_mark_on_the_axis(run):
    models, view = models_of(WatermarkView, run)
    for model in (models[0], models[-1]):
        (source, *_) = (task for task in model["tasks"] if not task["channels"])
        assert (source["watermark_state"], source["watermark_ms"]) == ("source", None)
        assert f"{source['name']}: a source: reads no channel" in view.text_of(model, "", "")
        facts, number = view.facts_of(model), model["tasks"].index(source)
        assert facts[f"{number} at"] == -1


def test_an_axis_without_a_time_has_no_numbers(run):
    view = WatermarkView(run.moments[0][0])
    assert "no watermark that is a time" in repr(view)
    facts = view.facts_of(view.model())
    assert (facts["start"], facts["end"]) == ("", "")
    view.close()


def tied():
    """A job on two TaskManagers: what is on its way arrives at a time that others share."""
    with Simulation(timed(), seed=1, num_task_managers=2, max_delay_ms=0.05) as simulation:
        run = Recording.of(simulation, max_steps=200)
    times = [moment.time_ms for moment, _ in run.moments]
    assert len(set(times)) < len(times)
    return run


def columns_of(model):
    return list(zip(*(task["progress"] for task in model["tasks"]), strict=True))


def pasts_of(recording):
    states = [tuple(task["progress"] for task in recording.model(place)["tasks"]) for place in range(len(recording))]
    return [states[max(0, place - 47) : place + 1] for place in range(len(recording))]


def test_moments_that_share_a_time_each_have_a_column():
    run = tied()
    models, _ = models_of(TimelineView, run)
    assert [columns_of(model) for model in models] == pasts_of(run)


def test_so_they_have_in_both_branches_of_a_stepper():
    stepper = Stepper(timed(), seed=1, num_task_managers=2, max_delay_ms=0.05)
    view = TimelineView(stepper)
    stepper.run(150)
    stepper.fork(60, buffers=3)
    for recording in (stepper.recording, stepper.fork_recording):
        found = [columns_of(view.model_of(*moment, view._known)) for moment in recording.moments]
        assert found == pasts_of(recording)
    assert columns_of(view.model()) == pasts_of(stepper.recording)[-1]
    view.close()
    stepper.close()


def test_so_they_have_when_a_simulation_is_stepped_by_click(monkeypatch):
    sent = []
    monkeypatch.setattr(TimelineView, "send", lambda self, content, buffers=None: sent.append(content))
    with Simulation(timed(), seed=1, num_task_managers=2, max_delay_ms=0.05) as simulation:
        view = TimelineView(simulation)
        for _ in range(12):
            view._on_message(view, {"type": "step", "n": 10}, None)
        wanted = pasts_of(Recording.of(Simulation(timed(), 1, num_task_managers=2, max_delay_ms=0.05), max_steps=120))
        found = [columns_of(view.model_of(*moment, view._known)) for moment in view.recording.moments]
        assert found == wanted
        assert columns_of(view.model()) == wanted[-1]
        stepped = [frame for message in sent for frame in message["frames"]]
        view._on_message(view, {"type": "hello"}, None)
        assert sent[-1]["frames"][1:] == stepped
        view.close()


def test_a_total_is_that_of_the_moment_and_not_of_the_next_one():
    exact = tied()
    run = Recording(exact.topology)
    for moment, action in exact.moments:
        run.add(replace(moment, time_ms=round(moment.time_ms, 1)), action)
    models, view = models_of(ThroughputView, run)
    for model, (moment, _) in zip(models, run.moments, strict=True):
        totals = {series["name"]: series["num_total"] for series in model["series"]}
        assert totals == view._counts(moment)


def test_a_recording_knows_which_of_its_moments_one_is():
    with Simulation(timed(), seed=3) as simulation:
        run = Recording.of(simulation, max_steps=20, max_frames=6)
    assert [run.place_of(moment) for moment, _ in run.moments] == list(range(6))
    again, other = run.moments[0][0], run.moments[1][0]
    run.add(again)
    assert (run.place_of(again), run.place_of(other)) == (5, 0)
    run.add(again)
    assert (run.place_of(again), run.place_of(other)) == (5, None)
    assert [run.place_of(moment) for moment, _ in run.moments] == list(range(6))
