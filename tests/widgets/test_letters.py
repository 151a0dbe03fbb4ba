"""How wide words are drawn, measured in the widest font a page may have; and that names stay where they belong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.ft2font import FT2Font, LoadFlags

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import JobSnapshot, StreamEnvironment
from widgets import (
    AlignmentView,
    ClusterView,
    CreditView,
    ExchangeView,
    JobView,
    PipelineMap,
    PoolView,
    QueueView,
    SegmentView,
    ThroughputView,
    TimelineView,
    WatermarkView,
)
from widgets.letters import fitting, width_of
from widgets.svg import name_element, static_text

SVG = "{http://www.w3.org/2000/svg}"
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
ASCII = "".join(map(chr, range(32, 127)))
JOB_VIEWS = [
    PipelineMap, PoolView, QueueView, CreditView, SegmentView, JobView, ExchangeView, ThroughputView, WatermarkView,
    TimelineView, ClusterView, AlignmentView,
]  # fmt: skip


@cache
def font(is_bold: bool) -> FT2Font:
    return FT2Font(str(FONTS / ("DejaVuSans-Bold.ttf" if is_bold else "DejaVuSans.ttf")))


@cache
def looks() -> dict[str, tuple[float, bool]]:
    """What the style sheet says of the size and the weight of each class of words; of "" what holds for all."""
    rules = re.findall(r"#ID text(?:\.(\w+))?\{([^}]*)\}", static_text("picture.css"))
    said = {name: (re.search(r"font-size:(\d+)px", rule), "font-weight:650" in rule) for name, rule in rules}
    return {name: (float(size[1]) if size else 13.0, is_bold) for name, (size, is_bold) in said.items()}


@cache
def measured(words: str, class_: str) -> float:
    size, is_bold = next(
        (looks()[name] for name in class_.split() if looks().get(name, looks()[""]) != looks()[""]), looks()[""]
    )
    face = font(is_bold)
    ems = [face.load_char(ord(letter), flags=LoadFlags.NO_SCALE).horiAdvance for letter in words]
    return sum(ems) / face.units_per_EM * size


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
    with Simulation(environment, seed=3, num_task_managers=2) as simulation:
        simulation.run(max_steps=40)
        return simulation.snapshot()


def long(word: str) -> str:
    return f"{word} all flights of the northern airports go, week by week"


def boxes(root: ET.Element, x: float = 0, y: float = 0) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """All words of a picture that are seen: what they are, and left, right, top and bottom of them."""
    if root.get("data-state") == "absent" or root.tag in (f"{SVG}title", f"{SVG}desc"):
        return
    moved = re.findall(r"-?[\d.]+", root.get("transform", "")) or ["0", "0"]
    x, y = x + float(moved[0]), y + float(moved[1])
    if root.tag == f"{SVG}text":
        words, class_ = "".join([root.text or "", *(part.tail or "" for part in root)]), root.get("class", "")
        width = measured(words, class_)
        share = {"end": 1.0, "mid": 0.5}.get(next(iter({"end", "mid"} & set(class_.split())), ""), 0.0)
        left, base = x + float(root.get("x")) - share * width, y + float(root.get("y"))
        if words.strip():
            yield words, (left, left + width, base - 9, base + 2)
    for part in root:
        yield from boxes(part, x, y)


@pytest.mark.parametrize("view_class", JOB_VIEWS, ids=lambda each: each.__name__)
def test_long_names_lie_on_no_other_words_and_stay_in_the_picture(view_class: Any, snapshot: JobSnapshot) -> None:
    view = view_class(snapshot)
    root = ET.fromstring(view.svg())
    found = list(boxes(root))
    width = float(root.get("width"))
    assert not [words for words, (left, right, _, _) in found if left < 0 or right > width]
    over = [
        (one, other)
        for (one, a), (other, b) in combinations(found, 2)
        if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]
    assert not over
    told = "".join("".join(part.itertext()) for part in root.iter(f"{SVG}title"))
    assert any(long(word) in told and long(word) in repr(view) for word in ("What", "Who"))
    view.close()


def test_an_operator_stays_in_its_box(snapshot: JobSnapshot) -> None:
    view = JobView(snapshot)
    for vertex in ET.fromstring(view.svg()).iterfind(f".//{SVG}g[@data-vertex]"):
        box = vertex.find(f"{SVG}rect[@class='box']")
        inside = [at for words, at in boxes(vertex) if words.startswith(("Wh", "filter"))]
        assert inside
        assert all(right < float(box.get("x")) + float(box.get("width")) for _, right, _, _ in inside)
    view.close()
