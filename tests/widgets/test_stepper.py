"""A job taken step by step: chosen, forked with a change, compared, kept in a file."""

from __future__ import annotations

import json
import sys
import threading
from types import SimpleNamespace

import pytest
from ipywidgets import Widget
from jupyter_client.session import json_packer

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader
from widgets import PipelineMap, QueueView, Recording, Stepper, ThroughputView


def places(num_records=400, function=str):
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40, source_batch=2), 2)
    environment.from_collection(range(num_records)).rebalance().map(function).rebalance().sink(bool)
    return environment


@pytest.fixture
def stepper():
    stepper = Stepper(places(), seed=3, num_task_managers=2, max_delay_ms=0.05)
    yield stepper
    stepper.close()


def failing():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64), 2)
    environment.from_collection(range(90)).rebalance().map(lambda n: 1 // (n - 20)).sink(bool)
    return environment


def frames(recording):
    return [moment for moment, _ in recording.moments]


def test_the_buttons_are_what_the_simulation_says_is_enabled(stepper):
    for _ in range(40):
        choices = stepper.enabled()
        chosen = choices[-1]
        assert stepper.step(chosen) == chosen
        assert stepper.recording.moments[-1][1] == chosen
    assert stepper.num_steps == 40 == len(stepper.recording) - 1


def test_what_is_not_enabled_is_refused_and_nothing_happens(stepper):
    before = stepper.snapshot()
    with pytest.raises(LocalUsageError, match=r"'step source' is not enabled; did you mean 'step source-0'\?"):
        stepper.step("step source")
    assert stepper.snapshot() == before


def test_the_same_seed_takes_the_same_steps_and_a_reset_starts_anew(stepper):
    stepper.run(5_000)
    first, choices = frames(stepper.recording), [action for _, action in stepper.recording.moments]
    assert stepper.is_done
    assert stepper.enabled() == []
    assert stepper.step() is None
    stepper.reset()
    assert (stepper.num_steps, len(stepper.recording)) == (0, 1)
    stepper.run(5_000)
    assert frames(stepper.recording) == first
    stepper.reset(seed=4)
    stepper.run(5_000)
    assert [action for _, action in stepper.recording.moments] != choices


def test_a_fork_is_the_same_up_to_its_step_and_then_what_the_change_makes_of_it(stepper):
    stepper.run(150)
    stepper.fork(60, buffers=3)
    mine, theirs = frames(stepper.recording), frames(stepper.fork_recording)
    assert len(mine) == len(theirs) == 151
    assert mine[:61] == theirs[:61]
    assert mine[-1] != theirs[-1]
    most = [max(partition.pool.size for partition in moment.partitions) for moment in theirs[100:]]
    assert max(most) == 3
    stepper.run(5_000)
    assert stepper.is_done


def test_a_fork_that_changes_nothing_never_differs(stepper):
    stepper.run(100)
    stepper.fork(30)
    stepper.step(stepper.enabled()[0])
    stepper.run(5_000)
    assert frames(stepper.recording) == frames(stepper.fork_recording)
    assert str(stepper.change) == "nothing changed"


def test_a_task_that_rests_falls_behind(stepper):
    stepper.run(200)
    stepper.fork(20, slow="sink-1", delay_ms=1.0)

    def taken(recording, name="sink-1"):
        return next(task for task in frames(recording)[120].tasks if task.name == name).num_records_in

    assert taken(stepper.fork_recording) < taken(stepper.recording)


def test_fewer_floating_buffers_mean_less_credit(stepper):
    stepper.run(150)
    stepper.fork(0, credits=1)
    sizes = {pool.size for part in stepper.fork_recording.moments[-1][0].task_managers for pool in part.gate_pools}
    assert sizes == {1}
    assert {pool.size for part in stepper.snapshot().task_managers for pool in part.gate_pools} != {1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bufers": 3}, r"cannot change 'bufers'; did you mean 'buffers'\?"),
        ({"buffers": 1}, "buffers=1 cannot work"),
        ({"buffers": True}, "buffers=True cannot work"),
        ({"credits": -1}, "credits=-1 cannot work"),
        ({"slow": "sink"}, r"no task 'sink'; did you mean 'sink-\d'\?"),
        ({"slow": "sink-1", "delay_ms": "long"}, "delay_ms='long' cannot work"),
        ({"at_step": 11}, "at_step=11 cannot work: a whole number from 0 to 10"),
    ],
)
def test_a_fork_that_cannot_be_is_refused_and_leaves_all_as_it_was(stepper, change, message):
    stepper.run(10)
    with pytest.raises(LocalUsageError, match=message):
        stepper.fork(**change)
    assert stepper.fork_recording is None
    assert stepper.num_steps == 10


