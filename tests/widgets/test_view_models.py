"""A snapshot becomes plain data that says the same."""

from __future__ import annotations

import json

import pytest

from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from widgets import Recording, pack, pipeline_model, topology


def test_every_channel_knows_its_two_tasks(simulation):
    known = topology(simulation.snapshot())
    assert [(c["from_task"], c["to_task"]) for c in known["channels"]] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert [(t["column"], t["row"]) for t in known["tasks"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [t["subtask"] for t in known["tasks"]] == [0, 1, 0, 1]


def test_channels_agree_with_the_engine_wherever_the_names_are_alike(job):
    environment = job()
    with Simulation(environment) as simulation:
        graph = simulation.deployment.graph
        wanted = []
        for index, edge in enumerate(graph.job.edges):
            for subtask in range(2):
                source = graph.job.vertices[edge.source]
                wanted += [
                    (f"{source.name}-{subtask}", f"{graph.job.vertices[edge.target].name}-{target}")
                    for target in graph.targets(index, subtask)
                ]
        known = topology(simulation.snapshot())
        names = [task["name"] for task in known["tasks"]]
        assert [(names[c["from_task"]], names[c["to_task"]]) for c in known["channels"]] == wanted


def test_every_buffer_of_an_output_is_home_queued_or_being_read(simulation):
    known = topology(simulation.snapshot())
    seen = 0
    while simulation.step() is not None:
        model = pipeline_model(simulation.snapshot(), known)
        held = sum(o["home_buffers"] + o["queued_buffers"] + o["reading_buffers"] for o in model["outputs"])
        assert held + model["num_free_segments"] == model["num_total_segments"]
        seen = max(seen, sum(o["queued_buffers"] for o in model["outputs"]))
    assert seen > 3


def test_a_source_without_buffers_is_backpressured_though_nobody_steps_it(job):
    with Simulation(job(400), seed=1) as simulation:
        while any("source" in str(action) for action in simulation.enabled()):
            simulation.step(next(action for action in simulation.enabled() if "source" in str(action)))
        model = pipeline_model(simulation.snapshot())
    assert [task["progress"] for task in model["tasks"]] == ["backpressured", "backpressured", "made", "made"]


def test_event_time_ends_travel_as_words(recording):
    assert {t["watermark_state"] for t in recording.model(0)["tasks"]} == {"none"}
    assert {t["watermark_state"] for t in recording.model(-1)["tasks"]} == {"end"}


def test_a_frame_is_under_two_kilobytes(recording):
    assert max(len(json.dumps(pack(recording.model(index)))) for index in range(len(recording))) < 2_000


def test_a_recording_goes_to_json_and_back(recording, tmp_path):
    recording.save(tmp_path / "run.json")
    again = Recording.load(tmp_path / "run.json")
    assert again.moments == recording.moments
    assert again.topology == recording.topology


def test_a_recording_keeps_the_newest_frames(job):
    with Simulation(job(), seed=3) as simulation:
        recording = Recording.of(simulation, max_frames=10)
    assert len(recording) == 10
    assert recording.num_dropped == simulation.num_steps + 1 - 10
    assert recording.model(-1)["num_steps"] == simulation.num_steps


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}', "null"])
def test_what_is_no_recording_is_refused(text):
    with pytest.raises(LocalUsageError, match=r"not a recording|not 'sluice-recording-2'"):
        Recording.from_json(text)
