"""Every view of a job, in a real JupyterLab in a real Chromium; a new view is tested by adding a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.view_pages import JOB, check_accessible_in_both_themes, number, screenshots, the_view

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., Any]

# The name of the view, and its kind.
VIEWS = [
    ("PipelineMap", "map"), ("PoolView", "pools"), ("QueueView", "queues"), ("CreditView", "credits"),
    ("SegmentView", "segments"), ("JobView", "job"), ("ExchangeView", "exchange"),
    ("ThroughputView", "throughput"), ("WatermarkView", "watermarks"), ("TimelineView", "timeline"),
    ("TaskManagerView", "taskmanagers"), ("AlignmentView", "alignment"), ("CheckpointView", "checkpoints"),
]  # fmt: skip

# Everything a frame changes in a drawing.
FACTS = """root => ['[data-state]', '[data-field]', '[data-fact]', '.level', 'g title']
  .flatMap(which => [...root.querySelectorAll('svg ' + which)])
  .map(n => [n.dataset.state, n.dataset.progress, n.childElementCount ? '' : n.textContent,
             n.getAttribute('y'), n.getAttribute('height')].join()).join('\\n')"""


@pytest.fixture
def notebook(notebook_in_shared_page: Open) -> Open:
    """Each view has a notebook and a kernel of its own; to load a JupyterLab for each took half of the time."""
    return notebook_in_shared_page


rows = pytest.mark.parametrize(("name", "kind"), VIEWS, ids=[name for name, _ in VIEWS])


@rows
@pytest.mark.sampled(one_in=7)
def test_a_live_view_moves_obeys_and_outlives_cell_and_kernel(notebook: Open, name: str, kind: str) -> None:
    data = f"document.querySelector('[data-testid=sluice-{kind}]').dataset"
    nb = notebook(
        f"live-{kind}.ipynb",
        [
            JOB,
            "run = ThreadedRun(job(range(10**7), slow_s=0.001), num_task_managers=2).start()",
            f"view = {name}(run); view",
            "print(run.is_paused)",
        ],
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, kind)
    nb.until(f"() => +{data}.painted > 10")
    first, drawn = number(view, "seq"), view.evaluate(FACTS)
    nb.until(f"() => +{data}.seq > {first}")
    root = f"document.querySelector('[data-testid=sluice-{kind}]')"
    nb.page.wait_for_function(f"drawn => ({FACTS})({root}) !== drawn", arg=drawn)
    started = nb.page.evaluate("() => performance.now()")
    assert nb.run(3).strip() == "False"
    assert nb.page.evaluate("() => performance.now()") - started < 20_000, "the live view keeps the kernel busy"
    view.press(" ")
    nb.until(f"() => {data}.mode === 'paused'")
    assert nb.run(3).strip() == "True"
    view.press("t")
    assert view.get_by_role("table").count() >= 1
    screenshots(nb, view, f"{kind}-live-table")
    view.press("?")
    assert view.get_by_text("all numbers as a table").is_visible()
    check_accessible_in_both_themes(nb, view)
    view.press("?")
    view.press("t")
    view.press("ArrowLeft")
    nb.until(f"() => {data}.mode === 'scrubbed'")
    view.press("Home")
    nb.until(f"() => {data}.at === '0'")
    view.press("End")
    view.press(" ")
    nb.until(f"() => {data}.mode === 'live'")
    check_accessible_in_both_themes(nb, view)
    nb.run(2)  # the cell again: a new view, which moves
    nb.until(f"() => document.querySelectorAll('[data-testid=sluice-{kind}]').length === 1 && +{data}.painted > 3")
    nb.restart_kernel()
    view.get_by_role("alert").wait_for()
    assert "run the cell again" in view.get_by_role("alert").inner_text()
    view.press("Home")
    nb.until(f"() => {data}.at === '0'")


@rows
@pytest.mark.sampled(one_in=7)
def test_a_recording_is_scrubbed_and_its_frames_are_its_stills(notebook: Open, name: str, kind: str) -> None:
    data = f"document.querySelector('[data-testid=sluice-{kind}]').dataset"
    nb = notebook(
        f"recorded-{kind}.ipynb",
        [
            JOB,
            "rec = Recording.of(Simulation(job(range(90)), seed=7, num_task_managers=2))",
            f"view = {name}(rec); view",
            f"view.close(); {name}(rec, at=40)",
        ],
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, kind)
    screenshots(nb, view, f"{kind}-recorded")
    frames = number(view, "frames")
    view.focus()
    for key, at in (("Home", 0), ("ArrowRight", 1), ("End", frames - 1)):
        view.press(key)
        nb.until(f"() => {data}.at === '{at}'")
        assert view.get_by_role("status").inner_text().startswith(f"frame {at + 1} of {frames}, step ")
    view.press("t")
    view.press("?")
    check_accessible_in_both_themes(nb, view)
    view.press("?")
    view.press("t")
    view.get_by_role("slider").fill("40")
    nb.until(f"() => {data}.at === '40'")
    drawn = view.evaluate(FACTS)
    nb.run(3)
    nb.until(f"() => document.querySelectorAll('[data-testid=sluice-{kind}]').length === 1 && {data}.at === '40'")
    assert the_view(nb, kind).evaluate(FACTS) == drawn


def test_a_slow_source_is_seen_to_hold_the_watermark_back(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-watermarks]')"
    nb = notebook(
        "watermarks.ipynb",
        [
            JOB,
            "run = ThreadedRun(job(range(10**7), slow_s=0.001), num_task_managers=2).start()",
            "view = WatermarkView(run, title='Event time'); view",
            "run.slow(run.snapshot().tasks[0].name, 60_000)",
            "print(*[task.watermark for task in run.snapshot().tasks])",
            "run.cancel()",
        ],
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, "watermarks")
    words = f"[...{root}.querySelectorAll('svg [data-task]')].map(task => task.textContent)"
    # Both windows stand at a time, and not only some of their channels: from then on, none can be without one.
    nb.until(f"() => {root}.querySelector('.sluice-status').textContent.split(' ms').length === 3")
    assert sum("a source: reads no channel" in each for each in nb.page.evaluate(words)) == 2
    nb.run(3)
    nb.until(f"() => {root}.querySelectorAll('[data-state=least]').length >= 2")  # at both windows, one channel each
    held = view.evaluate(
        "root => [...root.querySelectorAll('svg [data-task]')].filter(task => task.querySelector('[data-state=least]'))"
        ".map(task => [...task.querySelectorAll('text')].map(text => text.textContent))"
    )
    assert all("▲ holds it back" in words for words in held)
    view.press("t")
    assert "▲ holds it back" in view.get_by_role("table").nth(1).inner_text()
    view.press("t")
    nb.until(f"() => {root}.querySelector('.sluice-status').textContent.includes('held back by')")
    assert view.locator(".sluice-status").inner_text().count(" ms") >= 2
    assert "held back by" in view.locator(".sluice-sentence").inner_text()
    # The task stands where the least of its channels does, and not where the others have come.
    places = view.evaluate(
        "root => [...root.querySelectorAll('svg [data-task]')]"
        ".map(task => [...task.querySelectorAll('[data-as=place]')]"
        ".map(node => +/translate\\((\\d+)/.exec(node.getAttribute('transform') ?? 'translate(0')[1]))"
    )
    waiting = [each for each in places if len(each) > 2]
    assert waiting
    assert all(task == min(channels) < max(channels) for task, *channels in waiting)
    nb.run(5)
    nb.until(f"() => {root}.dataset.mode === 'done'")
    check_accessible_in_both_themes(nb, view)


def test_the_bytes_go_from_difference_to_difference(notebook: Open) -> None:
    data = "document.querySelector('[data-testid=sluice-beside]').dataset"
    nb = notebook("beside.ipynb", [JOB, "BytesBesideFlink(b'hello to all of you', b'hallo to me and you')"])
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "beside")
    frames = number(view, "frames")
    assert frames == 2
    assert "first difference at byte 1 (0x1): yours 65, Flink 61" in view.get_by_role("status").inner_text()
    drawn = view.evaluate(FACTS)
    view.focus()
    view.press("End")
    nb.until(f"() => {data}.at === '{frames - 1}'")
    assert view.evaluate(FACTS) != drawn
    view.press("t")
    view.press("?")
    check_accessible_in_both_themes(nb, view)
    view.press("?")
    view.press("t")
    screenshots(nb, view, "beside-recorded")


def test_the_channels_of_a_fast_source_are_shut_until_the_slow_one_has_sent_its_barrier(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-alignment]')"
    nb = notebook(
        "barriers.ipynb",
        [
            JOB,
            "run = ThreadedRun(job(range(10**7), slow_s=0.001), num_task_managers=2).start()",
            "view = AlignmentView(run, title='The race'); view",
            "slow = run.snapshot().tasks[0].name; run.slow(slow, 60_000)",
            "run.slow(slow, 0)",
            "run.cancel()",
        ],
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, "alignment")
    texts = f"[...{root}.querySelectorAll('svg [data-task]')].map(task => task.textContent).join()"
    completed = f"+(/(\\d+) completed/.exec({texts}) ?? [0, -1])[1]"
    nb.until(f"() => {completed} >= 2")
    nb.run(3)
    shut = f"[...{root}.querySelectorAll('svg [data-task]')].filter(task => task.querySelector('[data-state=waits]'))"
    nb.until(f"() => {shut}.length === 2")  # at both windows, one of two channels
    nb.until(f"() => {shut}.every(task => task.querySelectorAll('[data-state=behind]').length > 0)")
    said = "/1 of 2 are here.*waits with barrier/.test(task.textContent)"  # words come a moment after the shapes
    nb.until(f"() => {shut}.filter(task => {said}).length === 2")
    screenshots(nb, view, "alignment-race")
    view.press("t")
    assert "waits with barrier" in view.get_by_role("table").nth(1).inner_text()
    view.press("t")
    nb.until(f"() => {root}.querySelector('.sluice-status').textContent.includes('1 of 2 are here')")
    before = nb.page.evaluate(f"() => {completed}")
    nb.run(4)
    view = the_view(nb, "alignment")  # the cell that ran may have pushed it off the page
    nb.until(f"() => {completed} > {before}")
    nb.run(5)
    nb.until(f"() => {root}.dataset.mode === 'done'")
    check_accessible_in_both_themes(nb, view)


STATEFUL = """
from refimpl.cluster import FixedDelayRestart
from refimpl.records import StreamRecord
from refimpl.state import MemoryStore