def test_a_run_goes_to_a_file_and_back(stepper, tmp_path):
    stepper.run(40)
    stepper.step(stepper.enabled()[-1])
    stepper.fork(20, buffers=4, slow="map-1", delay_ms=0.5)
    stepper.run(30)
    stepper.save(tmp_path / "run.json")
    again = Stepper.load(tmp_path / "run.json", places())
    assert frames(again.recording) == frames(stepper.recording)
    assert frames(again.fork_recording) == frames(stepper.fork_recording)
    assert again.change == stepper.change
    assert again.to_json() == stepper.to_json()
    again.run(5_000)
    stepper.run(5_000)
    assert frames(again.recording) == frames(stepper.recording)
    again.close()


def test_a_run_of_another_job_is_refused(stepper):
    stepper.run(5_000)
    text = stepper.to_json()
    with pytest.raises(LocalUsageError, match=r"not one of this job: '.*', its step \d+, is not enabled"):
        Stepper.from_json(text, places(6))
    for broken in ("", "[]", "{}", '{"format": "sluice-recording-2"}', json.dumps({**json.loads(text), "seed": "x"})):
        with pytest.raises(LocalUsageError, match=r"not a run|not 'sluice-run-1'|seed='x'"):
            Stepper.from_json(broken, places())


def test_a_run_on_other_terms_or_made_by_hand_is_refused(stepper):
    stepper.run(30)
    stepper.fork(10, buffers=4)
    data = json.loads(stepper.to_json())
    for change, message in (
        ({"num_task_managers": 10**9}, "num_task_managers=1000000000 cannot work"),
        ({"choices": ["step source-0"] * 10_001}, "more than 10000 steps"),
        ({"fork": {**data["fork"], "at_step": -3}}, "at_step=-3 cannot work: a whole number from 0 to 30"),
        ({"fork": {**data["fork"], "change": {"bufers": 4}}}, "not a run of Sluice: TypeError"),
        ({"fork": {**data["fork"], "choices": ["fly"]}, "choices": []}, "at_step=10 cannot work"),
    ):
        with pytest.raises(LocalUsageError, match=message):
            Stepper.from_json(json.dumps({**data, **change}), places())
    with pytest.raises(LocalUsageError, match="not a run of Sluice: RecursionError"):
        Stepper.from_json("[" * 100_000, places())


def test_a_run_that_cannot_be_read_gives_back_all_it_held(stepper, monkeypatch):
    stepper.run(30)
    stepper.fork(10, buffers=4)
    data = json.loads(stepper.to_json())
    data["fork"]["choices"][-1] = "fly"
    opened, closed = [], []
    start, end = Simulation.__init__, Simulation.__exit__
    monkeypatch.setattr(Simulation, "__init__", lambda self, *a, **o: (opened.append(self), start(self, *a, **o))[1])
    monkeypatch.setattr(Simulation, "__exit__", lambda self, *e: (closed.append(self), end(self, *e))[1])
    with pytest.raises(LocalUsageError, match="'fly', its step 30, is not enabled"):
        Stepper.from_json(json.dumps(data), places())
    assert len(opened) == 2
    assert closed == opened


