"""TaskManagerView: who is there, which tasks are in which slot, and what is said of a TaskManager that was lost."""

from __future__ import annotations

import dataclasses
import os
import queue
import signal
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import ProcessRun, Simulation
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.task import IterableReader
from tests.support.polling import until
from widgets import JobView, PipelineMap, TaskManagerView, TimelineView

DEADLINE_S = 120.0

Sent = queue.Queue[dict[str, Any]]


@pytest.fixture
def snapshot() -> JobSnapshot:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24, source_batch=2), 2)
    environment.from_collection(range(20)).rebalance().map(str).rebalance().sink(bool)
    with Simulation(environment, seed=1, num_task_managers=2) as simulation:
        simulation.run(max_steps=12)
        return simulation.snapshot()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What a view sends the browser, since there is none."""
    messages: Sent = queue.Queue()
    monkeypatch.setattr(TaskManagerView, "send", lambda _view, content, buffers=None: messages.put(content))
    return messages


def without_end() -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24, source_batch=2), 2)
    environment.source(lambda _i, _n: IterableReader(range(10**9))).rebalance().map(str).sink(bool)
    return environment


def lost(snapshot: JobSnapshot, number: int) -> JobSnapshot:
    parts = list(snapshot.task_managers)
    parts[number] = dataclasses.replace(parts[number], is_lost=True, process_id=4711)
    return dataclasses.replace(snapshot, task_managers=tuple(parts))


def test_tasks_with_one_number_share_a_slot_and_slots_are_dealt_out_in_order(snapshot: JobSnapshot) -> None:
    first, second = TaskManagerView(snapshot).model()["task_managers"]
    assert [(slot["slot"], [task["name"] for task in slot["tasks"]]) for slot in first["slots"]] == [
        (0, ["source-0", "map-0", "sink-0"])
    ]
    assert [(slot["slot"], [task["name"] for task in slot["tasks"]]) for slot in second["slots"]] == [
        (1, ["map-1", "sink-1"])
    ]


def test_a_lost_one_is_named_in_words_picture_and_table_and_its_tasks_with_it(snapshot: JobSnapshot) -> None:
    view = TaskManagerView(lost(snapshot, 1))
    lines = view.text().splitlines()
    assert lines[1] == "2 TaskManagers: 1 alive, 1 lost · 2 slots"
    assert any(line.startswith("tm-1 (process 4711): ✗ lost, ") for line in lines)
    assert [line.split(":")[1].split(",")[0] for line in lines if "-1:" in line and "tm" not in line] == [" ✗ lost"] * 2
    assert "tm-1 (process 4711)" in view.svg()
    assert "lost: tm-1" in view.facts(view.model())["status"]


def test_who_has_no_task_left_to_run_is_done(snapshot: JobSnapshot) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24))
    environment.from_collection(range(3)).sink(bool)
    with Simulation(environment) as simulation:
        simulation.run()
        assert "tm-0: ✓ done" in TaskManagerView(simulation.snapshot()).text()


def test_a_live_view_shows_which_process_was_killed_and_why_the_job_failed(sent: Sent) -> None:
    with ProcessRun(without_end()) as run:
        view = TaskManagerView(run.start())
        view._on_message(view, {"type": "visible", "view": "one"}, None)
        sent.get(timeout=DEADLINE_S)
        os.kill(run.process_ids[1], signal.SIGKILL)
        while not (last := sent.get(timeout=DEADLINE_S))["done"]:
            pass
        view.close()
    assert f"TaskManager tm-1, process {run.process_ids[1]}, was killed by SIGKILL" in last["error"]
    values = dict(zip(view.facts(view.model()), last["frame"][2:], strict=True))
    assert (values["0 word"] != "✗ lost", values["1 word"]) == (True, "✗ lost")


def test_a_live_view_names_who_does_not_answer_and_goes_on_when_it_does(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refimpl.drivers.processes.group._SECONDS_TO_ANSWER", 0.5)
    with ProcessRun(without_end()) as run:
        view = TaskManagerView(run.start())
        name = f"tm-1 (process {run.process_ids[1]})"
        view._on_message(view, {"type": "visible", "view": "one"}, None)
        os.kill(run.process_ids[1], signal.SIGSTOP)
        while (said := sent.get(timeout=DEADLINE_S))["type"] != "refused":
            pass
        assert f"no answer from {name}" in said["words"]
        assert f"{name}: ⚠ no answer" in view.text()
        assert f"no answer: {name}" in view.facts(view.model())["status"]
        for other in (view, PipelineMap(run)):
            assert f"⚠ no answer from {name}, shown as seen last" in other.text().replace("\n", " ")
            assert f"⚠ no answer from {name}" in other.svg()
        os.kill(run.process_ids[1], signal.SIGCONT)
        while (said := sent.get(timeout=DEADLINE_S))["type"] != "refused":
            pass
        assert said["words"] == ""
        before = sum(task.num_records_in for task in run.snapshot().task_managers[1].tasks)
        until(lambda: sum(task.num_records_in for task in run.snapshot().task_managers[1].tasks) > before)
        assert "no answer" not in view.text()
        view.close()


@pytest.mark.parametrize("view_of", [JobView, PipelineMap, TimelineView])
def test_tasks_of_a_lost_one_are_lost_in_every_view_that_says_how_tasks_stand(
    snapshot: JobSnapshot, view_of: type[JobView | PipelineMap | TimelineView]
) -> None:
    running, view = view_of(snapshot), view_of(lost(snapshot, 1))
    for said, num_lost in ((running.text(), 0), (view.text(), 2)):
        assert sum(line.count("✗") for line in said.splitlines()) == num_lost, said
    drawn = [each.svg().partition("</style>")[2].count("✗ lost") for each in (running, view)]
    assert drawn[1] - drawn[0] == 2, drawn
