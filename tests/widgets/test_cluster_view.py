"""ClusterView: who is there and who leads, whose the slots are, what was refused; and what a click does to a member."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from refimpl.cluster import MemberState
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.cluster_simulation import DISPATCHER, RESOURCE_MANAGER, ClusterSimulation, job_master_of
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from tests.support.cluster_worlds import is_running
from tests.support.small_clusters import JOB, numbers_cluster
from widgets import ClusterView, Recording

Sent = list[dict[str, Any]]


@pytest.fixture
def cluster() -> ClusterSimulation:
    return numbers_cluster()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What a view sends the browser, since there is none."""
    messages: Sent = []
    monkeypatch.setattr(ClusterView, "send", lambda _view, content, buffers=None: messages.append(content))
    return messages


@pytest.fixture
def shown() -> Iterator[Callable[..., ClusterView]]:
    views: list[ClusterView] = []

    def show(source: Any, **given: Any) -> ClusterView:
        views.append(ClusterView(source, **given))
        return views[-1]

    yield show
    for view in views:
        view.close()


def click(view: ClusterView, **content: Any) -> None:
    view._on_message(view, content, None)


def told(sent: Sent) -> dict[str, list[str]]:
    """What can be done to each member, as the browser was told last."""
    members = next(each["members"] for each in reversed(sent) if "members" in each)
    return {address: [kind for kind, _ in actions] for address, actions in members}


def test_it_is_said_who_leads_under_which_epoch_and_whom_each_has_heard_of(cluster: Any, shown: Any) -> None:
    view = shown(cluster)
    text = view.text()
    assert "dispatcher: ▶ leads, epoch 1" in text
    assert f"{job_master_of(JOB)}: ▶ leads, epoch 1" in text
    model = view.model()
    for member in cluster.snapshot().members:
        for link in member.links:
            assert link.silent_ms is not None
            assert f"{link.address}, epoch {link.epoch}: " in text
    (manager,) = [each for each in model["leaders"] if each["address"] == RESOURCE_MANAGER]
    assert {each["address"] for each in manager["links"]} == {"tm-0", "tm-1", "tm-2", job_master_of(JOB)}
    used = [each for part in model["task_managers"] for each in part["slots"] if each["state"] == "used"]
    assert len(used) == 2
    assert "slot 0: used by numbers, attempt 0 of 0." in text


def test_who_is_gone_paused_or_replaced_is_told_in_words_picture_and_status(cluster: Any, shown: Any) -> None:
    view = shown(cluster)
    cluster.crash("tm-0")
    cluster.members.pause(RESOURCE_MANAGER)
    for words in (view.text(), view.svg()):
        assert "✗ gone" in words
        assert "○ paused, epoch 1, another will lead" in words
    assert "gone: tm-0" in view.facts(view.model())["status"]
    cluster.run(
        lambda run: any(each.state is MemberState.PAUSED and not each.is_current for each in run.snapshot().members)
    )
    assert "▲ whose place another has taken: resource-manager of epoch 1" in view.svg()
    assert "resource-manager: ▶ leads, epoch 2" in view.text()


def test_what_a_former_leader_says_is_refused_and_that_is_told(shown: Any) -> None:
    cluster = numbers_cluster(num_records=10)
    cluster.members.pause(RESOURCE_MANAGER)
    cluster.run(lambda run: any(not each.is_current for each in run.snapshot().members))
    cluster.members.resume(RESOURCE_MANAGER)
    cluster.run(lambda run: any(each.num_refused for each in run.snapshot().members))
    (member, *_) = [each for each in cluster.snapshot().members if each.num_refused]
    assert "epoch 1" in member.refusal
    assert f"refused {member.num_refused} message" in shown(cluster).text()
    assert member.refusal in shown(cluster).text()


def test_jobs_are_told_with_attempts_checkpoints_and_how_they_end(cluster: Any, shown: Any) -> None:
    view = shown(cluster)
    cluster.run(lambda run: run.snapshot().jobs[0].completed)
    assert "tasks: 5 running, at most attempt 0 · checkpoints kept: 1" in view.text()
    cluster.crash("tm-2")
    cluster.run(lambda run: is_running(run) and any(each.attempt for each, _ in run.snapshot().jobs[0].executions))
    assert "at most attempt 1" in view.text()
    cluster.crash(job_master_of(JOB))
    assert "job numbers: stored; nobody leads it now" in view.text()
    cluster.revive(job_master_of(JOB))
    cluster.run(is_running)
    assert f"{job_master_of(JOB)}: ▶ leads, epoch 2" in view.text()
    cluster.cancel(JOB)
    cluster.run()
    assert "job numbers: cancelled" in view.text()
    assert "1 job stored, 0 not over" in view.text()


def test_every_moment_has_the_same_facts_and_the_drawing_follows_them(cluster: Any, shown: Any, sent: Sent) -> None:
    view = shown(cluster)
    names = [tuple(view.facts(view.model()))]
    click(view, type="member", action="crash tm-1")
    names.append(tuple(view.facts(view.model())))
    cluster.submit("second", job(), None)
    click(view, type="step", n=50)
    names.append(tuple(view.facts(view.model())))
    assert len(set(names)) == 1
    assert {len(frame) for frame in view._all_frames()} == {len(names[0]) + 2}
    followed = set(re.findall(r'data-fact="(\d+)"', view.svg()))
    in_tables = {
        str(c[0]) for _, _, rows in view._topology["tables"] for row in rows for c in row if isinstance(c, list)
    }
    assert {name for n, name in enumerate(names[0]) if str(n) not in followed | in_tables} == {"status"}