def test_a_stepper_becomes_the_run_of_a_file_or_stays_as_it_was(stepper):
    stepper.run(30)
    stepper.fork(10, buffers=4)
    text, mine = stepper.to_json(), frames(stepper.recording)
    stepper.reset(seed=9)
    stepper.run(12)
    now = stepper.to_json()
    told = []
    stepper.on_change.append(told.append)
    elsewhere = json.dumps({**json.loads(text), "num_task_managers": 1})
    for wrong, message in ((elsewhere, "on 1 TaskManagers and this one is on 2"), (text[:-9], "not a run of Sluice")):
        with pytest.raises(LocalUsageError, match=message):
            stepper.restore(wrong)
    assert (stepper.to_json(), told) == (now, [])
    stepper.restore(text)
    assert (stepper.to_json(), told) == (text, [True])
    assert (frames(stepper.recording), stepper.seed) == (mine, 3)
    stepper.step()
    assert stepper.num_steps == 31


def test_a_run_goes_through_the_browser_and_back_and_a_bad_file_is_refused_in_words(stepper, monkeypatch):
    sent = []
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: sent.append(content))
    stepper.run(30)
    view = QueueView(stepper)
    view._on_message(view, {"type": "save"}, None)
    assert sent[-1] == {"type": "run", "name": "sluice-run-30-steps.json", "text": stepper.to_json()}
    text = sent[-1]["text"]
    view._on_message(view, {"type": "reset"}, None)
    view._on_message(view, {"type": "open", "name": "mine.json", "text": text}, None)
    assert (sent[-1]["type"], len(sent[-1]["frames"]), stepper.num_steps) == ("history", 31, 30)
    for wrong in ("", "{}", None, Recording.of(Simulation(places(6))).to_json()):
        view._on_message(view, {"type": "open", "name": "mine.json", "text": wrong}, None)
        assert sent[-1]["type"] == "refused"
        assert sent[-1]["words"].startswith("mine.json: this ")
    assert stepper.num_steps == 30
    view.close()


