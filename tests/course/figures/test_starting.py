"""What lesson 16 shows is what the engine does."""

from __future__ import annotations

from collections import Counter

import pytest

from course.data.losses import FAILURES, counted_airports, is_running, log_of, loss_run
from course.figures.starting import (
    counts_of_the_graph,
    failure,
    five_failures,
    old_leader,
    running_cluster,
    slot_talk,
    too_few_slots,
    workers,
)
from refimpl.cluster import MemberState
from widgets import ClusterView


@pytest.mark.parametrize("failure_number", FAILURES)
@pytest.mark.parametrize("seed", [3, 11])
def test_no_failure_costs_a_record(failure_number: int, seed: int) -> None:
    airports = counted_airports()
    run = loss_run(failure_number, airports, seed)
    run.go_through()
    assert is_running(run.cluster), seed
    kept = set(run.before) & set(run.after)
    assert len(kept) == (5 if failure_number == 2 else 0), seed
    run.finish()
    assert run.counts == Counter(airports), seed
    assert (run.num_counted > len(airports)) is (failure_number != 2), seed


@pytest.mark.slow
def test_the_table_of_failures_says_who_is_hurt() -> None:
    rows = five_failures().rows
    assert [(row[0], row[2], row[-1]) for row in rows] == [
        ("1", "5 of 5", "0"),
        ("2", "0 of 5", "0"),
        ("3", "5 of 5", "0"),
        ("4", "5 of 5", "0"),
        ("5", "5 of 5", "0"),
    ]
    assert [row[4] for row in rows] == ["1 of 2", "2 of 2", "2 of 2", "2 of 2", "1 of 2"]


def test_a_log_has_a_line_for_each_loss_end_and_begin() -> None:
    events = Counter(event for _, _, _, event, _, _ in log_of(4, counted_airports(), 5))
    assert events == {"loss": 2, "ends": 5, "begins": 5}
    assert [row[3:] for row in log_of(2, counted_airports(), 5)] == [("loss", "resource-manager", "resource-manager")]


def test_a_slot_is_offered_by_its_task_manager() -> None:
    rows = slot_talk().rows
    offers = [row for row in rows if row[2] == "offers a slot"]
    assert {(sender[:3], receiver) for sender, receiver, _ in offers} == {("tm-", "JobMaster")}
    for sender, _, _ in offers:
        told = ("ResourceManager", sender, "says: this slot is for that job")
        assert rows.index(told) < rows.index((sender, "JobMaster", "offers a slot"))


def test_a_task_manager_is_started_kept_and_ended() -> None:
    assert [row[2] for row in workers().rows if row[2] != "-"] == [
        "start 1 TaskManager",
        "ask tm-0 to give slot 0",
        "ask tm-0 to give slot 1",
        "end tm-0",
    ]


def test_a_job_of_two_steps_is_counted() -> None:
    counted = {row[1].split(",")[0]: int(row[2]) for row in counts_of_the_graph().rows}
    assert counted == {
        "JobVertex": 2,
        "ExecutionVertex": 8,
        "SharedSlot": 4,
        "IntermediateResult": 1,
        "IntermediateResultPartition": 4,
        "ResultSubpartition": 16,
        "InputGate": 4,
        "InputChannel": 16,
        "RemoteInputChannel": 8,
    }
    assert counts_of_the_graph(3, 1).rows[-1][2] == "0"


def test_without_slots_a_job_waits_for_five_minutes() -> None:
    begins_again, waits, gives_up, *why = too_few_slots().rows
    assert begins_again == ("0.00 s", "beginning again")
    assert waits[1] == "running, and 5 of its 5 tasks wait for a slot"
    assert (gives_up[0][:4], gives_up[1]) == ("300.", "beginning again")
    assert "no slot for it in 300000 ms" in why[0][1]


def test_the_film_of_the_fifth_failure_has_a_job_that_waits_for_a_resource_manager() -> None:
    recording = failure(5)
    view = ClusterView(recording)
    try:
        models = [view.model_of(*moment, view.known_of(moment[0])) for moment in recording.moments]
    finally:
        view.close()
    waits = [
        each for each in models if {row["state"] for row in each["jobs"][0]["executions"]} == {"waiting for a slot"}
    ]
    assert any(each["leaders"][1]["state"] in ("gone", "vacant") for each in waits)
    assert {
        row["attempt"] for slot in models[-1]["task_managers"] for each in slot["slots"] for row in each["tasks"]
    } == {1}


def test_the_old_leader_is_refused() -> None:
    snapshot, _ = old_leader().moments[-1]
    assert [each.state for each in snapshot.members if each.kind.value == "JobMaster"] == [
        MemberState.ALIVE,
        MemberState.ZOMBIE,
    ]
    assert sum(each.num_refused for each in snapshot.members) > 0


def test_the_cluster_on_the_stage_can_be_stepped() -> None:
    cluster = running_cluster()
    before = cluster.num_steps
    cluster.step()
    assert cluster.num_steps == before + 1
