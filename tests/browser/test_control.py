"""A running job is slowed, held and let go from the picture, which shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.view_pages import JOB, check_accessible_in_both_themes, screenshots, the_view

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., Any]

SWAP = """
from refimpl.records import SpanningRecordSerializer
class Mine(SpanningRecordSerializer):
    uses = 0
    def copy_to_buffer_builder(self, builder):
        Mine.uses += 1
        return super().copy_to_buffer_builder(builder)
"""


def test_a_running_job_is_slowed_held_and_swapped(notebook: Open) -> None:
    root = "document.querySelector('[data-testid=sluice-job]')"
    nb = notebook(
        "control.ipynb",
        [
            JOB + SWAP,
            "run = ThreadedRun(job(range(10**7), slow_s=0.0005), num_task_managers=2).start()",
            "view = JobView(run, swaps={'mine': {'SpanningRecordSerializer': Mine}}); view",
            "print([task.rest_ms for task in run.snapshot().tasks if 'window' in task.operators])",
            "print({part.flusher.timeout_ms for each in run.deployments for part in each.partitions})",
            "print(Mine.uses > 0)",
            "print(sum(task.num_records_in for task in run.snapshot().tasks))",
            "run.cancel()",
        ],
    )
    for index in range(3):
        nb.run(index)
    view = the_view(nb, "job")
    nb.until(f"() => +{root}.dataset.painted > 5")
    group = view.get_by_role("group", name="Change the running job")
    group.get_by_label("Which operator or task").select_option("window")
    slider = group.get_by_label("Rest after each buffer")
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "50 ms"
    nb.until(f"() => {root}.querySelector('svg').textContent.includes('rests 50 ms')")
    assert nb.run(3).strip() == "[50, 50]"
    assert view.get_attribute("data-mode") == "live"
    group.get_by_role("button", name="Hold it").click()
    nb.until(f"() => /held(?! back)/.test({root}.querySelector('svg').textContent)")
    nb.until(f"() => {root}.querySelectorAll('svg [data-vertex] [data-state=backpressured]').length > 0")
    screenshots(nb, view, "job-held")
    check_accessible_in_both_themes(nb, view)
    group.get_by_role("button", name="Let it go").click()
    slider.fill("0")
    nb.until(f"() => !/rests|held(?! back)/.test({root}.querySelector('svg').textContent)")
    group.get_by_label("Buffer timeout").select_option("10")
    group.get_by_role("button", name="Swap in: mine").click()
    for index, wanted in ((4, "{10}"), (5, "True")):
        for _ in range(100):
            if nb.run(index).strip() == wanted:
                break
            nb.page.wait_for_timeout(50)
        assert nb.run(index).strip() == wanted
    before = int(nb.run(6))
    for _ in range(100):
        if int(nb.run(6)) > before:
            break
        nb.page.wait_for_timeout(50)
    assert int(nb.run(6)) > before
    nb.run(7)


LIVE = [
    "import threading\nfrom course import lesson\nfrom course.figures.live import live_queues\nL = lesson(0)",
    "live_queues()",
    'L.swap("0.1")',
    "print([thread.name for thread in threading.enumerate() if thread.name.startswith(('board', 'readings'))])",
]


def test_a_lessons_live_job_begins_when_it_is_seen_and_the_swap_is_seen_in_one(notebook: Open) -> None:
    nb = notebook("live.ipynb", LIVE)
    root = "document.querySelector('[data-testid=sluice-queues]')"
    nb.run(0)
    nb.run(1)
    view = the_view(nb, "queues")
    nb.until(f"() => +{root}.dataset.painted > 5")
    slider = view.get_by_label("Rest after each buffer")
    assert (slider.get_attribute("aria-valuetext"), view.get_by_label("Which operator").input_value()) == (
        "20 ms",
        "board",
    )
    slider.focus()
    for _ in range(5):
        slider.press("ArrowRight")
    nb.until(f"() => {root}.querySelector('svg').textContent.includes('backlog 5')")  # the board is slow: they fill
    screenshots(nb, view, "live-queues")
    assert nb.run(3).strip() == "['readings-0', 'board-0', 'board-1']"
    assert "○ 0.1 has not passed: this run uses our part, not yours." in nb.run(2)
    swap = the_view(nb, "throughput")
    chart = "document.querySelector('[data-testid=sluice-throughput]')"
    nb.until(f"() => +{chart}.dataset.painted > 5")
    report = nb.page.locator(".jp-RenderedText pre", has_text="our part (yours goes in")
    assert report.is_visible()
    swap.get_by_role("button", name="Swap in: our part").click()
    nb.until(f"() => {chart}.querySelector('svg').textContent.includes('our part')")
    screenshots(nb, swap, "live-swap")
