"""A job on Spark executors that are processes of their own: the same answer, through loss and fault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from course.data.trace_files import COLUMNS
from course.jobs.drivers import DRIVERS
from tests.cluster.places import FLIGHTS, RECEIPT, Place, run_child

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECKS = (
    "flights", "frames", "traced", "shipped", "receipt", "fed", "tls", "fault", "too_few_slots", "cancelled", "killed",
    "killed_too_often", "resumed", "fed_again", "not_shared",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(make_place) -> Place:
    return make_place()


@pytest.fixture(scope="module")
def found(place: Place) -> dict[str, Any]:
    return run_child(place, "local-cluster[2,1,1024]", CHECKS)


def test_flights_give_one_answer_on_every_driver_and_it_is_sparks(found) -> None:
    answers = found["flights"]
    assert answers.pop("comparison") == "equal: 247 rows"
    assert answers == {driver: [*FLIGHTS] for driver in DRIVERS if driver != "aio"}


def test_results_are_a_frame_too_until_the_run_is_closed(found) -> None:
    frames = found["frames"]
    assert frames["is_exact"]
    assert frames["as_delivered"]
    for when in ("before", "closed"):
        assert frames[when] == [
            "LocalUsageError",
            "there are no results: the job has not run, not succeeded, or the run is closed",
        ]
    assert frames["wrong_name"] == ["LocalUsageError", "no sink is called 'nobody'"]
    assert frames["delivered"] == {"numbers": 4000, "look → results": 4000}
    assert frames["no_trace"] == ["LocalUsageError", "this run has no trace; give it a trace_table"]


def test_what_all_task_managers_noted_is_a_frame_and_files_for_every_question(found) -> None:
    traced = found["traced"]
    assert traced["is_exact"]
    assert traced["columns"] == [*COLUMNS]
    assert (traced["law"], traced["task_managers"]) == ([], [0, 1])
    assert traced["tasks"] == ["look → results-0", "look → results-1", "numbers-0", "numbers-1"]
    assert re.fullmatch(r"equal: \d\d+ rows", traced["same"])


def test_a_trace_that_ends_early_is_no_secret(found) -> None:
    assert found["traced"]["no_table"] == ["ValueError", "these rows are odd"]


def test_the_benchmark_sees_every_process_of_the_cluster(found) -> None:
    """There are two executors; one that Spark had to start again has another number."""
    roles = found["traced"]["roles"]
    numbers = sorted({int(role.split()[1].rstrip(",")) for role in roles if role.startswith("executor")})
    of_each = ("JVM", "Python daemon", "Python worker")
    executors = [f"executor {number}, {what}" for number in numbers for what in of_each]
    assert (len(numbers), roles) == (2, ["driver, JVM", "driver, Python", *executors])


def test_a_job_takes_along_what_it_needs_and_what_it_cannot_take_is_named(found) -> None:
    shipped = found["shipped"]
    assert shipped["is_exact"]
    kind, said = shipped["missing"]
    assert (kind, said[-43:]) == ("LocalUsageError", "ModuleNotFoundError: No module named 'ghost'"[-43:])
    assert shipped["wrong"] == [
        "LocalUsageError",
        "there is no package 'nowhere_at_all' that could be sent to the executors",
    ]


def test_a_section_of_a_lesson_gives_the_receipt_that_it_gives_everywhere(found) -> None:
    assert found["receipt"] == RECEIPT


def test_spark_feeds_a_source_from_any_number_of_partitions(found) -> None:
    assert found["fed"] == {"2": True, "5": True}


def test_with_keys_of_the_run_it_gives_the_same_and_bad_ones_are_said(found) -> None:
    assert found["tls"]["is_exact"]
    kind, said = found["tls"]["expired"]
    assert kind == "ConfigError"
    assert "it has expired" in said


def test_a_fault_of_the_job_is_not_tried_again(found) -> None:
    assert found["fault"] == {
        "said": ["UserCodeError", "look, subtask 1, raised ValueError: no number I like while processing 1234"],
        "tries": 1,
    }


def test_too_few_slots_are_said_with_their_number(found) -> None:
    kind, said = found["too_few_slots"]["said"]
    assert kind == "InsufficientSlotsError"
    assert "needs a slot for each of its 3 TaskManagers at one time, and the cluster has 2; give it more" in said


def test_a_cancelled_run_gives_its_slots_back(found) -> None:
    assert found["cancelled"] == {"said": ["LocalUsageError", "the run was cancelled"], "next_is_exact": True}


def test_executors_are_killed_in_mid_run_and_at_the_end_and_nothing_is_lost_or_doubled(found) -> None:
    assert found["killed"] == {"said": ["", ""], "is_exact": True, "num_results": 4000, "killed": 2}


def test_killed_as_often_as_spark_tries_it_says_so_and_hands_nothing_on(found) -> None:
    often = found["killed_too_often"]
    kind, said = often.pop("said")
    assert kind == "RemoteTransportError"
    assert said.startswith("a TaskManager was lost in each of the 2 tries that Spark makes")
    assert "executor" in said
    assert often == {"is_exact": False, "num_results": 0, "killed": 2, "next_is_exact": True}


def test_a_try_goes_on_from_the_newest_checkpoint_and_its_results_are_those_of_a_run_without_a_fault(found) -> None:
    """An executor was killed when two checkpoints were complete; sources, state, and what sinks had got go on."""
    assert found["resumed"] == {
        "said": ["", ""],
        "is_exact": [True, True],
        "files_are_exact": True,
        "went_on": True,
        "begun_late": True,
        "left": [],
    }


def test_a_source_that_spark_feeds_goes_on_and_one_that_gives_other_rows_is_refused(found) -> None:
    again = found["fed_again"]
    assert (again["said"], again["is_exact"], again["went_on"]) == (["", ""], True, True)
    kind, said = again["changed"]
    assert kind == "RestoreRefusedError", said
    assert "the partition that Spark feeds to subtask" in said
    assert "the checksum of its first" in said


def test_a_store_that_executors_do_not_share_is_refused_before_anything_runs(found) -> None:
    not_shared = found["not_shared"]
    kind, said = not_shared.pop("elsewhere")
    assert kind == "LocalUsageError"
    assert "an executor does not see leader-1.claim in" in said
    assert "take a folder or an ObjectStore that all executors share" in said
    kind, said = not_shared.pop("in_memory")
    assert kind == "LocalUsageError"
    assert "a MemoryStore is in the memory of one process" in said
    assert not_shared == {"num_results": 0}


def test_nothing_is_left(found, place: Place) -> None:
    assert found["left"] == []
    assert found["new_work"] == set()
    assert place.left == []
