"""The map and the ribbon in a real JupyterLab in a real Chromium: drawn, moving, scrubbed, accessible, offline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.view_pages import JOB, check_accessible_in_both_themes, number, screenshots, the_view

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., Any]


@pytest.fixture
def notebook(notebook_in_shared_page: Open) -> Open:
    """Each test has a notebook and a kernel of its own; to load a JupyterLab for each took half of the time."""
    return notebook_in_shared_page


def test_a_recorded_run_is_scrubbed_by_keyboard_without_the_kernel(notebook: Open) -> None:
    nb = notebook(
        "recorded.ipynb",
        [
            JOB,
            "rec = Recording.of(Simulation(job(range(60)), seed=7)); view = PipelineMap(rec); view",
            "print(*[pipeline_status(rec.model(i)) for i in (0, 1, 9, len(rec) - 1)], sep='\\n')",
            "import time; time.sleep(600)",
        ],
    )
    nb.run(0)
    nb.run(1)
    said = nb.run(2).splitlines()
    data = nb.outputs(1)[0]["data"]
    assert {"text/plain", "image/svg+xml", "application/vnd.jupyter.widget-view+json"} <= set(data)
    view = the_view(nb, "map")
    assert nb.page.locator(".jp-OutputArea-output .jp-RenderedSVG").count() == 0, "the still is shown beside the view"
    nb.start(3)  # from here on the kernel sleeps
    view.focus()
    status, scrubber = view.get_by_role("status"), view.get_by_role("slider")
    frames = number(view, "frames")
    for key, at, words in (("Home", 0, said[0]), ("ArrowRight", 1, said[1]), ("End", frames - 1, said[3])):
        view.press(key)
        nb.until(f"() => document.querySelector('[data-testid=sluice-map]').dataset.at === '{at}'")
        assert status.inner_text() == f"frame {at + 1} of {frames}, {words}"
        assert scrubber.get_attribute("aria-valuetext") == f"frame {at + 1} of {frames}: {words}"
    scrubber.fill("9")
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.at === '9'")
    assert said[2] in status.inner_text()
    view.press("Home")
    view.press(" ")
    nb.until("() => +document.querySelector('[data-testid=sluice-map]').dataset.at > 3")
    view.press(" ")
    scrubber.fill("40")
    check_accessible_in_both_themes(nb, view)
    view.press("t")
    assert view.get_by_role("table").count() == 3
    view.press("t")
    screenshots(nb, view, "map-recorded")


def test_the_drawing_of_a_frame_is_the_still_of_that_frame(notebook: Open) -> None:
    nb = notebook(
        "same.ipynb",
        [
            JOB,
            "rec = Recording.of(Simulation(job(range(60)), seed=7)); view = PipelineMap(rec, at=0); view",
            "view.close(); PipelineMap(rec, at=30)",
        ],
    )
    facts = """root => ['[data-state]', '[data-progress]', '[data-field]', '.level', 'g title']
      .flatMap(which => [...root.querySelectorAll('svg ' + which)])
      .map(n => [n.dataset.state, n.dataset.progress, n.childElementCount ? '' : n.textContent,
                 n.getAttribute('y'), n.getAttribute('height')].join()).join('\\n')"""
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    before = view.evaluate(facts)
    view.get_by_role("slider").fill("30")
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.at === '30'")
    drawn = view.evaluate(facts)
    assert drawn != before
    nb.run(2)
    nb.until("() => document.querySelectorAll('[data-testid=sluice-map]').length === 1")
    assert the_view(nb, "map").evaluate(facts) == drawn


def test_a_live_run_moves_pauses_and_ends_while_the_kernel_stays_free(notebook: Open) -> None:
    nb = notebook(
        "live.ipynb",
        [
            JOB,
            "run = ThreadedRun(job(range(10**7), slow_s=0.001)).start(); view = PipelineMap(run); view",
            "print(run.is_paused, run.snapshot().num_steps)",
            "run.cancel()",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    nb.until("() => +document.querySelector('[data-testid=sluice-map]').dataset.painted > 20")
    first = number(view, "seq")
    nb.until(f"() => +document.querySelector('[data-testid=sluice-map]').dataset.seq > {first}")
    assert view.get_attribute("data-mode") == "live"
    started = nb.page.evaluate("() => performance.now()")
    assert nb.run(2).split()[0] == "False"
    assert nb.page.evaluate("() => performance.now()") - started < 20_000, "the live view keeps the kernel busy"
    view.get_by_role("button", name="Pause the job").click()
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.mode === 'paused'")
    is_paused, steps = nb.run(2).split()
    assert is_paused == "True"
    screenshots(nb, view, "map-live")
    view.press("ArrowLeft")
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.mode === 'scrubbed'")
    view.press("l")
    view.get_by_role("button", name="Resume the job").click()
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.mode === 'live'")
    nb.until(f"() => +document.querySelector('[data-testid=sluice-map]').dataset.seq > {steps}")
    nb.run(3)
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.mode === 'done'")
    check_accessible_in_both_themes(nb, view)


def test_a_view_that_is_out_of_sight_gets_no_frames(notebook: Open) -> None:
    nb = notebook(
        "hidden.ipynb",
        [
            JOB,
            "run = ThreadedRun(job(range(10**7), slow_s=0.001)).start(); view = PipelineMap(run); view",
            "print(view.sampler.num_sent)",
            "run.cancel()",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    nb.until("() => +document.querySelector('[data-testid=sluice-map]').dataset.painted > 5")
    view.evaluate("root => { root.style.display = 'none'; }")
    counts = [nb.run(2)]
    for _ in range(40):
        nb.page.wait_for_timeout(100)
        counts.append(nb.run(2))
        # Longer than the half second between two looks of a sampler that nobody watches.
        if counts[-8:] == counts[-1:] * 8:
            break
    assert counts[-8:] == counts[-1:] * 8, counts
    view.evaluate("root => { root.style.display = ''; }")
    painted = number(view, "painted")
    view.scroll_into_view_if_needed()
    nb.until(f"() => +document.querySelector('[data-testid=sluice-map]').dataset.painted > {painted + 3}")
    nb.run(3)


def test_a_simulation_takes_exactly_the_steps_that_were_asked_for(notebook: Open) -> None:
    nb = notebook(
        "stepped.ipynb",
        [JOB, "sim = Simulation(job(range(60)), seed=7); view = PipelineMap(sim); view", "print(sim.num_steps)"],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    view.focus()
    for _ in range(3):
        frames = number(view, "frames")
        view.press(".")
        nb.until(f"() => +document.querySelector('[data-testid=sluice-map]').dataset.frames === {frames + 1}")
    assert nb.run(2).strip() == "3"
    view.get_by_role("button", name="Ten steps").click()
    nb.until("() => +document.querySelector('[data-testid=sluice-map]').dataset.seq === 13")
    assert nb.run(2).strip() == "13"


def test_the_ribbon_goes_copy_by_copy_and_marks_the_first_difference(notebook: Open) -> None:
    counts = """[...document.querySelectorAll('[data-testid=sluice-ribbon] [data-buffer] > text.end')]
      .filter(text => text.dataset.later !== '1').length"""
    steps = [
        {"buffer": 0, "bytes_hex": "0000000568656c6c", "result": "PARTIAL_RECORD_MEMORY_SEGMENT_FULL"},
        {"buffer": 1, "bytes_hex": "000000056f", "result": "FULL_RECORD"},
    ]
    nb = notebook("ribbon.ipynb", [JOB, "ribbon(['68656c6c6f', '6869'], 8, yours_steps=" + repr(steps) + ")"])
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "ribbon")
    assert "first difference: copy 2, buffer 1, byte 0" in view.get_by_role("status").inner_text()
    bytes_shown = "document.querySelectorAll('[data-testid=sluice-ribbon] [data-byte]:not([data-later=\"1\"])').length"
    assert nb.page.evaluate(bytes_shown) == 8 + 5 + 8 + 1  # it opens on the difference, Flink's last copy is to come
    view.focus()
    view.press("ArrowLeft")
    nb.until(f"() => {bytes_shown} === 16")
    assert view.get_by_role("slider").get_attribute("aria-valuetext").startswith("frame 2 of 4: yours: copy 1: 8 B")
    view.press("Home")
    nb.until(f"() => {bytes_shown} === 0 && {counts} === 0")
    assert view.locator("[data-field=nothing]").first.is_visible()
    view.press("End")
    nb.until(f"() => {bytes_shown} === 8 + 5 + 8 + 7")
    assert nb.page.evaluate(counts) == 4  # one a buffer, though one of them took two copies
    check_accessible_in_both_themes(nb, view)
    view.press("t")
    assert view.get_by_role("table").count() == 2
    view.press("t")
    screenshots(nb, view, "ribbon")


def test_a_run_that_fails_says_why_and_can_be_played_again(notebook: Open) -> None:
    nb = notebook(
        "failing.ipynb",
        [
            JOB,
            """shown = threading.Event()
