"""A prediction as it is shipped, in a real JupyterLab: what answers it is folded until its cell is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from course.curriculum.questions import question
from tests.support.lab_pages import Lab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "03_spanning.ipynb"
SETUP, ASKED, SHOWN = 0, 1, 2


@pytest.fixture
def shipped(lab: Lab) -> str:
    """The first cell of a lesson, its first prediction and the cell behind it, as they are stored."""
    notebook = nbformat.read(LESSON, 4)
    at = next(place for place, cell in enumerate(notebook.cells) if cell.id == "predict-a")
    setup = next(cell for cell in notebook.cells if cell.cell_type == "code")
    notebook.cells = [setup, *notebook.cells[at : at + 2]]
    nbformat.write(notebook, lab.root / "asked.ipynb")
    return "asked.ipynb"


def test_what_answers_a_prediction_is_folded_until_its_cell_is_run(notebook: Callable[..., Any], shipped: str) -> None:
    asked = question("3.a", "predict")
    nb = notebook(shipped)
    cells = nb.page.locator(".jp-Notebook .jp-CodeCell")
    shown = cells.nth(SHOWN).get_by_text("PARTIAL_RECORD_MEMORY_SEGMENT_FULL")
    stored = cells.nth(ASKED).get_by_text(asked.answers["c"][:40])
    assert not shown.is_visible()
    assert not stored.is_visible()
    nb.run(SETUP)
    nb.run(ASKED)
    assert not shown.is_visible()
    nb.page.get_by_text(f"c)  {asked.choices['c']}").click()
    nb.page.get_by_text(f"{asked.answers['c']} The next cell shows it.").wait_for()
    assert not shown.is_visible()
    nb.run(SHOWN)
    shown.first.wait_for()


def test_without_a_kernel_a_choice_unfolds_its_answer_and_no_other(notebook: Callable[..., Any], shipped: str) -> None:
    asked = question("3.a", "predict")
    nb = notebook(shipped)
    cell = nb.page.locator(".jp-Notebook .jp-CodeCell").nth(ASKED)
    answers = {letter: cell.get_by_text(words[:40]) for letter, words in asked.answers.items()}
    assert [letter for letter, each in answers.items() if each.is_visible()] == []
    cell.get_by_text(f"d) {asked.choices['d']}").click()
    answers["d"].wait_for()
    assert [letter for letter, each in answers.items() if each.is_visible()] == ["d"]
