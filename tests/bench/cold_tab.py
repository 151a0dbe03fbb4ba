"""How long the site's first visitor waits, and how much is sent: `python -m tests.bench.cold_tab`.

A browser that keeps nothing opens a page; the clock runs until a queue has moved there, and until a right part has
been judged. The server is one for files, on this machine, and packs nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect

from course.curriculum.stubs import solution
from course.site.__main__ import build_site
from tests.bench.program import run_program
from tests.support.lab_pages import GET_ONE, chromium, running_chromium
from tests.support.lite_pages import expose, ready, run_source
from tests.support.tab_pages import PATIENCE_MS, checked, served
from tests.support.tab_pages import ready as tab_ready

_NOTEBOOK = "07_local_channels"
_PART = "0.1"
_GOALS = {"index": "a queue moves: < 10 s", "try": "judged: < 20 s, < 60 MB", "lite": "judged: < 20 s, < 60 MB"}


def index(page: Page, address: str) -> Iterator[str]:
    page.goto(f"{address}index.html")
    page.locator("figure[data-moves]").first.wait_for()
    _moved(page)
    yield "a queue moves"


def try_(page: Page, address: str) -> Iterator[str]:
    page.goto(f"{address}try/")
    count = page.locator("#view .sluice-count")
    page.locator("#view").get_by_role("button", name="Ten steps").click()
    expect(count).to_have_text("frame 11 of 11")
    yield "a queue moves"
    tab_ready(page)
    assert checked(page, _PART, solution(_PART)).startswith("✓")
    yield "judged"
    page.wait_for_function("'offline' in document.documentElement.dataset")
    yield "kept for no network"


def lite(page: Page, address: str) -> Iterator[str]:
    page.goto(f"{address}lite/lab/index.html?path={_NOTEBOOK}.ipynb")
    ready(page, _NOTEBOOK)
    yield "the kernel rests"
    for cell in ("setup", "queue"):
        page.evaluate(_RUN, cell)
    _moved(page)
    yield "a queue moves"
    assert run_source(page, "exercise-7-1", solution("7.1")) == ""
    assert run_source(page, "check", "print(check('7.1').in_terminal())").startswith("✓")
    yield "judged"


_RUN = """async id => {
  const { content } = jupyterapp.shell.currentWidget;
  content.activeCellIndex = content.widgets.findIndex(cell => cell.model.id === id);
  await jupyterapp.commands.execute('notebook:run-cell'); }"""

WAYS = {"index": index, "try": try_, "lite": lite}


def _moved(page: Page) -> None:
    """Go one frame on in the first view, by its keys."""
    page.locator(".sluice").first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".sluice-count").first).to_contain_text("frame 2 of")


def main() -> int:
    parser = argparse.ArgumentParser("tests.bench.cold_tab", description=__doc__.splitlines()[0])
    parser.add_argument("ways", nargs="*", default=list(WAYS), metavar="WAY", help=f"of {', '.join(WAYS)} these only")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often (3)")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="a site that is made already")
    arguments = parser.parse_args()
    if unknown := set(arguments.ways) - set(WAYS):
        parser.error(f"no such way: {', '.join(sorted(unknown))}")
    program = chromium()
    if program is None:
        parser.error(GET_ONE)
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory(prefix="sluice-cold-") as made:
        site = arguments.site or build_site(Path(made, "site"), {7}, has_tab=True, has_lite=True).parent
        if "lite" in arguments.ways:
            expose(site / "lite")
        for way in arguments.ways:
            for number in range(arguments.rounds):
                with served(site) as server, running_chromium(Path(made, f"{way}-{number}"), program) as context:
                    page = context.new_page()
                    page.set_default_timeout(PATIENCE_MS)
                    begun = time.monotonic()
                    told = [
                        f"{said} {time.monotonic() - begun:.1f} s, {server.num_bytes / 1e6:.1f} MB"
                        for said in WAYS[way](page, server.address)
                    ]
                    print(f"{way:5}  {' · '.join(told)}", flush=True)
            print(f"       goal: {_GOALS[way]}", flush=True)
    return 0


if __name__ == "__main__":
    run_program(main)