def land(value):
    if value > 100: shown.wait(60)  # it fails before our eyes
    if value > 300: raise ValueError(f'no runway for {value}')
    return value
env = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=14), 2)
env.source(lambda i, n: IterableReader(range(i, 9_000, n))).map(land).rebalance().sink(lambda v: None)
run = ThreadedRun(env).start(); view = PipelineMap(run); view""",
            "shown.set()",
            "view.sampler._thread.join(120); print('no runway for' in repr(view), view.sampler.is_alive)",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    nb.until("() => +document.querySelector('[data-testid=sluice-map]').dataset.frames > 1")
    nb.run(2)
    alert = view.get_by_role("alert")
    alert.wait_for()
    assert "The job failed. UserCodeError: map" in alert.inner_text()
    assert view.get_attribute("data-mode") == "failed"
    assert view.locator(".sluice-status").inner_text().endswith("the job failed")
    assert nb.run(3).split() == ["True", "False"]
    last = number(view, "at")
    view.get_by_role("button", name="Play").click()
    nb.until(f"() => document.querySelector('[data-testid=sluice-map]').dataset.at !== '{last}'")
    nb.until(f"() => document.querySelector('[data-testid=sluice-map]').dataset.at === '{last}'")


def test_a_kernel_that_was_restarted_is_missed_only_where_it_is_needed(notebook: Open) -> None:
    nb = notebook(
        "restarted.ipynb",
        [JOB, "PipelineMap(Simulation(job(range(60)), seed=7))", "TwoBufferRibbon([b'hello', b'to'], segment_size=8)"],
    )
    for index in range(3):
        nb.run(index)
    view, ribbon = the_view(nb, "map"), the_view(nb, "ribbon")
    view.press(".")
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.frames === '2'")
    nb.restart_kernel()
    view.get_by_role("alert").wait_for()
    assert "for a new run, run the cell again" in view.get_by_role("alert").inner_text()
    view.press("Home")
    nb.until("() => document.querySelector('[data-testid=sluice-map]').dataset.at === '0'")
    ribbon.press("Home")
    nb.until("() => document.querySelector('[data-testid=sluice-ribbon]').dataset.at === '0'")
    assert ribbon.get_by_role("alert").count() == 0


def test_a_view_shown_twice_is_two_views_of_one_job(notebook: Open) -> None:
    nb = notebook(
        "twice.ipynb",
        [JOB, "sim = Simulation(job(range(60)), seed=7); view = PipelineMap(sim); view", "view", "view.close()"],
    )
    for index in range(3):
        nb.run(index)
    nb.until("() => document.querySelectorAll('[data-testid=sluice-map]').length === 2")
    first, second = (nb.page.locator("[data-testid=sluice-map]").nth(index) for index in range(2))
    ids = nb.page.evaluate("[...document.querySelectorAll('.sluice [id]')].map(node => node.id)")
    assert len(ids) > 4
    assert len(set(ids)) == len(ids)
    first.press(".")
    nb.until("() => [...document.querySelectorAll('[data-testid=sluice-map]')].every(v => v.dataset.seq === '1')")
    second.press(".")
    nb.until("() => [...document.querySelectorAll('[data-testid=sluice-map]')].every(v => v.dataset.seq === '2')")
    nb.run(3)
    nb.until("() => !document.querySelector('[data-testid=sluice-map]')")


def test_a_saved_notebook_shows_its_views_again_without_their_kernel(notebook_in_own_page: Open, lab: Any) -> None:
    nb = notebook_in_own_page("saved.ipynb", [JOB, "PipelineMap(Recording.of(Simulation(job(range(60)), seed=7)))"])
    nb.run(0)
    nb.run(1)
    frames = number(the_view(nb, "map"), "frames")
    nb.save()
    for session in lab.api("sessions"):
        lab.api(f"sessions/{session['id']}", "DELETE")
    nb = notebook_in_own_page("saved.ipynb")
    view = the_view(nb, "map")
    assert number(view, "frames") == frames
    view.press("End")
    nb.until(f"() => document.querySelector('[data-testid=sluice-map]').dataset.at === '{frames - 1}'")
    assert "Error displaying widget" not in nb.page.locator(".jp-Notebook").inner_text()
    assert view.get_by_role("alert").count() == 0


def test_a_narrow_page_and_calm_motion_are_respected(notebook_in_own_page: Open) -> None:
    nb = notebook_in_own_page("narrow.ipynb", [JOB, "PipelineMap(Recording.of(Simulation(job(range(60)), seed=7)))"])
    nb.page.set_viewport_size({"width": 900, "height": 1000})
    nb.page.emulate_media(reduced_motion="reduce")
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "map")
    facts = view.evaluate(
        """root => { const bar = root.querySelector('.sluice-bar'), svg = root.querySelector('svg.sluice-picture');
          return { isOneRow: bar.clientHeight < 1.5 * bar.querySelector('button').offsetHeight,
            overflow: bar.scrollWidth > bar.clientWidth, words: parseFloat(getComputedStyle(svg).width) >= 660,
            transition: getComputedStyle(root.querySelector('.level')).transitionDuration }; }"""
    )
    assert facts == {"isOneRow": True, "overflow": False, "words": True, "transition": "0s"}
    assert view.get_by_role("button", name="First").count() == 1  # its word is hidden from eyes only
    screenshots(nb, view, "map-narrow")


def test_keys_of_a_view_do_not_reach_the_notebook(notebook: Open) -> None:
    nb = notebook("keys.ipynb", [JOB, "TwoBufferRibbon([b'hello', b'to'], segment_size=8)", "'last'"])
    nb.run(0)
    nb.run(1)
    cells = "() => jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.id + cell.inputHidden).join()"
    where = "() => jupyterapp.shell.currentWidget.content.activeCellIndex"
    view = the_view(nb, "ribbon")
    view.focus()
    before = nb.page.evaluate(cells), nb.page.evaluate(where)
    nb.page.evaluate("() => { window.leaked = []; document.addEventListener('keydown', e => leaked.push(e.key)); }")
    for key in ("Home", "ArrowRight", "ArrowLeft", "End", ".", "l", "t", "t", "?", "?", " ", " "):
        view.press(key)
    assert (nb.page.evaluate(cells), nb.page.evaluate(where)) == before
    assert view.evaluate("root => root === document.activeElement")
    view.press("F8")
    assert nb.page.evaluate("leaked") == ["F8"]  # what is not ours goes on