def test_why_a_run_failed_is_forgotten_with_the_run(monkeypatch):
    sent = []
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: sent.append(content))
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24), 2)
    environment.from_collection(range(9)).rebalance().map(lambda n: 1 // (n - 4)).sink(bool)
    stepper = Stepper(environment, seed=3)
    view = QueueView(stepper)
    view._on_message(view, {"type": "run"}, None)
    assert "ZeroDivisionError" in sent[-1]["error"]
    view._on_message(view, {"type": "hello"}, None)  # shown again, it still says why
    assert "ZeroDivisionError" in sent[-1]["error"]
    view._on_message(view, {"type": "reset"}, None)
    assert (sent[-1]["error"], view.error) == ("", "")
    view.close()
    stepper.close()


def test_every_view_of_a_stepper_gets_what_any_of_them_does(stepper, monkeypatch):
    sent = {PipelineMap: [], QueueView: []}
    for view, box in sent.items():
        monkeypatch.setattr(view, "send", lambda self, content, buffers=None, box=box: box.append(content))
    first, second = PipelineMap(stepper), QueueView(stepper)
    assert (first._mode, first._controls) == ("stepped", ["step", "choose", "run", "reset", "fork", "save", "open"])
    first._on_message(first, {"type": "hello"}, None)
    assert sent[PipelineMap][-1]["enabled"] == stepper.enabled()
    first._on_message(first, {"type": "choose", "action": stepper.enabled()[0]}, None)
    second._on_message(second, {"type": "step", "n": 10}, None)
    assert stepper.num_steps == 11
    assert [len(box[-1]["frames"]) for box in sent.values()] == [1, 1]
    second._on_message(second, {"type": "fork", "at": 5, "change": {"buffers": 3}}, None)
    for box in sent.values():
        assert box[-1]["type"] == "history"
        assert (len(box[-1]["frames"]), len(box[-1]["other"])) == (12, 12)
        assert box[-1]["fork"] == {"step": 5, "words": "buffers 3"}
    second._on_message(second, {"type": "fork", "at": 5, "change": {"buffers": 0}}, None)
    assert "buffers=0 cannot work" in sent[QueueView][-1]["words"]
    second._on_message(second, {"type": "run"}, None)
    assert sent[PipelineMap][-1]["done"]
    second._on_message(second, {"type": "reset", "seed": 9}, None)
    assert (stepper.num_steps, stepper.seed, sent[PipelineMap][-1]["seed"]) == (0, 9, 9)
    second.close()
    first._on_message(first, {"type": "step"}, None)
    assert len(sent[QueueView]) < len(sent[PipelineMap])
    assert stepper.num_steps == 1
    first.close()


def test_a_view_that_looks_back_over_time_wants_a_branch(stepper):
    with pytest.raises(LocalUsageError, match="give its recording"):
        ThroughputView(stepper)
    ThroughputView(stepper.recording).close()


@pytest.mark.parametrize("num_task_managers", [1, 2])
@pytest.mark.parametrize("is_in_a_cell", [True, False])
def test_why_a_run_failed_is_said_by_every_view(monkeypatch, is_in_a_cell, num_task_managers):
    sent = {PipelineMap: [], QueueView: []}
    for view_class, box in sent.items():
        monkeypatch.setattr(view_class, "send", lambda self, content, buffers=None, box=box: box.append(content))
    stepper = Stepper(failing(), seed=1, num_task_managers=num_task_managers)
    views = [view_class(stepper) for view_class in sent]
    if is_in_a_cell:
        with pytest.raises(UserCodeError):
            stepper.run(500)
    else:
        views[0]._on_message(views[0], {"type": "run"}, None)
    assert isinstance(stepper.error, UserCodeError)
    for box in sent.values():
        (message,) = box
        assert len(message["frames"]) == stepper.num_steps + 1
        assert "ZeroDivisionError" in message["error"]
        assert (message["done"], message["enabled"]) == (True, [])
    views.append(QueueView(stepper))
    for view in views:
        assert "the job failed: UserCodeError: map, subtask" in view.text()
    for move in (stepper.step, stepper.run):
        with pytest.raises(LocalUsageError, match=rf"has failed after {stepper.num_steps} steps \(UserCodeError: map"):
            move()
    views[0]._on_message(views[0], {"type": "step"}, None)
    assert sent[PipelineMap][-1]["type"] == "refused"
    stepper.reset()
    assert (stepper.error, sent[QueueView][-1]["error"], "failed" in views[0].text()) == (None, "", False)
    for view in views:
        view.close()
    stepper.close()


def test_a_fork_of_a_run_that_failed_goes_another_way():
    stepper = Stepper(failing(), seed=1)
    with pytest.raises(UserCodeError):
        stepper.run(500)
    before = stepper.num_steps
    stepper.fork(0, slow="map → sink-0", delay_ms=5)
    assert stepper.num_steps == before
    with pytest.raises(UserCodeError):
        stepper.run(500)
    assert len(stepper.fork_recording) > len(stepper.recording)
    stepper.close()


def test_a_message_that_cannot_be_is_no_failure_of_the_job(stepper, monkeypatch):
    sent = []
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: sent.append(content))
    view = QueueView(stepper)
    for message in ({"type": "step", "n": "x"}, {"type": "choose"}, {"type": "fork", "change": 5}):
        view._on_message(view, message, None)
        assert (sent[-1]["type"], view.error, stepper.num_steps) == ("refused", "", 0)
    view.close()


def test_clicks_and_a_cell_step_in_turns(monkeypatch):
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: None)
    stepper = Stepper(places(4_000), seed=1)
    view = QueueView(stepper)

    def click():
        for _ in range(20):
            view._on_message(view, {"type": "step", "n": 5}, None)

    clicks = threading.Thread(target=click)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        clicks.start()
        for _ in range(150):
            stepper.step()
    finally:
        clicks.join()
        sys.setswitchinterval(interval)
    assert (stepper.num_steps, len(stepper.recording), view.error) == (250, 251, "")
    again = Stepper.from_json(stepper.to_json(), places(4_000))
    assert frames(again.recording) == frames(stepper.recording)
    for each in (view, again, stepper):
        each.close()


