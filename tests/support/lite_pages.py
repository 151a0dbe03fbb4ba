"""The notebooks of `lite/`, served from a folder: opened, run from top to bottom, and what their cells then show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.support.lab_pages import READY
from tests.support.tab_pages import PATIENCE_MS

__all__ = ["expose", "in_words", "opened_lite", "ran_all", "ready", "run_source"]

_RUN_ALL = """async () => {
  const { content } = jupyterapp.shell.currentWidget;
  await jupyterapp.commands.execute('notebook:run-all-cells');
  return content.widgets.filter(cell => cell.model.type === 'code').map(({ model }) => (
    { id: model.id, count: model.executionCount, outputs: model.outputs.toJSON() })); }"""

_SOURCE = """async ([id, source]) => {
  const { content } = jupyterapp.shell.currentWidget;
  const index = content.widgets.findIndex(cell => cell.model.id === id);
  content.widgets[index].model.sharedModel.setSource(source);
  content.activeCellIndex = index;
  await jupyterapp.commands.execute('notebook:run-cell');
  return content.widgets[index].model.outputs.toJSON(); }"""


def expose(folder: Path) -> None:
    """Have its pages offer the application to a test."""
    file = folder / "jupyter-lite.json"
    told = json.loads(file.read_text())
    told["jupyter-config-data"]["exposeAppInBrowser"] = True
    file.write_text(json.dumps(told))


def opened_lite(page: Page, address: str, name: str) -> None:
    """The notebook, with its kernel at rest."""
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}lab/index.html?path={name}.ipynb")
    ready(page, name)


def ready(page: Page, name: str) -> None:
    """Wait until the notebook is shown and its kernel is at rest."""
    shown = "name => globalThis.jupyterapp?.shell.currentWidget?.context?.path === name"
    page.wait_for_function(shown, arg=f"{name}.ipynb")
    page.evaluate(READY)


def ran_all(page: Page) -> dict[str, Any]:
    """All code cells after a run, by id: their counts and outputs."""
    return {cell["id"]: cell for cell in page.evaluate(_RUN_ALL)}


def run_source(page: Page, cell: str, source: str) -> str:
    """What a cell says when this is written in it and run."""
    return in_words(page.evaluate(_SOURCE, [cell, source]))


def in_words(outputs: list[dict[str, Any]]) -> str:
    """The text of outputs."""
    found = []
    for each in outputs:
        text = each.get("text", each.get("data", {}).get("text/plain", each.get("evalue", "")))
        found.append("".join(text))
    return "\n".join(found)
