"""Notebooks in a browser and nothing else: a folder of files is served, and they run from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page

from course.curriculum.specimens import zoo
from course.curriculum.stubs import solution
from course.site.lite.build import NOTEBOOKS, build_lite
from course.site.tab.build import UnmadeError
from tests.support.lite_pages import expose, in_words, opened_lite, ran_all, ready, run_source
from tests.support.tab_pages import Served, in_the_terminal, served

pytestmark = [pytest.mark.slow, pytest.mark.browser]

_IS_KEPT = """async () => {
  const [name] = (await caches.keys()).filter(each => each.startsWith('sluice-lite-'));
  const worker = await (await fetch('../service-worker.js')).text();
  const files = JSON.parse(worker.match(/SLUICE_FILES = (.*);/)[1]);
  return (await (await caches.open(name)).keys()).length >= files.length; }"""
PICTURE = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Path:
    """Where pip or npm cannot bring what it is made of, there is none."""
    made = tmp_path_factory.mktemp("lite") / "lite"
    try:
        build_lite(made)
    except UnmadeError as error:
        if not any(words in str(error) for words in ("could not bring", "did not bring", "there is no npm")):
            raise
        pytest.skip(f"NOTEBOOKS WERE NOT TESTED IN {browser_program} ALONE: {error}")
    expose(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder) as server:
        yield server


def is_wrong(said: ConsoleMessage) -> bool:
    """JupyterLite asks its server for the content of a folder that a notebook has made, and none is there."""
    return said.type == "error" and not re.search(r"/api/contents/.+/all\.json$", said.location["url"])


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """At the end nothing may have left this machine, and nothing may have failed."""
    made = context.new_page()
    wrong: list[str] = []
    ours = ("http://127.0.0.1:", "blob:", "data:")
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: wrong.append(f"{said.text} {said.location}") if is_wrong(said) else None)
    context.on("request", lambda asked: None if asked.url.startswith(ours) else wrong.append(asked.url))
    yield made
    made.close()
    assert wrong == []


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.sampled(one_in=2)
def test_a_notebook_runs_from_top_to_bottom_without_a_traceback(page: Page, server: Served, name: str) -> None:
    opened_lite(page, server.address, name)
    cells = ran_all(page)
    assert [cell for cell, ran in cells.items() if ran["count"] is None] == []
    failed = {cell: output["ename"] for cell, ran in cells.items() for output in ran["outputs"] if "ename" in output}
    assert failed == {}
    said = {cell: in_words(ran["outputs"]) for cell, ran in cells.items()}
    assert "○ skipped: Spark needs Java" in said["spark"]
    assert "live" not in said or said["live"].startswith("○ This job runs on threads")
    assert any(PICTURE in output.get("data", {}) for ran in cells.values() for output in ran["outputs"])


def test_a_right_and_a_wrong_part_are_told_what_the_terminal_says(page: Page, server: Served) -> None:
    exercise = "3.1"
    opened_lite(page, server.address, "03_spanning")
    run_source(page, "setup", "from course import check, lesson\nL = lesson(3)")
    wrong = zoo(exercise)[0].source.replace("class Serializer", f'@L.exercise("{exercise}")\nclass Serializer')
    for source in (wrong, solution(exercise)):
        assert run_source(page, "exercise-3-1", source) == ""
        said = run_source(page, "check", f'print(check("{exercise}").in_terminal())')
        assert said.strip() == in_the_terminal(exercise, source)
    assert "none lost" in run_source(page, "swap", f'L.swap("{exercise}")')
    assert run_source(page, "receipt", "L.receipt()").startswith("✓ receipt-03.json")


def test_what_a_browser_lacks_is_said_in_a_sentence_and_other_errors_stay(page: Page, server: Served) -> None:
    opened_lite(page, server.address, "00_ten_records")
    run_source(page, "setup", "import course")
    for source, lacks in (
        ("import threading\nthreading.Thread(target=print).start()", "threads"),
        ("import subprocess\nsubprocess.run(['true'])", "processes"),
        ("import pyspark", "Spark"),
        ("import socket\nsocket.SO_REUSEADDR", "sockets"),
    ):
        assert run_source(page, "map", source).startswith(f"○ This needs {lacks}, which a browser does not have.")
    assert run_source(page, "map", "raise RuntimeError('mine')") == "mine"


def test_the_folder_alone_leads_to_jupyterlab(page: Page, server: Served) -> None:
    page.goto(server.address)
    page.wait_for_url("**/lab/index.html")
    page.wait_for_function("globalThis.jupyterapp?.started")


def test_it_opens_and_runs_again_without_a_server(context: BrowserContext, page: Page, folder: Path) -> None:
    with served(folder) as server:
        opened_lite(page, server.address, "03_spanning")
        page.wait_for_function(_IS_KEPT)
    page.reload()
    ready(page, "03_spanning")
    assert "Lesson 3" in run_source(page, "setup", "from course import lesson\nlesson(3)")
