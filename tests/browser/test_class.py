"""The dashboard in a real Chromium: the page for the projector, and the same in a notebook.

Screenshots in both themes go to the folder SLUICE_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Request

from course.classroom.class_file import ClassFile
from course.curriculum.manifest import EXERCISES
from tests.support.class_ends import T0, Served, checked, secret, served
from tests.support.view_pages import axe_findings

AT = [*EXERCISES].index("3.1")

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EVIL = "<img src=x onerror=alert(1)>"

PROBLEMS = """root => {
  const found = [], named = node => (node.getAttribute('aria-label') || node.textContent || '').trim();
  for (const b of root.querySelectorAll('button, select')) if (!named(b)) found.push('a control without a name');
  for (const t of root.querySelectorAll('table')) if (!t.caption?.textContent) found.push('a table without a caption');
  for (const c of root.querySelectorAll('td[data-status]'))
    if (!c.querySelector('.sluice-ear').textContent) found.push('a mute cell');
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (colour, under) => {
    canvas.fillStyle = `rgb(${under.join()})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const behind = node => {
    const above = [];
    for (let n = node; n; n = n.parentElement) above.unshift(getComputedStyle(n).backgroundColor);
    return above.reduce((under, colour) => over(colour, under), [255, 255, 255]);
  };
  for (const node of root.querySelectorAll('*')) {
    const says = [...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!says || !node.checkVisibility() || node.matches('.sluice-ear, caption, option')) continue;
    const under = behind(node), ink = over(getComputedStyle(node).color, under);
    const [a, b] = [light(under), light(ink)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found.push(`${node.tagName} "${node.textContent.slice(0, 20)}" ${contrast.toFixed(2)}`);
  }
  return [...new Set(found)]; }"""


def shoot(page: Page, name: str) -> None:
    folder = os.environ.get("SLUICE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def fill(path: Path) -> None:
    """Thirty learners in a class: some done, some failing, one stuck, one away, one who caught up."""
    rules = "EEEEEDDDCFFS"
    with ClassFile(path) as file, file.transaction():
        for n in range(30):
            learner = file.join(f"learner{n:02d}", secret(n), T0 - 3600).id
            events = [checked("0.1", "passed", n=1, time=T0 - 1500)] if n % 5 else []
            events += [checked(n=k, time=T0 - 900 + 100 * k, rule=rules[n % len(rules)]) for k in range(n % 6)]
            events += [checked(status="passed", n=9, time=T0 - 100)] if n % 4 == 1 else []
            file.add_events(learner, events, T0)
            for minute in range(60 if n != 7 else 30):
                file.touch({learner: T0 - 3600 + 61 * minute})
        file.add_events(1, [{"event": "catchup", "exercise": "0.1", "time": T0 - 1000}], T0)
        file.add_action({"kind": "checkpoint", "exercise": "3.1"}, T0 - 1200)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "class.sqlite", title=f"Streams, Tuesday {EVIL}") as serving:
        yield serving


@pytest.fixture
def page(context: BrowserContext, room: Served) -> Iterator[Page]:
    """A page of the class; at its end nothing may have failed, and nothing asked of another machine."""
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("dialog", lambda dialog: wrong.append("a script of a learner ran") or dialog.dismiss())
    base = f"http://127.0.0.1:{room.port}/"

    def look(request: Request) -> None:
        if room.key in request.url or not request.url.startswith((base, "data:")):
            wrong.append(request.url)

    page.on("request", look)
    page.goto(base)
    yield page
    page.close()
    # A refusal is a line of Chromium's own in the console; those here are meant.
    assert not [each for each in wrong if not re.search(r"status of (401|503)", each)], wrong


def enter(page: Page, room: Served) -> None:
    page.get_by_label("The key of this class").fill(room.key)
    page.get_by_role("button", name="Open").click()
    page.locator("[data-painted]").wait_for()


def test_the_page_asks_for_the_key_and_shows_nothing_without_it(page: Page, room: Served) -> None:
    fill(room.path)
    page.get_by_label("The key of this class").fill("AAAAA")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("that is not the key of this class").wait_for()
    assert "learner0" not in page.content()
    assert page.get_by_label("The key of this class").input_value() == ""
    assert page.locator("body").evaluate(PROBLEMS) == []
    assert axe_findings(page.locator("body")) == []
    shoot(page, "class-door")
    enter(page, room)
    assert page.url == f"http://127.0.0.1:{room.port}/"
    page.reload()
    page.locator("[data-painted]").wait_for()
    page.get_by_role("button", name="Close the dashboard").click()
    page.get_by_label("The key of this class").wait_for()
    page.reload()
    page.get_by_label("The key of this class").wait_for()


def test_the_page_shows_the_room_in_light_and_in_dark(page: Page, room: Served) -> None:
    enter(page, room)
    assert "Nobody has joined yet" in page.locator(".sluice-class").inner_text()
    fill(room.path)
    page.wait_for_function("() => document.querySelectorAll('.sluice-grid tbody tr').length === 30")
    model = room.model()
    root = page.locator(".sluice-class")
    assert page.locator("h2").inner_text() == f"Streams, Tuesday {EVIL}"
    assert page.locator("h2 *").count() == 0
    assert f"sluice join {room.code}@" in root.inner_text()
    cells = page.locator(".sluice-grid td[data-status=failed] .sluice-mark").all_inner_texts()
    assert sorted(cells) == sorted(c["rule"] for each in model["learners"] for c in each["cells"] if c["rule"])
    for kind, name in (("passed", "passed"), ("failed", "tried"), ("stuck", "stuck")):
        totals = page.locator(f"[data-total={kind}] td [aria-hidden]").all_text_contents()
        assert totals == [str(each[name] or "") for each in model["exercises"]]
    worst = max(model["rules"], key=lambda row: row["now"])
    hottest = page.locator(f".sluice-heat li[data-rule={worst['rule']}][data-now='{worst['now']}']")
    assert worst["title"] in hottest.get_attribute("title")
    first = page.locator(".sluice-worst li").first.inner_text()
    assert f"{worst['now']} learners {worst['exercise']} rule {worst['rule']}" in first
    assert page.locator(".sluice-grid tbody td[data-stuck]").count() == len(model["stuck"]) > 12
    more = page.locator(".sluice-stuck li").all_inner_texts()[12:]
    assert more == [f"and {len(model['stuck']) - 12} more, marked in the grid"]
    assert page.locator(".sluice-summary").inner_text().startswith("30 learners, 29 here now · checkpoint 3.1")
    assert page.get_by_test_id("sluice-exercise").input_value() == "3.1"
    page.get_by_role("status").filter(has_text="30 learners, 29 here now").wait_for(state="attached")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert root.evaluate(PROBLEMS) == []
        assert axe_findings(page.locator("body")) == []
        shoot(page, f"class-page-{scheme}")
    page.get_by_test_id("sluice-hide").click()
    assert "learner07" not in root.inner_text()
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    shoot(page, "class-page-narrow")
    page.set_viewport_size({"width": 1500, "height": 1000})


def test_decisions_and_a_class_that_is_gone_for_a_moment(page: Page, room: Served) -> None:
    fill(room.path)
    enter(page, room)
    page.get_by_test_id("sluice-exercise").select_option("3.1")
    page.get_by_test_id("sluice-rung").select_option("3")
    page.get_by_test_id("sluice-unlock").click()
    page.get_by_text("hints of 3.1 are open to rung 3 for all").wait_for()
    page.locator(".sluice-grid thead", has_text="hints to 3").wait_for()
    reset = page.get_by_test_id("sluice-reset")
    reset.click()
    assert reset.inner_text() == "Really reset 3.1 for 30 learners?"
    assert room.model()["exercises"][AT]["resets"] == 0
    room.clock.now += 1
    reset.click()
    page.get_by_text("3.1 starts afresh for all; attempts are kept").wait_for()
    page.wait_for_function(
        f"() => !document.querySelector('.sluice-grid tbody td:nth-child({AT + 2})[data-status=passed]')"
    )
    assert reset.inner_text() == "Start afresh"
    with page.expect_download() as download:
        page.get_by_role("link", name="Moodle").click()
    assert Path(download.value.path()).read_bytes().startswith(b"Username,Sluice 0.1")
    gone = {"status": 503, "json": {"error": "the class cannot keep anything now"}}
    page.route("**/api/class", lambda route: route.fulfill(**gone))
    page.get_by_text("the class cannot keep anything now").wait_for()
    page.unroute("**/api/class")
    page.wait_for_function("() => document.querySelector('.sluice-notice').hidden")


LESSONS = (1, 3, 3, 1, 2, 2, 3, 1, 2, 3, 2, 2, 3, 3, 3, 3, 3, 3, 2)
"""How many exercises a course of nineteen lessons has in each."""


def large(model: dict[str, Any]) -> dict[str, Any]:
    """The same class with forty learners in such a course, of which each is a little further than the one above."""
    statuses = ("passed", "not_started", "caught_up", "failed", "timeout")
    ids = [(lesson, place) for lesson, num in enumerate(LESSONS) for place in range(1, num + 1)]
    learners = []
    for number in range(40):
        marks = ["passed" if at < number else statuses[number % 5] if at == number else "not_started"
                 for at in range(len(ids))]  # fmt: skip
        cells = [{"status": mark, "rule": "E" if mark == "failed" else "", "attempts": 1, "minutes": 4,
                  "stuck": mark == "timeout"} for mark in marks]  # fmt: skip
        learners.append({"handle": f"a-long-handle-{number:02d}", "here": number % 7 > 0, "cells": cells})
    exercises = [
        {**model["exercises"][0], "id": f"{lesson}.{place}", "lesson": lesson, "unlocked": 3,
         "passed": sum(each["cells"][at]["status"] == "passed" for each in learners)}
        for at, (lesson, place) in enumerate(ids)
    ]  # fmt: skip
    return {**model, "exercises": exercises, "learners": learners, "checkpoint": "7.1"}


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
def test_a_room_of_forty_in_nineteen_lessons_is_seen_at_a_glance(
    page: Page, room: Served, width: int, height: int
) -> None:
    fill(room.path)
    page.route("**/api/class", lambda route: route.fulfill(json=large(room.model())))
    page.set_viewport_size({"width": width, "height": height})
    enter(page, room)
    grid = page.locator(".sluice-part")
    assert page.locator(".sluice-grid tbody tr").count() == 40
    assert page.locator(".sluice-grid thead th[scope=col]").count() == sum(LESSONS)
    assert page.locator("th[scope=colgroup]").evaluate_all("all => all.map(each => each.colSpan)") == [*LESSONS]
    for mark in (grid.locator("tbody td").first, grid.locator("tbody td").last, grid.locator("thead th").first):
        page.wait_for_function("node => node.getBoundingClientRect().width > 0", arg=mark.element_handle())
        box = mark.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height, "all of the room is on the screen"
    assert grid.evaluate("node => [node.scrollWidth - node.clientWidth, node.scrollHeight - node.clientHeight]") == [
        0,
        0,
    ]
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.locator(".sluice-class").evaluate(PROBLEMS) == []
        assert axe_findings(page.locator("body")) == []
        shoot(page, f"class-room-{width}-{scheme}")
    page.get_by_label("Size of text").fill("26")
    assert grid.evaluate("node => node.scrollWidth > node.clientWidth")
    grid.evaluate("node => node.scrollTo(9999, 9999)")
    name, head = grid.locator("tbody th").last, grid.locator("th[scope=col]").last
    left, top = grid.evaluate("node => [node.getBoundingClientRect().left, node.getBoundingClientRect().top]")
    assert abs(name.bounding_box()["x"] - left) < 2, "names stay beside their marks"
    assert top <= head.bounding_box()["y"] < top + 99, "and exercises above them"


def test_the_grid_is_walked_with_keys_and_a_repaint_keeps_the_place(page: Page, room: Served) -> None:
    fill(room.path)
    enter(page, room)
    assert page.locator(".sluice-grid [tabindex='0']").count() == 1
    page.locator(".sluice-grid [tabindex='0']").focus()
    here = "() => document.activeElement.title"
    says = page.locator(".sluice-detail")
    assert page.evaluate(here).startswith("learner00, 0.1 A map function: caught up")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(here).startswith("learner02, 1.1 A window on the memory: not started")
    assert says.inner_text() == page.evaluate(here)
    page.keyboard.press("End")
    assert page.evaluate(here).startswith(f"learner02, {[*EXERCISES][-1]}")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(here).startswith("learner01, 0.1")
    with ClassFile(room.path) as file, file.transaction():
        file.admit("a-new-one", T0)  # comes to stand above
    page.wait_for_function("() => document.querySelectorAll('.sluice-grid tbody tr').length === 31")
    assert page.evaluate(here).startswith("learner01, 0.1")
    assert page.locator(".sluice-grid [tabindex='0']").count() == 1


def test_a_dashboard_whose_key_was_replaced_says_so(page: Page, room: Served) -> None:
    fill(room.path)
    enter(page, room)
    door = page.get_by_label("The key of this class")
    with ClassFile(room.path) as file:
        file.make_key()
    page.get_by_text("show the key of this class first; `sluice class token` prints it").wait_for()
    assert door.is_visible()


def test_the_same_dashboard_in_a_notebook(notebook: Callable[..., Any], tmp_path: Path) -> None:
    with served(tmp_path / "class.sqlite", title="Tuesday") as room:
        fill(room.path)
    nb = notebook(
        "class.ipynb",
        [
            f"from course.classroom import ClassView\nview = ClassView({str(tmp_path / 'class.sqlite')!r})\nview",
            f"print(view.model()['exercises'][{AT}]['unlocked'], len(view.model()['learners']))",
            "view.close()",
        ],
    )
    nb.run(0)
    assert nb.outputs(0)[0]["data"]["text/plain"].startswith("Class Tuesday: 30 learners")
    view = nb.page.locator("[data-testid=sluice-class]")
    view.wait_for()
    assert view.locator(".sluice-grid tbody tr").count() == 30
    assert view.locator(".sluice-grid thead th[scope=col]").count() == len(EXERCISES)
    view.get_by_test_id("sluice-exercise").select_option("3.1")
    view.get_by_test_id("sluice-unlock").click()
    view.get_by_text("hints of 3.1 are open to rung 1 for all").wait_for()
    assert nb.run(1).split() == ["1", "30"]
    with ClassFile(tmp_path / "class.sqlite") as file, file.transaction():
        file.admit("late", T0)
    nb.until("() => document.querySelectorAll('.sluice-grid tbody tr').length === 31")  # nobody ran a cell
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        nb.theme(theme)
        assert view.evaluate(PROBLEMS) == []
        assert axe_findings(view) == []
        shoot(nb.page, f"class-notebook-{re.sub('.* ', '', theme).lower()}")
    nb.theme("JupyterLab Light")
    nb.run(2)
