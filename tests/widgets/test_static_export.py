"""Pages that `jupyter nbconvert --to html` makes of notebooks: the stills stand in them, and no kernel is asked."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from widgets import PipelineMap, Recording

LESSONS = Path(__file__).resolve().parents[2] / "lessons"


def stills(page: str) -> list[str]:
    """The SVG pictures of a page."""
    found = re.findall(r'<img[^>]+src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(html.unescape(each)).decode("utf-8") for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["03_spanning", "07_local_channels", "11_credit"])
def test_a_lesson_as_a_page_holds_each_of_its_stills(name: str) -> None:
    path = LESSONS / f"{name}.ipynb"
    page, _ = HTMLExporter().from_filename(str(path))
    outputs = [output.get("data", {}) for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    stored = [data["image/svg+xml"] for data in outputs if "image/svg+xml" in data]
    assert stored
    assert stills(page) == stored


@pytest.mark.slow
def test_a_view_that_was_run_and_saved_is_a_still_on_a_page(recording: Recording) -> None:
    view = PipelineMap(recording)
    data, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    cell = nbformat.v4.new_code_cell("view", outputs=[nbformat.v4.new_output("display_data", data)])
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert stills(page) == [view.svg()]
    view.close()
