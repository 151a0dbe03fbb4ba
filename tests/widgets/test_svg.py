"""Stills are valid, named, described, deterministic, and change when the state does."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from refimpl.config import Config
from refimpl.errors import UserCodeError
from refimpl.job import StreamEnvironment
from widgets import (
    Curve,
    JobView,
    Panel,
    PaperFigure,
    PipelineMap,
    QueueView,
    Stepper,
    TimelineView,
    WatermarkView,
    pipeline_svg,
    pipeline_text,
    ribbon_model,
    ribbon_svg,
)
from widgets.picture import run_picture

TRACKED = Path(__file__).resolve().parents[2] / "lessons" / "images" / "buffers.svg"
SVG = "{http://www.w3.org/2000/svg}"


def check_still(text: str) -> None:
    root = ET.fromstring(text)
    assert root.get("role") == "img"
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(set(ids)) == len(ids)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text
    assert description.text
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert not re.search(r"0x[0-9a-f]{6}|/home/|https?://(?!www\.w3\.org/2000/svg)", text)
    assert str(Path(__file__).resolve().parents[2]) not in text
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= set(ids), used - set(ids)


def test_a_pipeline_still_is_well_formed_at_every_step(recording):
    for index in range(0, len(recording), 7):
        check_still(pipeline_svg(recording.model(index), "A <job> & its 'buffers'"))


def test_a_ribbon_still_is_well_formed():
    for records, size in (([b"hello", b"hi", b""], 8), ([b"x" * 3_000], 64), ([], 8), ([b"hello"], 1)):
        check_still(ribbon_svg(ribbon_model(records, size)))


def test_the_level_of_a_slot_is_the_share_of_the_buffer_that_is_written(recording):
    for index in range(len(recording)):
        model = recording.model(index)
        entries = [e for c in model["channels"] for e in c["queue"][:6] if not e["is_event"]]
        root = ET.fromstring(pipeline_svg(model))
        shown = [
            float(slot.find(f"{SVG}rect[@class='level']").get("height"))
            for slot in root.iterfind(f".//{SVG}g[@data-ch]/{SVG}g[@data-slot]")
            if slot.get("data-state") in ("open", "finished")
        ]
        assert shown == [pytest.approx(26 * e["written_bytes"] / e["capacity_bytes"], abs=0.06) for e in entries]


def test_a_failed_job_says_so_in_its_picture(recording):
    still = pipeline_svg(recording.model(9), error="ValueError: no <runway>")
    check_still(still)
    words = [text.text for text in ET.fromstring(still).iterfind(f"{SVG}text")]
    assert "✗ the job failed: ValueError: no <runway>" in words
    assert height_of(still) > height_of(pipeline_svg(recording.model(9)))


def height_of(still: str) -> float:
    return float(ET.fromstring(still).get("height"))


def test_the_names_of_a_chain_stay_in_their_station(recording):
    model = recording.model(9)
    chains = (["a"], ["source", "timestamps", "map", "filter", "flat map", "sink"], ["a long name"] * 6, ["x" * 60] * 2)
    for operators in chains:
        model["tasks"][0]["operators"] = operators
        root = ET.fromstring(pipeline_svg(model))
        station = next(g for g in root.iter(f"{SVG}g") if g.get("data-task") == "0")
        names = [text.text for text in station.iterfind(f"{SVG}text[@class='name']") if not text.get("data-field")]
        assert 1 <= len(names) <= 3
        assert all(len(name) <= 22 for name in names)
        card = station.find(f"{SVG}rect[@class='card']")
        bottom = float(card.get("y")) + float(card.get("height"))
        assert all(float(mark.get("y")) < bottom - 8 for mark in station.iter(f"{SVG}text"))


def test_buffers_without_a_square_are_counted(recording):
    model = recording.model(9)
    model["outputs"][0]["size_buffers"] = 15
    assert " · +3 □" in pipeline_svg(model)
    assert "□" not in pipeline_svg(recording.model(9))


def test_the_count_of_a_buffer_goes_with_the_copies():
    root = ET.fromstring(ribbon_svg(ribbon_model([b"hello", b"to"], 16)))
    counts = [
        (text.text, text.get("data-step"), text.get("data-until"), text.get("data-later"))
        for text in root.iterfind(f".//{SVG}g[@data-buffer='0']/{SVG}text[@data-step]")
    ]
    assert counts == [("9 of 16 B", "0", "1", "1"), ("15 of 16 B", "1", None, None)]


def test_an_empty_queue_says_so():
    def empty_mark(records: list[bytes]) -> str | None:
        root = ET.fromstring(ribbon_svg(ribbon_model(records, 8)))
        return root.find(f".//{SVG}text[@data-field='nothing']").get("data-later")

    assert empty_mark([]) == "0"
    assert empty_mark([b"hello"]) == "1"


def test_the_same_model_gives_the_same_bytes(recording):
    assert pipeline_svg(recording.model(9)) == pipeline_svg(recording.model(9))


def test_picture_and_text_change_with_the_state(recording):
    models = [recording.model(index) for index in range(len(recording))]
    bodies = [re.sub(r"<desc.*</desc>|pipeline-[0-9a-f]{8}", "", pipeline_svg(model)) for model in models]
    changed = [b != a for a, b in pairwise(bodies)]
    told = [pipeline_text(b) != pipeline_text(a) for a, b in pairwise(models)]
    assert all(told)
    assert sum(changed) > 0.9 * len(changed)


@pytest.mark.slow
def test_the_moving_picture_is_small_well_formed_and_the_same_every_time(tmp_path):
    first = run_picture(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert first == run_picture(tmp_path / "b.svg").read_text(encoding="utf-8")
    assert len(first.encode()) < 100_000
    assert TRACKED.read_text(encoding="utf-8") == first, f"run: python -m widgets.picture {TRACKED}"
    assert "prefers-color-scheme:dark" in first
    assert "prefers-reduced-motion" in first
    check_still(first)


ODD = "\x1b[31mred\x1b[0m \0 \x0b \ud800 \ufffe <a> & 'b' \"c\""


def odd_job():
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=64), 2)
    environment.from_collection(range(9), ODD).rebalance().map(lambda n: 1 // (n - 4), "a > b").sink(bool)
    return environment


@pytest.mark.parametrize("view_class", [JobView, PipelineMap, QueueView, TimelineView, WatermarkView])
def test_whatever_names_hold_a_picture_is_xml(view_class):
    stepper = Stepper(odd_job(), seed=1)
    with pytest.raises(UserCodeError):
        stepper.run()
    view = view_class(stepper, title=ODD)
    written = view.svg()
    said = " ".join(ET.fromstring(written).itertext())
    assert "\N{REPLACEMENT CHARACTER}[31mred" in said
    assert "a > b" in said
    assert not re.search(r"<title[^>]*>[^<]*(>)[^<]*</title>", written)
    view.close()
    stepper.close()


def test_whatever_a_figure_says_is_xml():
    figure = PaperFigure(ODD, [Panel(ODD, "y", [Curve("\x1b[1m", [1, 2], [1, 2]), Curve("b", [1, 2], [2, 1])])])
    said = " ".join(ET.fromstring(figure.svg()).itertext())
    assert "\N{REPLACEMENT CHARACTER}[31mred" in said
