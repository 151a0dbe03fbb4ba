"""Three faces of one view, refused options, and a clean end."""

from __future__ import annotations

import re

import pytest

from refimpl.errors import LocalUsageError
from widgets import Curve, Panel, PaperFigure, PipelineMap, TwoBufferRibbon
from widgets.base import front_end


@pytest.fixture(params=["map", "ribbon"])
def view(request, recording):
    view = PipelineMap(recording) if request.param == "map" else TwoBufferRibbon([b"hello"], segment_size=8)
    yield view
    view.close()


def test_the_bundle_holds_text_picture_and_view(view):
    data, _metadata = view._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/svg+xml", "application/vnd.jupyter.widget-view+json"}
    assert data["text/plain"] == repr(view) == view.text()
    assert data["image/svg+xml"] == view.svg()
    assert "0x" not in data["text/plain"]


def test_a_closed_view_still_has_words_and_a_picture(view):
    view.close()
    data, _metadata = view._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/svg+xml"}


def test_an_unknown_option_is_refused_with_the_right_name(recording):
    with pytest.raises(LocalUsageError, match=r"PipelineMap has no option 'titel'; did you mean 'title'\?"):
        PipelineMap(recording, titel="x")
    with pytest.raises(LocalUsageError, match=r"did you mean 'segment_size'\?"):
        TwoBufferRibbon([b"x"], segmentsize=8)
    with pytest.raises(LocalUsageError, match=r"no option 'zzz'\. Its options: at, ") as caught:
        PipelineMap(recording, zzz=1)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["pipeline_map", "ribbon"])
def test_a_module_is_self_contained(name):
    module = front_end(name)
    assert not re.search(r"\bimport\b[^.]*['\"(]|https?:|fetch\(|XMLHttpRequest|eval\(", module)
    assert module.count("export default") == 1


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("title", [5, None, ["x"]]),
        ("frames_per_second", ["x", None, True, 0, 31, float("nan")]),
        ("max_frames", ["x", 2.5, None, True, 0, 10**30]),
    ],
)
def test_an_option_that_cannot_work_is_refused_whatever_is_shown(recording, simulation, name, values):
    for value in values:
        for source in (recording, simulation):
            with pytest.raises(LocalUsageError, match=rf"^{name}=.* cannot work: "):
                PipelineMap(source, **{name: value})


def test_a_figure_has_at_least_one_column():
    for columns in (0, -1, "x", 1.5):
        with pytest.raises(LocalUsageError, match=r"^columns=.* cannot work: a whole number from 1"):
            PaperFigure("t", [Panel("x", "y", [Curve("a", [1], [1])])], columns=columns)
