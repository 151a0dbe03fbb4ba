"""The race of the barriers is drawn as the engine runs it."""

from __future__ import annotations

import pytest

from refimpl.config import CheckpointingMode, Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.records import LONG
from refimpl.task import IterableReader
from widgets import AlignmentView, Recording

EXACTLY_ONCE, AT_LEAST_ONCE = CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE


def race(**options):
    config = Config(**{"segment_size_bytes": 64, "num_buffers": 60, "checkpoint_interval_ms": 1, **options})
    environment = StreamEnvironment(config, 2)
    numbers = environment.source(lambda i, n: IterableReader(range(i, 400, n)), "source", LONG)
    numbers.rebalance().map(abs, "map", LONG).rebalance().sink(bool, "sink")
    return environment


def race_of_two_exchanges():
    """The map reads two exchanges, so it has two gates; the second one's channels count on behind the first's."""
    config = Config(segment_size_bytes=64, num_buffers=80, checkpoint_interval_ms=1)
    environment = StreamEnvironment(config, 2)
    one, two = (
        environment.source(lambda i, n: IterableReader(range(i, 300, n)), name, LONG) for name in ("one", "two")
    )
    one.rebalance().union(two.rebalance()).map(abs, "map", LONG).rebalance().sink(bool, "sink")
    return environment


def record(environment, num_task_managers=1):
    with Simulation(environment, seed=4, num_task_managers=num_task_managers, max_delay_ms=0.1) as simulation:
        return Recording.of(simulation)


def models_of(recording):
    view = AlignmentView(recording)
    try:
        return [view.model_of(*moment, view._known) for moment in recording.moments], view
    finally:
        view.close()


@pytest.mark.parametrize("num_task_managers", [1, 2])
@pytest.mark.parametrize("mode", CheckpointingMode)
@pytest.mark.parametrize("version", FlinkVersion)
def test_a_channel_is_shown_as_it_is_for_the_task(mode, version, num_task_managers):
    recording = record(race(checkpointing_mode=mode, flink_version=version), num_task_managers)
    models, view = models_of(recording)
    seen = states_seen(models, recording)
    assert seen == {"reads", "comes", "ended", "waits" if mode is EXACTLY_ONCE else "passed"}
    assert any("completed" in line for line in view.words_of(models[-1]))


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_channels_of_several_exchanges_are_those_of_one_task(num_task_managers):
    recording = record(race_of_two_exchanges(), num_task_managers)
    models, _ = models_of(recording)
    assert states_seen(models, recording) == {"reads", "comes", "ended", "waits"}
    names = {task["name"]: [channel["name"] for channel in task["channels"]] for task in models[0]["tasks"]}
    assert [name.partition("-")[0] for name in names["map-0"]] == ["one", "one", "two", "two"]


def states_seen(models, recording):
    """The states of all channels at all moments, each checked against what the task knows."""
    seen = set()
    for model, (moment, _) in zip(models, recording.moments, strict=True):
        for task, snapshot in zip(model["tasks"], moment.tasks, strict=True):
            alignment = snapshot.alignment
            if alignment is None:
                assert task["channels"] == []
                continue
            arrived = {n for n, each in enumerate(task["channels"]) if each["state"] in ("waits", "passed")}
            ended = {n for n, each in enumerate(task["channels"]) if each["state"] == "ended"}
            assert arrived == set(alignment.arrived) - ended
            assert (task["num_arrived"], task["num_completed"]) == (len(alignment.arrived), alignment.num_completed)
            for channel in task["channels"]:
                seen.add(channel["state"])
                _check_lane(channel)
    return seen


def _check_lane(channel):
    lane, state = channel["lane"], channel["state"]
    if state == "waits":
        assert lane[0] == "barrier"
        assert lane.count("behind") == channel["behind_buffers"] or lane[-1] != "none"  # there are more than fit
        assert "data" not in lane
    if state == "comes" and "barrier" in lane:
        assert lane.index("barrier") == channel["ahead_buffers"]
    if state in ("reads", "ended"):
        assert (channel["checkpoint"], "barrier" in lane) == (None, False)


def test_what_the_producer_has_behind_the_barrier_is_counted():
    recording = record(race())
    models, view = models_of(recording)
    behind = 0
    for model, (moment, _) in zip(models, recording.moments, strict=True):
        queues = {f"{p.name}[{sub.index}]": sub for p in moment.partitions for sub in p.subpartitions}
        for task in model["tasks"]:
            for channel in task["channels"]:
                if channel["state"] == "waits":
                    sub = queues[channel["name"]]
                    assert sub.is_blocked
                    assert channel["behind_buffers"] == sum(entry.data_type.is_buffer for entry in sub.queue)
                    behind += channel["behind_buffers"]
                    number = channel["checkpoint"]
                    words = f"{channel['name']}: waits with barrier {number}, {channel['behind_buffers']} buffer"
                    assert words in view.text_of(model, "", "")
    assert behind > 10


def test_a_cut_says_how_many_records_were_before_it():
    models, view = models_of(record(race()))
    last = models[-1]
    for task in last["tasks"]:
        assert task["cut"]["checkpoint"] >= 1
        words = f"after {task['cut']['num_records_in']} records in, {task['cut']['num_records_out']} out"
        assert words in view.text_of(last, "", "")
        assert words in view.svg_of(last, "", "")


def test_a_job_that_sends_none_says_how_it_would():
    models, view = models_of(record(race(checkpoint_interval_ms=0)))
    note = "No barrier has been sent so far: sources send one every checkpoint_interval_ms of Config, with 0 none."
    assert all(note in view.text_of(model, "", "") and note in view.svg_of(model, "", "") for model in models[::50])
    models, view = models_of(record(race()))
    assert note in view.text_of(models[0], "", "")
    assert note not in view.text_of(models[-1], "", "")
