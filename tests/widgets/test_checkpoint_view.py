"""What became of the checkpoints of a run is told as the run has it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from refimpl.checkpoint import (
    CheckpointCounts,
    CheckpointFailureReason,
    CheckpointStats,
    CheckpointStatsSnapshot,
    CheckpointStatus,
    SubtaskStats,
    duration_words,
    reason_words,
    size_words,
)
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import CheckpointKind, Fault, FaultKind, MemoryStore
from refimpl.task import TumblingWindows
from tests.support.drawings import words_in, words_on_words
from widgets import AlignmentView, CheckpointView, Recording, TimelineView
from widgets.base import View

INTERVAL_MS = 2


class Count:
    """How many values there are in a window."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


def environment(interval_ms: int = INTERVAL_MS, **options: Any) -> StreamEnvironment:
    """Windows by key, so that there is state; two of each but the source."""
    given = {"segment_size_bytes": 64, "num_buffers": 60, "source_batch": 2, "checkpoint_interval_ms": interval_ms}
    job = StreamEnvironment(Config(**{**given, **options}), 2)
    numbers = job.from_collection([StreamRecord(number, number) for number in range(300)], name="numbers")
    timed = numbers.assign_timestamps(lambda n: n, 3, every=4).key_by(lambda n: n % 3)
    timed.window(TumblingWindows(20)).aggregate(Count(), name="count").rebalance().sink(bool, "sink")
    return job


@pytest.fixture
def started() -> Iterator[Callable[..., Simulation]]:
    """Makes a simulation with a store, and ends it."""
    made: list[Simulation] = []

    def start(store: MemoryStore | None = None, interval_ms: int = INTERVAL_MS, **options: Any) -> Simulation:
        given = {"store": store or MemoryStore(), "restart": FixedDelayRestart(9, 1.0), "step_ms": 0.1, "seed": 2}
        made.append(Simulation(environment(interval_ms, **options), **given))
        return made[-1]

    yield start
    for each in made:
        each.__exit__()


def stats_of(run: Simulation | JobSnapshot) -> CheckpointStatsSnapshot:
    stats = (run if isinstance(run, JobSnapshot) else run.snapshot()).checkpoints
    assert stats is not None
    return stats


def step_until(run: Simulation, is_so: Callable[[CheckpointStatsSnapshot], bool]) -> None:
    while not is_so(stats_of(run)):
        assert run.step() is not None


def words(source: Any) -> str:
    view = CheckpointView(source)
    try:
        assert all(len(line) <= 120 for line in view.text().splitlines())
        return view.text()
    finally:
        view.close()


# -- nothing to show yet -----------------------------------------------------------------------------


def test_a_run_without_a_store_says_how_to_get_one() -> None:
    with Simulation(environment()) as run:
        assert "it has no store. Give it one, as in Simulation(job, store=MemoryStore())" in words(run)


def test_before_the_first_it_says_what_would_begin_one(started: Any) -> None:
    assert "No checkpoint has been triggered so far" in words(started(interval_ms=0))


def test_while_none_is_complete_it_says_what_a_failure_would_mean(started: Any) -> None:
    run = started()
    step_until(run, lambda stats: stats.counts.num_triggered == 1)
    assert "1 triggered: 1 in progress, 0 completed, 0 failed" in words(run)
    assert "None has been completed so far: after a failure the job would begin from the start." in words(run)
    step_until(run, lambda stats: stats.counts.num_completed == 1)
    assert "None has been completed" not in words(run)


# -- one that goes well ------------------------------------------------------------------------------


def test_each_moment_of_a_checkpoint_is_told(started: Any) -> None:
    run, seen = started(), list[str]()
    while stats_of(run).latest_completed is None:
        run.step()
        if history := stats_of(run).history:
            each = history[0]
            view = CheckpointView(run)
            row = view.model()["checkpoints"][-1]
            view.close()
            assert row["num_acknowledged"] == len(each.acknowledged)
            assert row["missing"] == [one.task for one in each.subtasks if one.acked_ms is None]
            assert row["state_bytes"] == each.state_bytes
            if row["state"] not in seen:
                seen.append(row["state"])
    assert seen == ["progress", "writing", "completed"]


