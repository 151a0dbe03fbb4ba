"""What a learner meets first: the lessons by their titles, where to go on, and a job that runs on the first page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from course.curriculum.manifest import EXERCISES, LESSONS, START
from course.learner import progress
from course.places import lessons_folder
from tests.support.lab_pages import Lab, Notebook, opened, running_sluice_lab
from tests.support.view_pages import check_accessible_in_both_themes, screenshots_of, the_view

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The course as `sluice lab` opens it for somebody who has passed 0.1 and tried 3.1."""
    work = tmp_path / "work"
    (tmp_path / "lab").mkdir()
    work.mkdir()
    monkeypatch.setenv("SLUICE_WORK", str(work))
    progress.record("check", exercise="0.1", status="passed")
    progress.record("check", exercise="3.1", status="failed")
    for lesson in (START, LESSONS[3].name):
        shutil.copy(lessons_folder() / f"{lesson}.ipynb", work)
    with running_sluice_lab(tmp_path / "lab", work) as lab:
        yield lab


def test_the_first_page_runs_a_job_and_beside_it_stand_the_lessons(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    errors = list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    nb = opened(page, lab, f"{START}.ipynb")
    see_the_lessons(page)
    hold_the_sink_and_let_it_go(nb)
    screenshots_of(page.locator(".jp-LabShell"), "start")
    go_on_from_the_list_and_from_the_launcher(page)
    assert errors == []
    page.close()


def see_the_lessons(page: Page) -> None:
    listed = page.get_by_role("navigation", name="Lessons")
    listed.wait_for()
    assert listed.get_by_role("button").count() == 1 + len(LESSONS)
    for lesson in LESSONS.values():
        title = re.compile(rf"\b{re.escape(lesson.title)}")  # one title is a part of another's last words
        assert listed.get_by_role("button", name=title).count() == 1
    go_on = listed.get_by_role("button", name="Go on here: 3.1")
    assert go_on.inner_text().startswith("L03")
    assert EXERCISES["3.1"].title in go_on.inner_text()
    assert "■" in listed.get_by_role("button", name=LESSONS[0].title).inner_text()


def hold_the_sink_and_let_it_go(nb: Notebook) -> None:
    nb.run(1)
    view = the_view(nb, "queues")
    nb.until("() => document.querySelector('[data-testid=sluice-queues]').dataset.mode === 'live'")
    words = "document.querySelector('[data-testid=sluice-queues]').textContent"
    group = view.get_by_role("group", name="Change the running job")
    assert group.get_by_label("Which operator or task").input_value() == "sink"
    before = nb.page.evaluate(f"() => {words}")
    nb.page.wait_for_function(f"before => {words} !== before", arg=before)
    group.get_by_role("button", name="Hold it").click()
    nb.until(f"() => /2[0-9] queued/.test({words})")
    check_accessible_in_both_themes(nb, view)
    group.get_by_role("button", name="Let it go").click()
    nb.until(f"() => !/2[0-9] queued/.test({words})")


def go_on_from_the_list_and_from_the_launcher(page: Page) -> None:
    there = f"() => jupyterapp.shell.currentWidget.title.label === '{LESSONS[3].name}.ipynb'"
    listed = page.get_by_role("navigation", name="Lessons")
    listed.get_by_role("button", name="Go on here").focus()
    page.keyboard.press("Enter")
    page.wait_for_function(there)
    page.evaluate("() => jupyterapp.commands.execute('launcher:create').then(() => null)")
    page.get_by_title("Go on here: 3.1").locator("visible=true").last.click()
    page.wait_for_function(there)
    page.evaluate("() => jupyterapp.commands.execute('sluice:start').then(() => null)")
    page.wait_for_function(f"() => jupyterapp.shell.currentWidget.title.label === '{START}.ipynb'")
