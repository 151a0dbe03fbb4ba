"""The course in a tab: a real browser gets a folder of files, and steps, writes and checks with nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import title
from course.curriculum.specimens import zoo
from course.curriculum.stubs import solution, stub
from course.site.tab.build import UnmadeError, build_tab
from tests.support.tab_pages import (
    PATIENCE_MS,
    Served,
    begun,
    checked,
    in_the_terminal,
    opened,
    ready,
    served,
)
from tests.support.view_pages import axe_findings

pytestmark = [pytest.mark.slow, pytest.mark.browser]

LOOP = '@L.exercise("0.1")\ndef to_departure(flight):\n    while True:\n        pass\n'
LOOP_IN_C = '@L.exercise("0.1")\ndef to_departure(flight):\n    import itertools\n    return sum(itertools.repeat(0))\n'
REACHING = '@L.exercise("0.1")\ndef to_departure(flight):\n    from refimpl.shortcuts import lanes\n    return lanes\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Path:
    """Where there is no npm, or no network for it, there is no Python for browsers."""
    made = tmp_path_factory.mktemp("tab") / "try"
    try:
        build_tab(made)
    except UnmadeError as error:
        if "SHA-512" in str(error):  # that is no lack of npm
            raise
        pytest.skip(f"THE COURSE IN A TAB WAS NOT TESTED IN {browser_program}: {error}")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder) as server:
        yield server


@pytest.fixture(scope="module")
def page(context: BrowserContext, server: Served) -> Iterator[Page]:
    """One page for all, since it takes long to begin; at the end nothing may have failed or left this machine."""
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: wrong.append(said.text) if said.type in {"error", "warning"} else None)
    context.on(
        "request",
        lambda asked: (
            None if asked.url.startswith(("http://127.0.0.1:", "blob:", "data:")) else wrong.append(asked.url)
        ),
    )
    yield begun(made, server.address)
    made.close()
    assert wrong == []


def test_every_exercise_is_there_and_can_be_begun(page: Page) -> None:
    named = page.locator("[data-exercise]").evaluate_all("all => all.map(each => each.dataset.exercise)")
    assert named == list(EXERCISES)
    for exercise in EXERCISES:
        opened(page, exercise)
        assert page.locator("#part textarea").input_value() == stub(exercise)
        assert page.locator("#check").is_enabled(), page.locator("#about").inner_text()


def test_a_job_is_stepped_and_forked(page: Page) -> None:
    count = page.locator("#view .sluice-count")
    expect(count).to_have_text("frame 1 of 1")
    page.locator("#view").get_by_role("button", name="Ten steps").click()
    expect(count).to_have_text("frame 11 of 11")
    page.locator("#view .sluice").focus()
    page.keyboard.press("Home")
    page.keyboard.press("f")
    expect(page.locator("#view")).to_contain_text(re.compile("fork", re.IGNORECASE))
    page.locator("summary").click()
    page.locator("#job textarea").fill("job = 1 / 0\n")
    page.locator("#run").click()
    expect(page.locator("#said")).to_have_text("ZeroDivisionError: division by zero")


def test_a_right_and_a_wrong_part_are_told_what_the_terminal_says(page: Page) -> None:
    for source in (solution("3.1"), zoo("3.1")[0].source):
        assert checked(page, "3.1", source) == in_the_terminal("3.1", source)
    expect(page.locator('[data-exercise="3.1"]')).to_have_text(re.compile("^✓ "))


@pytest.mark.parametrize("source", [LOOP, REACHING], ids=["a loop", "a shortcut"])
def test_what_has_no_end_and_what_is_closed_is_told_what_the_terminal_says(page: Page, source: str) -> None:
    assert checked(page, "0.1", source) == in_the_terminal("0.1", source)


def test_a_worker_that_says_nothing_any_more_is_ended(page: Page) -> None:
    assert "0.1" in checked(page, "0.1", LOOP_IN_C)
    expect(page.locator("#report")).to_have_attribute("data-status", "timeout")


def test_a_reload_keeps_what_was_written_and_passed_also_without_a_server(
    context: BrowserContext, folder: Path, tmp_path: Path
) -> None:
    source = solution("0.1")
    with served(folder) as server:
        page = begun(context.new_page(), server.address)
        assert checked(page, "0.1", source) == in_the_terminal("0.1", source)
        page.wait_for_function("'offline' in document.documentElement.dataset")
    page.reload()
    ready(page)
    assert page.locator("#part textarea").input_value() == source
    assert page.locator("#standing").inner_text().startswith("■")
    with page.expect_download() as download:
        page.locator("#export").click()
    file = tmp_path / "progress.jsonl"
    download.value.save_as(file)
    (noted,) = map(json.loads, file.read_text().splitlines())
    assert (noted["event"], noted["exercise"], noted["status"]) == ("check", "0.1", "passed")

    file.write_text(json.dumps({**noted, "exercise": "1.1", "lesson": 1}) + "\n")
    page.locator("#import").set_input_files(file)
    expect(page.locator("#standing")).to_have_text(re.compile("2 of"))
    file.write_text("nothing of ours\n")
    page.locator("#import").set_input_files(file)
    expect(page.locator("#kept")).to_have_text(re.compile("^! .*no line of this file"))
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_read_by_everybody(page: Page, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme)
    assert axe_findings(page.locator(":root")) == []


def test_a_page_in_chinese_asks_and_answers_in_chinese_and_shares_what_is_kept(
    context: BrowserContext, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_LANGUAGE", "zh")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{server.address}index.html")
    page.get_by_role("link", name="中文").click()
    page.wait_for_function("document.documentElement.dataset.ready")
    expect(page.locator("#state")).to_have_text(re.compile("^引擎已经就绪"))
    opened(page, "2.2")
    assert page.locator("#part textarea").input_value() == stub("2.2", "zh")
    assert page.locator("#about").inner_text().startswith("在 Flink 里：")
    told = checked(page, "0.1", zoo("0.1")[0].source)  # this process has made its cases in English already
    assert title("0.1", "A") in told
    assert not re.search("[a-z]{3,} [a-z]{3,}", re.sub(r"sluice \w+", "", told))
    page.locator("#afresh").click()
    assert page.locator("#part textarea").input_value() == stub("0.1", "zh")
    page.get_by_role("link", name="English").click()
    ready(page)
    opened(page, "0.1")
    assert page.locator("#part textarea").input_value() == stub("0.1")
    expect(page.locator('[data-exercise="0.1"]')).to_have_text(re.compile("^[✗✓] "))
    page.close()


def test_it_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