def test_the_subtasks_of_the_newest_are_told_with_state_and_alignment(started: Any) -> None:
    run = started()
    step_until(run, lambda stats: stats.latest_completed is not None and not stats.counts.num_in_progress)
    newest = stats_of(run).history[-1]
    said = words(run)
    for each in newest.subtasks:
        assert each.acked_ms is not None
        (line,) = [line for line in said.splitlines() if line.split("  ")[2:3] == [each.task]]
        assert (
            f"after {duration_words(each.acked_ms - newest.triggered_ms)} · state {size_words(each.state_bytes)}"
            in line
        )
        aligned = f"alignment {duration_words(each.alignment_ms)}" if each.alignment_ms is not None else ""
        assert aligned in line
        assert ("alignment" in line) == (not each.task.startswith("numbers"))
        assert line.endswith("0 B in flight")
    assert f"last {newest.acknowledged[-1].task} after" in said


# -- one that does not -------------------------------------------------------------------------------


@pytest.mark.parametrize("unaligned", [False, True])
def test_a_checkpoint_whose_barriers_have_overtaken_says_so_and_which_subtask(started: Any, unaligned: bool) -> None:
    simulation = started(unaligned=unaligned)
    view = CheckpointView(simulation)
    said = False
    while not simulation.is_done and not said:
        simulation.step()
        history = simulation.snapshot().checkpoints.history
        told = view.model()["checkpoints"]
        assert [each["is_unaligned"] for each in told] == [each.is_unaligned for each in reversed(history)]
        said = bool(told) and told[0]["is_unaligned"]
    assert said == unaligned
    assert ("barriers have overtaken" in view.text()) == unaligned
    overtaken = [each["task"] for each in view.model()["subtasks"] if each["is_unaligned"]]
    of_subtasks = view.text().partition("What each subtask did")[2].splitlines()[1:]
    assert [line.split()[0] for line in of_subtasks if "barriers have overtaken" in line] == overtaken


def test_a_store_that_fails_is_named_with_the_subtask(started: Any) -> None:
    store = MemoryStore()
    run = started(store, tolerable_failed_checkpoints=9)
    store.faults.append(Fault(FaultKind.FAIL, within="chk-1/"))
    step_until(run, lambda stats: stats.counts.num_failed == 1)
    said = words(run)
    assert "✗ failed: a task could not write its state" in said
    assert "CHECKPOINT_ASYNC_EXCEPTION, numbers-0" in said


def test_the_one_that_was_restored_is_told_and_has_a_flag(started: Any) -> None:
    run = started()
    step_until(run, lambda stats: stats.counts.num_completed == 2)
    number = stats_of(run).latest_completed.checkpoint_id
    run.crash()
    step_until(run, lambda stats: stats.counts.num_restored == 1)
    view = CheckpointView(run)
    assert f"went on from checkpoint {number} at" in view.text()
    assert "the job went on from it once" in view.text()
    facts = view.facts(view.model())
    flags = {facts[f"{place} title"]: facts[f"{place} flag"] for place in range(10)}
    assert [title for title, flag in flags.items() if flag] == [f"checkpoint {number}"]
    view.close()


def test_a_savepoint_is_told_by_its_name(started: Any) -> None:
    run = started()
    run.step()
    run.recovery.checkpoints.savepoint("before the move", run.time_ms)
    step_until(run, lambda stats: stats.latest_savepoint is not None)
    assert "called before the move" in words(run)
    assert f"newest savepoint: {stats_of(run).latest_savepoint.checkpoint_id} (before the move)" in words(run)


def test_the_final_one_is_told_as_such(started: Any) -> None:
    collected: list[object] = []
    job = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=60), 1)
    job.from_collection(range(9)).rebalance().sink(collected.append, exactly_once=True)
    with Simulation(job, store=MemoryStore()) as run:
        run.run()
        view = CheckpointView(run)
        assert "FINAL 1" in view.svg()
        assert view.model()["checkpoints"][0]["kind"] == "final"
        view.close()


def test_a_request_that_was_refused_is_counted_and_says_why(started: Any) -> None:
    run = started(interval_ms=0)
    while not any(task.progress.value == "done" for task in run.snapshot().tasks):
        run.step()
    run.recovery.checkpoints.savepoint("late", run.time_ms)
    assert "1 request was refused, since not all tasks were running" in words(run)