def job() -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24))
    environment.from_collection(range(9)).rebalance().map(str).sink(bool)
    return environment


def test_the_buttons_are_what_is_enabled_and_do_it(cluster: Any, shown: Any, sent: Sent) -> None:
    view = shown(cluster)
    assert (view._mode, view._controls) == ("stepped", ["step", "members"])
    click(view, type="hello")
    assert sent[-1]["type"] == "history"
    assert told(sent)["tm-1"] == ["crash", "pause"]
    for action, left in (("pause", ["crash", "resume"]), ("resume", ["crash", "pause"]), ("crash", ["revive"])):
        click(view, type="member", action=f"{action} tm-1")
        assert told(sent)["tm-1"] == left, action
        assert len(sent[-1]["frames"]) == 1
    assert "tm-1: ✗ gone" in view.text()
    click(view, type="member", action="revive tm-1")
    assert "tm-1: ▶ alive, life 2" in view.text()


@pytest.mark.parametrize("content", [
    {"type": "member", "action": "crash nobody"}, {"type": "member"}, {"type": "member", "action": "revive tm-1"},
    {"type": "step", "n": -1}, {"type": "step", "n": "many"},
])  # fmt: skip
def test_what_cannot_be_done_is_refused_and_nothing_has_happened(
    cluster: Any, shown: Any, sent: Sent, content: dict[str, Any]
) -> None:
    view, before = shown(cluster), cluster.num_steps
    click(view, **content)
    assert cluster.num_steps == before
    assert sent[-1]["type"] == "refused"
    assert sent[-1]["words"]


def test_to_the_next_change_and_for_a_while_the_last_moment_is_kept(cluster: Any, shown: Any, sent: Sent) -> None:
    view = shown(cluster)
    click(view, type="member", action="crash tm-2")
    frames, steps = len(view.recording), cluster.num_steps
    click(view, type="change")
    assert len(view.recording) == frames + 1
    assert cluster.num_steps > steps
    assert view.recording.moments[-1][0] != view.recording.moments[-2][0]
    begun_ms = cluster.time_ms
    click(view, type="wait")
    assert cluster.time_ms >= begun_ms + 100
    assert len(sent[-1]["frames"]) == 1
    click(view, type="step", n=3)
    assert len(view.recording) == frames + 5


def test_no_more_moments_are_kept_than_was_asked_for(cluster: Any, shown: Any, sent: Sent) -> None:
    view = shown(cluster, max_frames=5)
    click(view, type="step", n=20)
    assert len(view.recording) == 5
    assert len(sent[-1]["frames"]) == 5


def test_a_recording_is_scrubbed_and_a_snapshot_stands_still(cluster: Any, shown: Any) -> None:
    recording = Recording({})
    for _ in range(6):
        recording.add(cluster.snapshot(), str(cluster.step()))
    view = shown(recording)
    assert (view._mode, view._at, len(json.loads(view._frames)["changes"])) == ("recorded", 5, 5)
    assert shown(recording, at=0).model()["num_steps"] == recording.moments[0][0].num_steps
    still = shown(cluster.snapshot())
    assert (still._mode, still._controls) == ("still", [])
    assert still.text() == shown(cluster).text()


def test_of_more_than_a_picture_holds_the_text_has_all(shown: Any) -> None:
    cluster = ClusterSimulation(num_task_managers=10, num_slots=6, config=Config(segment_size_bytes=64, num_buffers=40))
    cluster.run(lambda run: DISPATCHER in run.members.alive)
    for number in range(6):
        cluster.submit(f"job-{number}", job())
    cluster.run(lambda run: all(run.job_master(f"job-{number}") for number in range(6)), 5_000)
    view = shown(cluster)
    picture, text = view.svg(), view.text()
    assert "… and 2 more TaskManagers, in the table" in picture
    assert "… and 2 more slots, in the table" in picture
    assert "jobs; 3 more in words" in picture
    assert len(re.findall(r"^tm-\d:", text, re.MULTILINE)) == 10
    assert len(re.findall(r"^    slot", text, re.MULTILINE)) == 60
    assert len(re.findall(r"^job job-\d:", text, re.MULTILINE)) == 6
    tables = {caption: rows for caption, _, rows in view._topology["tables"]}
    assert (len(tables["Members"]), len(tables["Slots"])) == (12, 60)
    assert ET.fromstring(picture).tag.endswith("svg")


def test_one_that_is_gone_at_first_still_has_its_place_and_slots(cluster: Any, shown: Any) -> None:
    cluster.crash("tm-1")
    view = shown(cluster)
    assert [len(part["slots"]) for part in view.model()["task_managers"]] == [2, 2, 2]
    assert view.text().count("✗ gone with its TaskManager") == 2


@pytest.mark.parametrize("source", [None, 3, "cluster"])
def test_what_is_no_cluster_is_refused(source: object) -> None:
    with pytest.raises(LocalUsageError, match="give a ClusterSimulation"):
        ClusterView(source)  # type: ignore[arg-type]


def test_a_job_alone_is_refused() -> None:
    with Simulation(job()) as simulation:
        with pytest.raises(LocalUsageError, match="give a ClusterSimulation"):
            ClusterView(simulation)  # type: ignore[arg-type]
        with pytest.raises(LocalUsageError, match="no moment of a cluster"):
            ClusterView(Recording.of(simulation))
