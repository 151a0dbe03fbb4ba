"""Stills are valid, named, described, deterministic, and change when the state does."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from widgets import pipeline_svg, pipeline_text, ribbon_model, ribbon_svg
from widgets.picture import run_picture

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
    assert not re.search(r"0x[0-9a-f]{6}|/home/|/work/|https?://(?!www\.w3\.org/2000/svg)", text)
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
    assert "prefers-reduced-motion" in first
    check_still(first)
