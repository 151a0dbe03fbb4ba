"""Each view's module alone in an empty page, as any front end may load it: Notebook's, VS Code's, one not yet written.

What the format asks (anywidget's front-end module): one default export whose `render({ model, el })` draws into `el`
and returns its clean-up. The page has no Jupyter, and reaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page

import widgets
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader, TumblingWindows
from tests.support.small_jobs import Count
from tests.support.small_races import small_race
from tests.support.view_pages import check_accessible, screenshots_of
from widgets import BytesBesideFlink, RaceView, Recording, Stepper, TwoBufferRibbon
from widgets.base import View

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB_VIEWS = [
    "PipelineMap", "PoolView", "QueueView", "CreditView", "SegmentView", "JobView", "ExchangeView", "ThroughputView",
    "WatermarkView", "TimelineView", "TaskManagerView", "AlignmentView", "CheckpointView",
]  # fmt: skip

# Loads a module from a blob, as anywidget does, and keeps count of all it hangs on the page.
MOUNT = """async ({ esm, css, state }) => {
  const held = new Set(), seen = [], whole = [];
  const key = (what, name, f) => { if (!seen.includes(f)) seen.push(f); return `${what} ${name} ${seen.indexOf(f)}`; };
  for (const [what, target] of [['document', document], ['window', window]]) {
    const { addEventListener: add, removeEventListener: remove } = target;
    whole.push(() => { target.addEventListener = add; });
    target.addEventListener = (name, f, ...how) => { held.add(key(what, name, f)); add.call(target, name, f, ...how); };
    target.removeEventListener = (name, f) => { held.delete(key(what, name, f)); remove.call(target, name, f); };
  }
  const every = window.setInterval, stop = window.clearInterval;
  window.setInterval = (...all) => { const id = every(...all); held.add('interval ' + id); return id; };
  window.clearInterval = id => { held.delete('interval ' + id); stop(id); };
  for (const kind of ['IntersectionObserver', 'ResizeObserver']) window[kind] = class extends window[kind] {
    observe(node) { held.add(kind); super.observe(node); }
    disconnect() { held.delete(kind); super.disconnect(); }
  };
  const model = {
    get: name => state[name],
    set() { throw Error('a view sets nothing'); }, save_changes() { throw Error('a view saves nothing'); },
    on: (name, f) => { held.add(key('model', name, f)); if (name === 'msg:custom') window.hear = f; },
    off: (name, f) => held.delete(key('model', name, f)),
    send: content => sent.push(content),
  };
  window.sent = []; window.hear = null;
  const before = Object.getOwnPropertyNames(window);
  const module = await import(URL.createObjectURL(new Blob([esm], { type: 'text/javascript' })));
  const style = document.createElement('style'); style.textContent = css; document.head.append(style);
  const el = document.createElement('main'); document.body.append(el);
  const end = await module.default.render({ model, el });
  whole.forEach(again => again()); // from here on it is Playwright that listens
  window.unmount = async () => {
    end();
    const painted = el.firstChild.dataset.painted;
    await new Promise(done => setTimeout(done, 300));
    return { held: [...held], moved: el.firstChild.dataset.painted !== painted };
  };
  const globals = Object.getOwnPropertyNames(window).filter(name => !before.includes(name) && name !== 'unmount');
  return { exports: Object.keys(module), parts: Object.keys(module.default), end: typeof end, globals }; }"""

# Words of pictures that reach out of them, or lie on other words.
UNREADABLE = """root => [...root.querySelectorAll('svg.sluice-picture')].flatMap(svg => {
  const around = svg.getBoundingClientRect(), scale = around.width / svg.viewBox.baseVal.width;
  const all = [...svg.querySelectorAll('text')].filter(text => text.textContent.trim() && text.checkVisibility())
    .map(text => ({ words: text.textContent, box: text.getBoundingClientRect() })).filter(({ box }) => box.width > 0);
  const cut = all.filter(({ box }) => box.left < around.left - 1 || box.right > around.right + 1
    || box.top < around.top - 1 || box.bottom > around.bottom + 1).map(({ words }) => `cut off: ${words}`);
  const by = (a, b) => [Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)].map(each => each / scale);
  const over = all.flatMap(({ words, box }, place) => all.slice(place + 1)
    .filter(other => { const [wide, tall] = by(box, other.box); return wide > 1 && tall > 4; })
    .map(other => `${words} | ${other.words}`));
  return [...cut, ...over]; })"""

# Lets a live view hear frames, and counts how often its words, and its shapes, change meanwhile.
HEAR = """async frames => {
  const svg = document.querySelector('svg.sluice-picture'), root = document.querySelector('.sluice');
  let words = 0, shapes = 0;
  const watcher = new MutationObserver(all => {
    words += all.some(each => each.type === 'childList');
    shapes += all.some(each => each.type === 'attributes');
  });
  watcher.observe(svg, { subtree: true, childList: true, attributes: true });
  const start = performance.now();
  for (const [at, frame] of frames.entries()) {
    window.hear({ type: 'frame', frame, seq: at + 1, paused: false, done: false, error: '' });
    await new Promise(done => setTimeout(done, 20));
  }
  const passed_ms = performance.now() - start, found = { words, shapes, passed_ms };
  await new Promise(done => setTimeout(done, 400));
  const moment = svg.querySelector('[data-as=words]').textContent;
  return { ...found, moment, sentence: root.querySelector('.sluice-sentence').textContent }; }"""

# The names VS Code gives its colours, with those of its own two themes.
VS_CODE = {
    "light": {"--vscode-editor-foreground": "#3b3b3b", "--vscode-editor-background": "#ffffff",
              "--vscode-descriptionForeground": "#3b3b3b"},
    "dark": {"--vscode-editor-foreground": "#cccccc", "--vscode-editor-background": "#1f1f1f",
             "--vscode-descriptionForeground": "#9d9d9d"},
}  # fmt: skip


def small_job(num_records: int = 60) -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=24, source_batch=2), 2)
    (
        environment.source(lambda i, n: IterableReader(range(i, num_records, n)))
        .assign_timestamps(lambda value: 1_700_000_000_000 + value * 1_000, 0, every=4)
        .key_by(lambda value: value % 5)
        .window(TumblingWindows(10_000))
        .aggregate(Count())
        .sink(bool)
    )
    return environment


@pytest.fixture(scope="module")
def recording() -> Recording:
    with Simulation(small_job(), seed=3, num_task_managers=2, max_delay_ms=0.05) as simulation:
        return Recording.of(simulation)


@pytest.fixture(params=[*JOB_VIEWS, "TwoBufferRibbon", "BytesBesideFlink", "RaceView", "live", "stepper"])
def view(request: pytest.FixtureRequest, recording: Recording) -> Iterator[View]:
    makers: dict[str, Callable[[], View]] = {
        "TwoBufferRibbon": lambda: TwoBufferRibbon([b"hello", b"to"]),
        "BytesBesideFlink": lambda: BytesBesideFlink(b"hello to all", b"hallo to me"),
        "RaceView": lambda: RaceView(small_race()),
        "live": lambda: widgets.JobView(ThreadedRun(small_job(), num_task_managers=2), swaps={"mine": {}}),
        "stepper": lambda: widgets.QueueView(Stepper(small_job(), num_task_managers=2)),
    }
    view = makers.get(request.param, lambda: getattr(widgets, request.param)(recording))()
    yield view
    view.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("request", lambda request: None if request.url.startswith("blob:") else wrong.append(request.url))
    page.set_content("<!doctype html><html lang=en><title>A view</title><body></body></html>")
    yield page
    page.close()
    assert not wrong, wrong


def mounted(page: Page, view: View) -> tuple[dict[str, Any], Locator]:
    not_ours = ("_model", "_view", "layout")
    state = {name: value for name, value in view.get_state().items() if not name.startswith(not_ours)}
    found = page.evaluate(MOUNT, {"esm": str(view._esm), "css": str(view._css), "state": state})
    return found, page.locator(".sluice")


@pytest.mark.sampled(one_in=5)
def test_a_module_is_one_render_that_leaves_nothing_behind(page: Page, view: View) -> None:
    found, root = mounted(page, view)
    assert found == {"exports": ["default"], "parts": ["render"], "end": "function", "globals": []}
    assert root.locator("svg.sluice-picture").first.is_visible()
    if view._mode == "recorded":  # what plays must stop, too
        root.press("Home")
        root.press(" ")
        page.wait_for_function("() => +document.querySelector('.sluice').dataset.at > 0")
    assert page.evaluate("unmount()") == {"held": [], "moved": False}


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("theme", VS_CODE)
def test_a_view_is_readable_in_the_colours_of_vs_code(page: Page, view: View, theme: str, request: Any) -> None:
    colours = ";".join(f"{name}:{value}" for name, value in VS_CODE[theme].items())
    page.evaluate(
        "([theme, colours]) => { document.body.className = `vscode-${theme}`; document.documentElement.style = colours;"
        " document.body.style.background = 'var(--vscode-editor-background)'; }",
        [theme, colours],
    )
    _, root = mounted(page, view)
    root.press("t")
    root.press("?")
    check_accessible(root)
    screenshots_of(root, f"vscode-{request.node.callspec.params['view']}-{theme}")


@pytest.mark.sampled(one_in=3)
def test_no_words_are_cut_off_or_lie_on_others(page: Page, view: View) -> None:
    _, root = mounted(page, view)
    frames = int(root.get_attribute("data-frames") or 0)
    for at in sorted({*range(0, frames, 7), frames - 1}):
        if frames > 1:
            root.get_by_role("slider").first.fill(str(at))
            page.wait_for_function("at => document.querySelector('.sluice').dataset.at === at", arg=str(at))
        assert root.evaluate(UNREADABLE) == []


@pytest.mark.sampled(one_in=5)
def test_at_a_large_zoom_what_is_too_wide_is_scrolled_by_keyboard(page: Page, view: View) -> None:
    page.set_viewport_size({"width": 480, "height": 900})  # a page of 960 at 200 %
    _, root = mounted(page, view)
    root.press("t")
    root.press("?")
    check_accessible(root)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "the page itself is too wide"
    picture, at = root.locator(".sluice-holder").first, root.get_attribute("data-at")
    picture.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.sluice-holder').scrollLeft > 0")
    assert root.get_attribute("data-at") == at
    screenshots_of(root, f"zoom-{type(view).__name__}-{view._mode}")
    page.set_viewport_size({"width": 1500, "height": 1000})
    page.wait_for_function("() => !document.querySelector('.sluice-holder').hasAttribute('tabindex')")


def test_while_a_view_moves_its_words_change_ten_times_a_second_and_its_shapes_as_often_as_they_can(
    page: Page, recording: Recording
) -> None:
    view = widgets.QueueView(ThreadedRun(small_job(), num_task_managers=2))
    try:
        frames = [view.frame_of(view.model_of(*moment, view._known)) for moment in recording.moments[:60]]
        mounted(page, view)
        heard = page.evaluate(HEAR, frames)
        last = view.facts(view.model_of(*recording.moments[59], view._known))
    finally:
        view.close()
    assert 1 <= heard["words"] <= heard["passed_ms"] / 100 + 2
    assert heard["shapes"] > 2 * heard["words"]
    assert heard["moment"] == last["moment"]  # the words of the last frame come, although no other follows
    assert heard["sentence"] == last["status"]


def test_of_a_job_too_wide_for_the_map_what_is_drawn_moves_and_the_table_has_all(page: Page) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=900), 10)
    environment.source(lambda i, n: IterableReader(range(i, 200, n))).rebalance().map(str).rebalance().sink(bool)
    with Simulation(environment, seed=3) as simulation:
        first = simulation.snapshot()
        recording = Recording(widgets.topology(first))
        recording.add(first)
        recording.add(simulation.run(max_steps=60).snapshot())
    view = widgets.PipelineMap(recording, at=0)
    try:
        _, root = mounted(page, view)
        root.press("t")
        root.press("End")
        page.wait_for_function("() => document.querySelector('.sluice').dataset.at === '1'")
        channels = recording.model(1)["channels"]
        shown = root.locator("[data-ch]").evaluate_all("all => all.map(g => [+g.dataset.ch, +g.dataset.queued])")
        rows = root.locator("caption", has_text="Channels").locator("xpath=..").locator("tbody tr").count()
    finally:
        view.close()
    assert len(shown) == 128
    assert shown == [[number, len(channels[number]["queue"])] for number, _ in shown]
    assert any(queued for _, queued in shown)
    assert max(number for number, _ in shown) > 128
    assert rows == len(channels) == 200
