"""A snapshot becomes plain data that says the same."""

from __future__ import annotations

import json

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from widgets import (
    CreditView,
    JobView,
    PipelineMap,
    QueueView,
    Recording,
    SegmentView,
    Stepper,
    credit_model,
    pack,
    pipeline_model,
    pool_model,
    topology,
)


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


@pytest.mark.parametrize("names", [("a → b", "c"), ("a → b-0", "c-0 → d"), ("→", "a → b → c"), ("a", "a → a-1 → a")])
def test_an_arrow_in_a_name_is_part_of_the_name(names):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64), 2)
    environment.from_collection(range(6), names[0]).rebalance().map(str, names[1]).rebalance().sink(bool)
    with Simulation(environment) as simulation:
        known = topology(simulation.snapshot())
        tasks = [task["name"] for task in known["tasks"]]
        for channel in known["channels"]:
            source, target = tasks[channel["from_task"]], tasks[channel["to_task"]]
            assert channel["name"].startswith(f"{source} → {target.rpartition('-')[0]}[")
        for view_class in (PipelineMap, QueueView, JobView):
            view = view_class(simulation)
            assert names[0] in repr(view)
            view.close()


def test_a_damaged_recording_is_refused_in_words(recording, tmp_path):
    data = json.loads(recording.to_json())
    for change in ({"num_dropped": float("inf")}, {"num_dropped": -1}, {"num_dropped": 1.5}, {"max_frames": None}):
        with pytest.raises(LocalUsageError, match=rf"^{next(iter(change))}=.* cannot work"):
            Recording.from_json(json.dumps(data | change))
    with pytest.raises(LocalUsageError, match="not a recording of Sluice: RecursionError"):
        Recording.from_json("[" * 100_000)
    nodes = [[node[0], "of-nobody-0", *node[2:]] if node[0] == "GateSnapshot" else node for node in data["nodes"]]
    with pytest.raises(LocalUsageError, match="not a recording of Sluice: ValueError"):
        Recording.from_json(json.dumps(data | {"nodes": nodes}))
    path = tmp_path / "run.json"
    path.write_bytes(b"\x89PNG\xff\xfe")
    for load in (Recording.load, lambda path: Stepper.load(path, StreamEnvironment())):
        with pytest.raises(LocalUsageError, match=r"run\.json is not a text: 'utf-8' codec"):
            load(path)


def test_a_moment_of_another_job_is_refused(recording):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64), 2)
    environment.from_collection(range(6)).rebalance().map(str).rebalance().sink(bool)
    before = len(recording)
    with Simulation(environment) as simulation, pytest.raises(LocalUsageError, match="another job: of tasks source-0"):
        recording.add(simulation.snapshot())
    with pytest.raises(LocalUsageError, match="a int is no moment of a job"):
        recording.add(5)
    assert len(recording) == before


def test_the_ledger_of_credit_and_the_memory_agree_on_who_has_a_channels_own_buffers(job):
    """At the end nobody has them: they have gone back to their TaskManager."""
    with Simulation(job(), seed=3, num_task_managers=2) as simulation:
        recording = Recording.of(simulation)
    ends = set()
    for snapshot, action in recording.moments:
        model = credit_model(snapshot, recording.topology, action)
        facts = CreditView.facts_of(model)
        held = {
            each["name"]: (each["empty_buffers"], each["used_buffers"])
            for part in pool_model(snapshot)["task_managers"]
            for each in part["channels"]
        }
        for number, channel in enumerate(model["channels"]):
            squares = [facts[f"{number} own {place}"] for place in range(channel["exclusive_buffers"])]
            assert (squares.count(1), squares.count(0)) == held[f"{channel['reader']} from {channel['name']}"]
            assert channel["backlog_buffers"] == 0 or not channel["is_over"]
            ends.add(channel["is_over"])
    assert ends == {False, True}
    last = CreditView(recording, at=-1)
    assert "empty buffers none of its own, 0 floating" in last.text()
    assert " of 2 own<" not in last.svg().partition("</desc>")[2]
    assert last.svg().count('data-states="used own" data-state="absent"') == 4


def test_without_channels_there_are_no_bytes_and_it_says_so():
    environment = StreamEnvironment()
    environment.from_collection(range(3)).map(str).sink(bool)
    with Simulation(environment) as simulation, pytest.raises(LocalUsageError, match=r"no channels.* are chained"):
        SegmentView(simulation)


@pytest.mark.parametrize("source", [5, None, "x", object()])
def test_what_takes_no_steps_cannot_be_recorded_and_is_no_moment(source):
    with pytest.raises(LocalUsageError, match="takes no steps to record; give a Simulation"):
        Recording.of(source)
    for model in (topology, pipeline_model, pool_model):
        with pytest.raises(LocalUsageError, match="is no moment of a job; give a JobSnapshot"):
            model(source)


@pytest.mark.parametrize("max_steps", ["x", -1, 1.5, True])
def test_a_number_of_steps_that_cannot_be_is_refused(simulation, max_steps):
    with pytest.raises(LocalUsageError, match=r"^max_steps=.* cannot work: a whole number from 0 to"):
        Recording.of(simulation, max_steps=max_steps)


@pytest.mark.parametrize("index", [99, -99, "x", None, 1.5, True])
def test_a_moment_that_is_not_there_is_refused(job, index):
    with Simulation(job(), seed=3) as simulation:
        recording = Recording.of(simulation, max_steps=4)
    with pytest.raises(LocalUsageError, match=r"^index=.*: there are 5 moments, from 0 to 4"):
        recording.model(index)
    assert recording.model(-5) == recording.model(0)
    with pytest.raises(LocalUsageError, match="there are 0 moments, as none has been added"):
        Recording(recording.topology).model(0)


def test_a_recording_is_of_a_topology_its_moments_have_words_and_files_a_path(recording):
    with pytest.raises(LocalUsageError, match="known=5 cannot work: what `topology"):
        Recording(5)
    assert repr(Recording({})) == "Recording(0 frames of 0 tasks, 0 dropped)"
    with pytest.raises(LocalUsageError, match="action=5 cannot work"):
        recording.add(recording.moments[0][0], 5)
    environment = StreamEnvironment()
    environment.from_collection([1]).sink(bool)
    stepper = Stepper(environment)
    for use in (recording.save, Recording.load, stepper.save, lambda path: Stepper.load(path, stepper.environment)):
        with pytest.raises(LocalUsageError, match="path=5 cannot work: the path of a file"):
            use(5)
    stepper.close()


def test_a_recording_with_a_field_that_cannot_be_is_refused_before_a_view_draws_it(recording):
    data = json.loads(recording.to_json())
    number = next(number for number, node in enumerate(data["nodes"]) if node[0] == "TaskSnapshot")
    for place in range(1, len(data["nodes"][number])):
        nodes = [[*node] for node in data["nodes"]]
        nodes[number][place] = {}
        with pytest.raises(LocalUsageError, match=r"not a recording of Sluice: TypeError\('TaskSnapshot\."):
            Recording.from_json(json.dumps(data | {"nodes": nodes}))
