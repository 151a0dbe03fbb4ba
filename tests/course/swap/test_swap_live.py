"""The live view below a swap: the part goes into a job that runs, and out of it, and records go on."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from course import swap
from course.curriculum.seams import seam
from course.curriculum.specimens import right_answers
from course.swap import live
from course.swap.rule import part_of
from tests.support.polling import until
from widgets import ThroughputView

DEADLINE_S = 120.0
EXERCISES = [
    "0.1", "1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "4.1", "5.1", "5.2", "5.3", "6.3", "7.1",
    "9.1", "9.2", "9.3", "10.1", "10.2", "11.1", "11.2", "13.1", "13.2", "14.1", "15.1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def ended():
    yield
    live.end_last()


@pytest.fixture
def answers(monkeypatch):
    said: queue.Queue[str] = queue.Queue()
    put = lambda _view, content, buffers=None: said.put(content["words"]) if content["type"] == "refused" else None  # noqa: E731
    monkeypatch.setattr(ThroughputView, "send", put)
    return said


def num_arrived(view: Any) -> int:
    return sum(task.num_records_in for task in view._source.snapshot().tasks if "hourly" in task.operators)


def test_a_talk_with_a_flink_leaves_the_job_that_is_looked_at_and_the_next_swap_ends_it():
    view = swap.run("18.1", None, records=50, driver="threads").look()
    swap.run("18.1", None, driver="flink")
    assert not view._source.is_done
    swap.run("18.1", None, records=50)
    assert view._source.is_done


@pytest.mark.parametrize("exercise", ["14.1", "15.1"])
def test_a_source_that_rests_has_time_to_read_between_two_checkpoints(exercise):
    view = swap.run(exercise, None, records=50).look()
    (rest_ms,) = view._source.rests.values()
    assert view._source.config.checkpoint_interval_ms >= 10 * rest_ms


@pytest.mark.slow
@pytest.mark.sampled(one_in=3)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_part_goes_in_and_out_while_records_go_on(exercise, answers):
    part = part_of(right_answers(exercise)[0]) if exercise not in ("0.1", "2.2", "9.1") else function_of(exercise)
    view = swap.run(exercise, part, records=50).look()
    view.options["seconds"] = 3_600  # all of it is in view, however slow the machine is
    view._on_message(view, {"type": "visible", "view": "one"}, None)
    until(lambda: view._source.run and num_arrived(view) > 20)
    for name in ("your part", "our part", "your part"):
        view._on_message(view, {"type": "swap", "name": name}, None)
        assert answers.get(timeout=DEADLINE_S) == ""
        assert view.model()["marks"][-1]["words"] == name
        before = num_arrived(view)
        until(lambda before=before: num_arrived(view) > before + 200)
    assert [mark["words"] for mark in view.model()["marks"]] == ["your part", "our part", "your part"]
    assert live._guards[-1].num_calls > 0 or seam(exercise).swap in ("segment", "selector", "copy")
    assert [guard.what_happened for guard in live._guards] == [[], []]
    assert view._source.error is None
    view.close()


def function_of(exercise: str) -> Any:
    """The right function, whose cell defines no class."""
    import importlib

    wanted = seam(exercise)
    return getattr(importlib.import_module(wanted.module), wanted.part)
