"""The site's pictures in a real browser, opened from a disk: they move, by mouse and by keys, and ask nobody."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.curriculum.manifest import LESSONS
from course.site.published import MISSING
from tests.support.view_pages import axe_findings

ROOT = Path(__file__).resolve().parents[2]
LEAST_LETTER_PX = 8  # the height of a line of a picture's smallest words

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    command = [sys.executable, "-m", "course.site", str(folder), "--moving", "3,7", "--no-try", "--no-lite"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=850)
    assert done.returncode == 0, f"{browser_program}: {done.stderr}"
    return folder


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    made = context.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: wrong.append(said.text) if said.type in {"error", "warning"} else None)
    made.on("request", lambda asked: None if re.match("file:|blob:|data:", asked.url) else wrong.append(asked.url))
    yield made
    made.close()
    assert wrong == []


def front(page: Page, site: Path) -> Page:
    page.goto((site / "index.html").as_uri())
    expect(page.locator("figure[data-moves]")).to_have_count(1)
    return page


def test_the_first_picture_moves_by_mouse_and_by_keys(page: Page, site: Path) -> None:
    front(page, site)
    count = page.locator(".sluice-count")
    page.locator(".sluice").focus()
    page.keyboard.press("Home")
    expect(count).to_have_text(re.compile(r"^frame 1 of \d+$"))
    page.keyboard.press("ArrowRight")
    expect(count).to_have_text(re.compile(r"^frame 2 of \d+$"))
    page.locator('.sluice-bar input[type="range"]').fill("9")
    expect(count).to_have_text(re.compile(r"^frame 10 of \d+$"))


def test_every_recorded_view_of_a_lesson_wakes_and_the_others_stay(page: Page, site: Path) -> None:
    page.goto((site / f"{LESSONS[7].name}.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    frames = page.locator("figure.sluice-view")
    for number in range(frames.count()):
        frames.nth(number).scroll_into_view_if_needed()
    expect(page.locator("figure[data-moves]")).to_have_count(1)
    expect(page.locator("figure.sluice-view:not([data-moves]) > img")).to_have_count(frames.count() - 1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_view_follows_the_theme_of_the_page(page: Page, site: Path, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    front(page, site).evaluate("theme => { document.body.dataset.theme = theme }", theme)
    expect(page.locator("html")).to_have_attribute("data-jp-theme-light", str(theme == "light").lower())
    paper, ground = (
        page.locator(where).evaluate("node => getComputedStyle(node).backgroundColor") for where in (".sluice", "body")
    )
    assert paper == ground


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", LESSONS[7].name, "zh/index", f"zh/{LESSONS[3].name}", MISSING])
def test_a_page_can_be_read_by_everybody(page: Page, site: Path, name: str, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto((site / f"{name}.html").as_uri())
    assert axe_findings(page.locator(":root")) == []


def test_its_words_can_be_read_on_a_phone(page: Page, site: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("index", LESSONS[3].name):
        page.goto((site / f"{name}.html").as_uri())
        page.locator("figure.sluice-view").first.scroll_into_view_if_needed()
        expect(page.locator("figure[data-moves]").first).to_be_visible()
        heights = page.locator("svg.sluice-picture text").evaluate_all(
            "all => all.filter(each => each.checkVisibility()).map(each => each.getBoundingClientRect().height)"
        )
        assert min(each for each in heights if each) >= LEAST_LETTER_PX
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
