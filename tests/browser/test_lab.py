"""The JupyterLab of `sluice lab`: when kernels end, and how a report stands on a narrow page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psutil
import pytest
from playwright.sync_api import BrowserContext

from course.curriculum.specimens import zoo
from tests.support.lab_pages import CLOSE, Lab, opened, running_sluice_lab
from tests.support.polling import until
from tests.support.view_pages import THEMES, screenshots_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The same rule as ours, for tests that have no quarter of an hour; long enough for a kernel to start.
IDLE_S = 15
SOON = f"c.MappingKernelManager.cull_idle_timeout = {IDLE_S}\nc.MappingKernelManager.cull_interval = 1\n"
SPARK = [
    "from pyspark.sql import SparkSession; SparkSession.builder.master('local[1]').getOrCreate()",
    "import os; print(os.getpid())",
]


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    with running_sluice_lab(tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("work"), request.param) as lab:
        yield lab


def processes_below(kernel: psutil.Process) -> list[psutil.Process]:
    return [kernel, *kernel.children(recursive=True)]


def seconds_idle(lab: Lab) -> float:
    (kernel,) = lab.api("kernels")
    return (datetime.now(UTC) - datetime.fromisoformat(kernel["last_activity"])).total_seconds()


def are_gone(processes: list[psutil.Process]) -> bool:
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes)


@pytest.mark.spark
@pytest.mark.parametrize("lab", [""], indirect=True)
def test_closing_a_tab_ends_its_kernel_and_its_java(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    nb = opened(page, lab, "spark.ipynb", SPARK)
    nb.run(0)
    running = processes_below(psutil.Process(int(nb.run(1))))
    assert [each.name() for each in running if each.name() == "java"] == ["java"]
    page.evaluate(CLOSE)
    assert until(lambda: are_gone(running) and lab.api("kernels") == [])
    page.close()


@pytest.mark.parametrize("lab", [SOON], indirect=True)
def test_a_window_that_is_closed_ends_its_kernel_and_an_open_one_never(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    nb = opened(page, lab, "quiet.ipynb", ["import os; print(os.getpid())", "print('still here')"])
    kernel = psutil.Process(int(nb.run(0)))
    (before,) = lab.api("kernels")
    assert before["connections"] == 1
    until(lambda: seconds_idle(lab) > IDLE_S + 3)  # three looks of the server later
    assert nb.run(1).strip() == "still here"
    page.close()
    assert until(lambda: are_gone([kernel]) and lab.api("kernels") == [])


WRONG = zoo("3.1")[0].source.replace("class Serializer", '@L.exercise("3.1")\nclass Serializer')
REPORT = ["from course import check, lesson; L = lesson(3)", WRONG, 'check("3.1")']

# Of the report: how high each line begins and ends, whether some of it is beyond the edge, and where a letter stands.
LAID_OUT = """() => {
  const pre = jupyterapp.shell.currentWidget.content.widgets[2].node.querySelector('.jp-RenderedText pre');
  const lines = pre.textContent.trimEnd().split('\\n');
  const letter = (line, column) => {
    let at = lines.slice(0, line).join('\\n').length + (line ? 1 : 0) + column;
    const walk = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
    for (; walk.nextNode(); at -= walk.currentNode.length) {
      if (at >= walk.currentNode.length) continue;
      const range = new Range();
      range.setStart(walk.currentNode, at);
      range.setEnd(walk.currentNode, at + 1);
      return range.getBoundingClientRect();
    }
  };
  const caret = lines.findIndex(line => line.includes('^^')), column = lines[caret].indexOf('^^');
  const full = lines.map((line, i) => [line, i]).filter(([line]) => line.trim());
  return {
    starts: full.map(([line, i]) => letter(i, line.search(/\\S/)).top),
    ends: full.map(([line, i]) => letter(i, line.length - 1).top),
    isCut: pre.scrollWidth > pre.clientWidth, scrolls: getComputedStyle(pre).overflowX,
    caret: letter(caret, column).left, above: letter(caret - 1, column).left, letter: lines[caret - 1][column],
  }; }"""


@pytest.mark.parametrize("lab", [""], indirect=True)
def test_a_report_keeps_its_columns_on_a_narrow_page(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 1024, "height": 768})  # the list of lessons is open
    nb = opened(page, lab, "report.ipynb", REPORT)
    for cell in range(3):
        nb.run(cell)
    assert page.locator("#sluice-lessons").is_visible()
    for theme in THEMES:
        nb.theme(theme)
        screenshots_of(page.locator(".jp-Notebook"), f"report-{theme.split()[1].lower()}")
        found = page.evaluate(LAID_OUT)
        assert (found["isCut"], found["ends"]) == (False, found["starts"]), "each line is one line, and whole"
        assert (found["caret"], found["letter"]) == (found["above"], "6")
    page.set_viewport_size({"width": 760, "height": 768})
    nb.until(f"() => ({LAID_OUT})().isCut")
    found = page.evaluate(LAID_OUT)
    assert (found["scrolls"], found["ends"], found["caret"]) == ("auto", found["starts"], found["above"])
    page.close()