@pytest.mark.parametrize("reason", CheckpointFailureReason)
def test_each_reason_is_told_in_words_and_by_flinks_name(
    reason: CheckpointFailureReason, snapshot: JobSnapshot
) -> None:
    failed = CheckpointStats(
        3, CheckpointKind.CHECKPOINT, 1.0, (SubtaskStats("sum-0"),), status=CheckpointStatus.FAILED, ended_ms=4.5,
        reason=reason, detail="for a test",
    )  # fmt: skip
    said = words(with_history(snapshot, failed))
    assert f"✗ failed: {reason_words(reason)}" in said
    assert f"{reason.value}, for a test" in said
    assert "3.5 ms" in said


# -- what does not fit -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def snapshot() -> JobSnapshot:
    with Simulation(environment(), store=MemoryStore()) as run:
        return run.snapshot()


def with_history(snapshot: JobSnapshot, *history: CheckpointStats) -> JobSnapshot:
    counts = CheckpointCounts(num_triggered=len(history), num_completed=len(history))
    return replace(snapshot, checkpoints=CheckpointStatsSnapshot(counts, history))


def long_history(snapshot: JobSnapshot) -> JobSnapshot:
    """Ten of six subtasks each, all different."""
    tasks = [f"an operator with quite a name-{number}" for number in range(6)]
    history = [
        CheckpointStats(
            1_000_000 + number,
            CheckpointKind.SAVEPOINT,
            number * 60_000.0,
            tuple(SubtaskStats(task, number * 60_000.0 + 55_123.4, 123_456 * number, 12.34, 0) for task in tasks),
            f"before-the-move-number-{number}",
            CheckpointStatus.COMPLETED,
            ended_ms=number * 61_000.0,
            num_restores=number,
        )
        for number in range(1, 11)
    ]
    return with_history(snapshot, *history)


def test_a_full_history_is_drawn_in_its_place_and_a_frame_stays_small(snapshot: JobSnapshot) -> None:
    view = CheckpointView(long_history(snapshot))
    root = ET.fromstring(view.svg())
    assert not words_on_words(root)
    assert max(right for _, (_, right, _, _) in words_in(root)) <= float(root.get("width", 0))
    assert [title.partition(" ")[0] for title, _ in words_in(root) if "10000" in title][1:] == ["savepoint"] * 10
    (frame,) = view._all_frames()
    assert len(json.dumps(frame)) < 3_000
    view.close()


def test_the_newest_is_first_and_every_one_is_in_the_words(snapshot: JobSnapshot) -> None:
    said = words(long_history(snapshot))
    places = [said.index(f"called before-the-move-number-{number} ·") for number in range(10, 0, -1)]
    assert places == sorted(places)


def test_a_recording_of_a_crash_and_a_restart_comes_back_from_a_file(started: Any) -> None:
    run = started()
    recording = Recording.of(run, 60)
    run.crash()
    while run.step() is not None and len(recording) < 400:
        recording.add(run.snapshot(), "")
    again = Recording.from_json(recording.to_json())
    assert [each for each, _ in again.moments] == [each for each, _ in recording.moments]
    assert any(stats_of(each).counts.num_restored for each, _ in again.moments)


# -- in the other views ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crashed() -> Recording:
    """Every moment of a run to its crash during the third checkpoint, and on until one is restored and one is new."""
    with Simulation(environment(), seed=2, step_ms=0.1, store=MemoryStore(), restart=FixedDelayRestart(9, 1.0)) as run:
        recording = Recording.of(run, 0, 10_000)
        while (stats := stats_of(run)).counts.num_completed < 2 or len(stats.history[-1].acknowledged) > 2:
            recording.add(run.snapshot(), str(run.step()))
        recording.add(run.snapshot(), "")
        run.crash()
        while stats_of(run).counts.num_completed < 3:
            recording.add(run.snapshot(), str(run.step()))
        return recording


def at_each_moment(view_class: type[View], recording: Recording) -> Iterator[tuple[Any, JobSnapshot, View]]:
    view = view_class(recording)
    for snapshot, action in recording.moments:
        yield view.model_of(snapshot, action, view._known), snapshot, view
    view.close()