def stateful():
    env = StreamEnvironment(Config(
        segment_size_bytes=64, num_buffers=60, source_batch=2, checkpoint_interval_ms=2), 2)
    numbers = env.from_collection([StreamRecord(n, n) for n in range(300)], name="numbers")
    timed = numbers.assign_timestamps(lambda n: n, 3, every=4).key_by(lambda n: n % 3)
    timed.window(TumblingWindows(20)).aggregate(Count(), name="count").rebalance().sink(lambda v: None, "sink")
    return env

def kept():
    return Simulation(stateful(), seed=2, step_ms=0.1, store=MemoryStore(), restart=FixedDelayRestart(3, 1.0))
"""


def test_checkpoints_are_stepped_from_trigger_to_completion_and_through_a_restart(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-checkpoints]')"
    nb = notebook(
        "checkpoints.ipynb",
        [
            JOB + STATEFUL,
            "run = kept().run(5); view = CheckpointView(run); view",
            "run.recovery.checkpoints.savepoint('before the move', run.time_ms)",
            "run.crash()",
            "rec = Recording.of(kept(), 400); CheckpointView(rec, at=-1, title='A recording')",
        ],
    )
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "checkpoints")
    status = f"{root}.querySelector('.sluice-status').textContent"
    assert "No checkpoint has been triggered so far" in (view.locator("svg.sluice-picture").text_content() or "")
    ten = view.get_by_test_id("sluice-ten")
    step_until(nb, ten, f"{status}.includes('checkpoint 1: in progress')")
    assert nb.page.evaluate(f"() => {root}.querySelectorAll('svg [data-state=progress]').length") >= 1
    step_until(nb, ten, f"/1 completed/.test({status})")
    nb.run(2)
    step_until(
        nb, ten, f"[...{root}.querySelectorAll('svg text')].some(t => /savepoint.*before the m/.test(t.textContent))"
    )
    step_until(nb, ten, f"/3 completed/.test({status})")
    nb.run(3)
    step_until(nb, ten, f"/restored once/.test({status})")
    assert nb.page.evaluate(f"() => {root}.querySelectorAll('svg [data-state=restored]').length") >= 1
    step_until(nb, ten, f"[...{root}.querySelectorAll('svg text')].some(t => t.textContent.includes('alignment'))")
    screenshots(nb, view, "checkpoints-stepped")
    view.press("t")
    assert "called before the move" in view.get_by_role("table").nth(0).inner_text()
    assert "alignment" in view.get_by_role("table").nth(1).inner_text()
    view.press("?")
    check_accessible_in_both_themes(nb, view)
    view.press("?")
    view.press("t")
    view.press("Home")
    nb.until(f"() => {root}.dataset.at === '0'")
    nb.run(4)
    nb.until("() => document.querySelectorAll('[data-testid=sluice-checkpoints]').length === 2")


def test_the_race_is_gone_through_second_by_second(notebook: Open) -> None:
    data = "document.querySelector('[data-testid=sluice-race]').dataset"
    nb = notebook(
        "race.ipynb", [JOB, "from tests.support.small_races import small_race", "RaceView(small_race(), at=0)"]
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, "race")
    screenshots(nb, view, "race-recorded")
    assert number(view, "frames") == 16
    drawn = view.evaluate(FACTS)
    view.focus()
    view.press("End")
    nb.until(f"() => {data}.at === '15'")
    assert view.evaluate(FACTS) != drawn
    view.press("t")
    assert "ATM, per link" in view.get_by_role("table").nth(0).inner_text()
    view.press("?")
    check_accessible_in_both_themes(nb, view)


CLUSTER = """
from tests.support.small_clusters import numbers_cluster
cluster = numbers_cluster()
"""


def test_members_of_a_cluster_are_killed_paused_and_revived_by_click_and_by_key(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-cluster]')"
    nb = notebook(
        "cluster.ipynb",
        [JOB + CLUSTER, "view = ClusterView(cluster); view", "print(sorted(cluster.members.gone), cluster.num_steps)"],
    )
    for index in range(2):
        nb.run(index)
    view = the_view(nb, "cluster")
    status = f"{root}.querySelector('.sluice-status').textContent"
    view.get_by_test_id("sluice-crash-tm-1").click()
    nb.until(f"() => {status}.includes('gone: tm-1')")
    revive = view.get_by_test_id("sluice-revive-tm-1")
    assert revive.get_attribute("aria-label") == "Revive tm-1"
    assert revive.evaluate("node => node === document.activeElement")  # who goes by keyboard is not sent away
    revive.press("Enter")
    nb.until(f"() => !{status}.includes('gone')")
    view.get_by_test_id("sluice-pause-resource-manager").click()
    nb.until(f"() => {status}.includes('paused: resource-manager')")
    before = number(view, "frames")
    view.focus()
    view.press("n")
    nb.until(f"() => +{root}.dataset.frames === {before + 1}")
    view.press("s")
    nb.until(f"() => {status}.includes('whose place another has taken: resource-manager of epoch 1')")
    view.get_by_test_id("sluice-crash-tm-0").click()
    nb.until(f"() => {status}.includes('gone: tm-0')")
    assert nb.run(2).startswith("['tm-0']")
    view = the_view(nb, "cluster")
    screenshots(nb, view, "cluster-stepped")
    view.press("t")
    assert "✗ gone" in view.get_by_role("table").nth(0).inner_text()
    view.press("?")
    check_accessible_in_both_themes(nb, view)
    view.press("?")
    view.press("t")
    view.press("Home")
    nb.until(f"() => {root}.dataset.at === '0'")


def step_until(nb: Any, button: Any, script: str) -> None:
    """Click until the page says so; a click is answered before the next."""
    for _ in range(60):
        if nb.page.evaluate(f"() => {script}"):
            return
        before = nb.page.evaluate("() => document.querySelector('[data-testid=sluice-checkpoints]').dataset.frames")
        button.click()
        nb.page.wait_for_function(
            "before => document.querySelector('[data-testid=sluice-checkpoints]').dataset.frames !== before", arg=before
        )
    raise AssertionError(f"never: {script}")