def test_a_simulation_is_stepped_where_cells_run(monkeypatch):
    left, where = [], []
    kernel = SimpleNamespace(io_loop=SimpleNamespace(add_callback=left.append))
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=kernel))
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: where.append(threading.current_thread()))
    with Simulation(places(), seed=1) as simulation:
        view = QueueView(simulation)
        click = threading.Thread(target=lambda: view._on_message(view, {"type": "step", "n": 3}, None))
        click.start()
        click.join()
        assert (simulation.num_steps, len(left)) == (0, 1)
        left.pop()()
        assert simulation.num_steps == 3
        view._on_message(view, {"type": "step"}, None)
        assert (simulation.num_steps, left) == (4, [])
        assert set(where) == {threading.main_thread()}
        view.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"environment": 5}, "a int cannot be stepped; give a StreamEnvironment"),
        ({"num_task_managers": 0}, "num_task_managers=0 cannot work: a whole number from 1 to 1000"),
        ({"num_task_managers": "x"}, "num_task_managers='x' cannot work"),
        ({"max_delay_ms": "x"}, "max_delay_ms='x' cannot work: from 0"),
        ({"max_delay_ms": float("nan")}, "max_delay_ms=nan cannot work"),
        ({"max_delay_ms": -1}, "max_delay_ms=-1 cannot work"),
    ],
)
def test_a_stepper_that_cannot_be_is_refused(given, message):
    with pytest.raises(LocalUsageError, match=message):
        Stepper(**{"environment": places(), **given})


def test_what_is_not_enabled_ends_its_sentence(stepper):
    for action in ("nope", 5, ["x"]):
        with pytest.raises(LocalUsageError, match=r"is not enabled\. Enabled: step source-0"):
            stepper.step(action)


def test_a_stepper_that_was_closed_takes_no_step_before_a_reset(stepper, monkeypatch):
    sent = []
    monkeypatch.setattr(PipelineMap, "send", lambda _view, content, buffers=None: sent.append(content))
    view = PipelineMap(stepper)
    stepper.run(5)
    stepper.close()
    assert (stepper.enabled(), stepper.is_done, stepper.num_steps) == ([], True, 5)
    for go_on in (stepper.step, stepper.run):
        with pytest.raises(LocalUsageError, match=r"this Stepper is closed; `reset\(\)`"):
            go_on()
    view._on_message(view, {"type": "step"}, None)
    assert (sent[-1]["type"], sent[-1]["words"]) == (
        "refused",
        "this Stepper is closed; `reset()` goes back to the start",
    )
    stepper.reset()
    assert stepper.step() is not None
    view.close()


def test_a_view_of_a_simulation_that_failed_says_why_whoever_stepped_it():
    with Simulation(places(function=lambda value: 1 // (value - 3))) as simulation:
        with pytest.raises(UserCodeError):
            simulation.run()
        for view in (PipelineMap(simulation), QueueView(simulation)):
            assert "✗ the job failed: UserCodeError: map, subtask 1" in view.text()
            view.close()


def test_half_a_character_in_a_name_goes_to_a_file_and_back_and_is_a_button(tmp_path, monkeypatch):
    sent = []
    keep = lambda _view, content, buffers=None: sent.append(json.loads(json_packer(content)))  # noqa: E731
    monkeypatch.setattr(Widget, "send", keep)
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=40))
    environment.source(lambda i, n: IterableReader(range(9)), name="half \ud800").rebalance().sink(bool)
    stepper = Stepper(environment)
    view = PipelineMap(stepper)
    view._on_message(view, {"type": "hello"}, None)
    assert sent[-1]["enabled"] == ["step half \N{REPLACEMENT CHARACTER}-0"]
    view._on_message(view, {"type": "choose", "action": sent[-1]["enabled"][0]}, None)
    assert stepper.num_steps == 1
    stepper.run()
    stepper.save(tmp_path / "run.json")
    again = Stepper.load(tmp_path / "run.json", environment)
    assert again.recording.moments == stepper.recording.moments
    again.recording.save(tmp_path / "recording.json")
    assert Recording.load(tmp_path / "recording.json").moments == again.recording.moments
    for each in (view, stepper, again):
        each.close()


@pytest.mark.parametrize("n", ["x", None, [1], 1.5, -1])
def test_a_click_that_does_not_say_how_many_steps_is_refused(monkeypatch, n):
    sent = []
    monkeypatch.setattr(QueueView, "send", lambda self, content, buffers=None: sent.append(content))
    with Simulation(places()) as simulation:
        view = QueueView(simulation)
        view._on_message(view, {"type": "step", "n": n}, None)
        assert (sent[-1]["type"], view.error, simulation.num_steps) == ("refused", "", 0)
        view.close()