def test_the_timeline_shows_a_checkpoint_from_its_trigger_to_its_end(crashed: Recording) -> None:
    seen = list[str]()
    before = CheckpointCounts()
    for model, snapshot, _view in at_each_moment(TimelineView, crashed):
        counts = stats_of(snapshot).counts
        mark = model["checkpoints"][-1]
        ended = {
            "completed": counts.num_completed > before.num_completed,
            "failed": counts.num_failed > before.num_failed,
        }
        if counts.num_restored > before.num_restored:
            assert mark == "restored"
        elif any(ended.values()):
            assert ended[mark]
        else:
            assert mark == ("progress" if counts.num_in_progress else "none")
        assert model["checkpoints"][:-1] == seen[-len(model["checkpoints"]) + 1 :] or len(model["checkpoints"]) == 1
        seen.append(mark)
        before = counts
    assert set(seen) == {"none", "progress", "completed", "failed", "restored"}


def test_the_timeline_marks_when_each_task_acknowledged_the_newest(crashed: Recording) -> None:
    marked = 0
    moments = [snapshot for snapshot, _ in crashed.moments]
    for number, (model, snapshot, view) in enumerate(at_each_moment(TimelineView, crashed)):
        if not (history := stats_of(snapshot).history):
            continue
        for task, part in zip(model["tasks"], model_order(history[-1], model), strict=True):
            if task["num_since_ack"] is None:
                continue
            marked += 1
            then, earlier = (acked_at(moments[number - task["num_since_ack"] - n], history[-1], part) for n in (0, 1))
            assert (then, earlier) == (True, False)
            assert f"◆ {task['num_since_ack']} moments ago" in view.text_of(model, "", "")
    assert marked > 100


def model_order(stats: CheckpointStats, model: Any) -> list[str]:
    assert {each.task for each in stats.subtasks} <= {task["name"] for task in model["tasks"]}
    return [task["name"] for task in model["tasks"]]


def acked_at(snapshot: JobSnapshot, checkpoint: CheckpointStats, task: str) -> bool:
    found = [each for each in stats_of(snapshot).history if each.checkpoint_id == checkpoint.checkpoint_id]
    return any(part.task == task and part.acked_ms is not None for each in found for part in each.subtasks)


def test_the_barriers_are_told_with_the_checkpoint_that_they_are_of(crashed: Recording) -> None:
    """Its state grows with each acknowledgement, and what waits in the channels is measured in bytes."""
    states, channels = set(), set()
    for model, snapshot, view in at_each_moment(AlignmentView, crashed):
        said = view.text_of(model, "", "")
        if not (history := stats_of(snapshot).history):
            continue
        newest = history[-1]
        assert f"checkpoint {newest.checkpoint_id}: " in said
        assert f"{size_words(model['newest']['in_flight_bytes'])} in channels" in said
        channels.add(model["newest"]["in_flight_bytes"])
        own = {each.task: each for each in newest.subtasks if each.acked_ms is not None}
        for task in model["tasks"]:
            assert (task["acked_checkpoint"] is not None) == (task["name"] in own)
            if task["name"] in own and task["cut"]:
                states.add(own[task["name"]].state_bytes)
                words = f"{size_words(own[task['name']].state_bytes)} of state in checkpoint {newest.checkpoint_id}"
                assert words in said
    assert len(states) > 2
    assert len(channels) > 10


def test_what_waits_in_a_channel_is_told_in_bytes(crashed: Recording) -> None:
    behind = 0
    for model, snapshot, view in at_each_moment(AlignmentView, crashed):
        queues = {f"{p.name}[{sub.index}]": sub.queue for p in snapshot.partitions for sub in p.subpartitions}
        for channel in [each for task in model["tasks"] for each in task["channels"]]:
            unread = sum(each.unread_bytes for each in queues[channel["name"]] if each.data_type.is_buffer)
            if channel["state"] == "waits":
                assert (channel["ahead_bytes"], channel["behind_bytes"]) == (0, unread)
                behind += unread
                assert unread == 0 or f"{size_words(unread)} behind it" in view.text_of(model, "", "")
            if channel["state"] == "reads":
                assert (channel["ahead_bytes"], channel["behind_bytes"]) == (unread, 0)
    assert behind > 0


def test_without_a_store_no_checkpoint_is_told_in_the_other_views() -> None:
    with Simulation(environment(), seed=2, step_ms=0.1) as run:
        run.run(120)
        for view_class in (TimelineView, AlignmentView):
            view = view_class(run)
            assert "checkpoint" not in view.text()
            assert 'class="checkpoints"' not in view.svg()
            view.close()
