"""How wide words are drawn, measured in the widest font a page may have; and that names stay where they belong."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot, StreamEnvironment
from refimpl.state import MemoryStore
from refimpl.task import Progress
from tests.support.drawings import SVG, box_of, measured, words_in, words_on_words
from widgets import (
    AlignmentView,
    CheckpointView,
    CreditView,
    ExchangeView,
    JobView,
    PipelineMap,
    PoolView,
    QueueView,
    SegmentView,
    TaskManagerView,
    ThroughputView,
    TimelineView,
    WatermarkView,
)
from widgets.letters import fitting, width_of
from widgets.svg import name_element

ASCII = "".join(map(chr, range(32, 127)))
JOB_VIEWS = [
    PipelineMap, PoolView, QueueView, CreditView, SegmentView, JobView, ExchangeView, ThroughputView, WatermarkView,
    TimelineView, TaskManagerView, AlignmentView, CheckpointView,
]  # fmt: skip


@pytest.mark.parametrize("class_", ["big", "name", "failed", "", "soft", "small", "small soft", "small halo end"])
def test_no_letter_is_wider_than_it_is_taken_for(class_):
    for letter in ASCII + "…→·×▶○▲✓✗äöüßéÅçñøłαωΩшщЩ":
        assert measured(letter, class_) <= width_of(letter, class_), letter
    assert width_of(ASCII, class_) < 1.02 * measured(ASCII, class_)


def test_names_of_other_scripts_have_a_width():
    assert width_of("出发", "small") >= 24
    assert width_of("🛫", "small") >= 16
    assert width_of("e\N{COMBINING ACUTE ACCENT}") == width_of("é") == width_of("e")


def test_what_fits_is_left_alone_and_what_does_not_ends_with_its_number():
    assert fitting("source-0", 80, "name") == "source-0"
    assert fitting("a source of many flights-12", 100, "name") == "a sourc…-12"
    assert fitting("source-0 → a map that is far too long[3]", 120, "small") == "source-0 → a…[3]"
    assert fitting("a name of words", 60) == "a nam…"
    for room in range(0, 200, 7):
        words = fitting("x" * 60, room, "name")
        assert width_of(words, "name") <= room or words == "…"


def test_a_name_that_is_cut_is_told_whole():
    (element,) = ET.fromstring(f"<svg>{name_element(3, 4, 'a > b ' * 9, 90, 'name')}</svg>")
    assert (element.attrib, element[0].tag) == ({"x": "3", "y": "4", "class": "name"}, "title")
    assert "".join(element[0].itertext()) == "a > b " * 9
    assert "<title>" not in name_element(3, 4, "a > b", 90, "name")


# -- in the views ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def snapshot() -> JobSnapshot:
    """A job of names that no picture has room for, on two TaskManagers."""
    config = Config(segment_size_bytes=64, num_buffers=60, source_batch=2, checkpoint_interval_ms=1)
    environment = StreamEnvironment(config, 2)
    stream = environment.from_collection(range(90), long("Where")).rebalance().map(str, long("What")).filter(bool)
    stream.rebalance().sink(bool, long("Who"))
    with Simulation(environment, seed=3, num_task_managers=2, step_ms=0.05, store=MemoryStore()) as simulation:
        simulation.run(max_steps=40)
        return simulation.snapshot()


def long(word: str) -> str:
    return f"{word} all flights of the northern airports go, week by week"


@pytest.mark.parametrize("view_class", JOB_VIEWS, ids=lambda each: each.__name__)
def test_long_names_lie_on_no_other_words_and_stay_in_the_picture(view_class: Any, snapshot: JobSnapshot) -> None:
    view = view_class(snapshot)
    root = ET.fromstring(view.svg())
    width = float(root.get("width"))
    assert not [words for words, (left, right, _, _) in words_in(root) if left < 0 or right > width]
    assert not words_on_words(root)
    told = "".join("".join(part.itertext()) for part in root.iter(f"{SVG}title"))
    assert any(long(word) in told and long(word) in repr(view) for word in ("What", "Who"))
    view.close()


def test_what_a_task_of_many_records_does_lies_beside_no_other_words(snapshot: JobSnapshot) -> None:
    """A job that ran for a while and is held up."""
    many = {"num_records_in": 123_456_789, "num_records_out": 123_456_789, "progress": Progress.BACKPRESSURED}
    held_up = [
        replace(part, tasks=tuple(replace(task, **many) for task in part.tasks)) for part in snapshot.task_managers
    ]
    view = TaskManagerView(replace(snapshot, task_managers=tuple(held_up)))
    root = ET.fromstring(view.svg())
    said = [words for words, _ in words_in(root)]
    assert "in 123456789, out 123456789" in said
    assert "▲ backpressured" in said
    assert not words_on_words(root)
    view.close()


def test_an_operator_stays_in_its_box(snapshot: JobSnapshot) -> None:
    view = JobView(snapshot)
    for vertex in ET.fromstring(view.svg()).iterfind(f".//{SVG}g[@data-vertex]"):
        box = vertex.find(f"{SVG}rect[@class='box']")
        inside = [at for words, at in words_in(vertex) if words.startswith(("Wh", "filter"))]
        assert inside
        assert all(right < box_of(box)[1] for _, right, _, _ in inside)
    view.close()
