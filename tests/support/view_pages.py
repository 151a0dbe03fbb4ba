"""What tests of views in a browser share: a job, how to find a view, pictures of it, and what every page needs.

Screenshots in both themes go to the folder SLUICE_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

import functools
import os
from importlib import resources
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator

JOB = """
import itertools, threading, time
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader, TumblingWindows
from widgets import *
from widgets.text import pipeline_status

class Count:
    def create_accumulator(self): return 0
    def add(self, value, total): return total + 1
    def get_result(self, total): return total

def job(values, slow_s=0.0):
    def delay(value):
        time.sleep(slow_s)
        return True
    env = StreamEnvironment(Config(
        segment_size_bytes=64, num_buffers=14, source_batch=2, checkpoint_interval_ms=20), 2)
    (env.source(lambda i, n: IterableReader(values[i::n]))
        .assign_timestamps(lambda v: v * 1000, 0)
        .key_by(lambda v: v % 5).window(TumblingWindows(60_000)).aggregate(Count())
        .filter(delay).sink(lambda v: None))
    return env
"""


def the_view(nb: Any, kind: str) -> Locator:
    view = nb.page.locator(f"[data-testid=sluice-{kind}]")
    view.wait_for()
    view.scroll_into_view_if_needed()
    return view


def number(view: Locator, name: str) -> int:
    return int(view.get_attribute(f"data-{name}") or -1)


THEMES = ("JupyterLab Dark", "JupyterLab Light")  # the light one last: it stays


def screenshots(nb: Any, view: Locator, name: str) -> None:
    """A picture in each theme, if pictures are wanted."""
    if os.environ.get("SLUICE_SCREENSHOTS"):
        usual = nb.page.viewport_size
        nb.page.set_viewport_size({**usual, "height": 3_000})  # or the page would lie over what it scrolls
        view.scroll_into_view_if_needed()
        for theme in THEMES:
            nb.theme(theme)
            screenshots_of(view, f"{name}-{theme.split()[1].lower()}")
        nb.page.set_viewport_size(usual)


def screenshots_of(view: Locator, name: str) -> None:
    """A picture as the page is now, if pictures are wanted."""
    if folder := os.environ.get("SLUICE_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        view.screenshot(path=str(Path(folder) / f"{name}.png"))


def check_accessible_in_both_themes(nb: Any, view: Locator) -> None:
    """`check_accessible` in the dark theme and in the light one."""
    for theme in THEMES:
        nb.theme(theme)
        check_accessible(view)


@functools.cache
def axe_core() -> str:
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def axe_findings(view: Locator) -> list[str]:
    """What axe-core calls serious or critical, each with where it is."""
    if not view.page.evaluate("() => 'axe' in window"):
        view.page.evaluate(axe_core())
    # Without `preload` it asks for no style sheet again: a page that was opened from a disk may not.
    options = "{ resultTypes: ['violations'], preload: false }"
    found = view.evaluate(f"root => axe.run(root, {options}).then(results => results.violations)")
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {node['html'][:160]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def check_accessible(view: Locator) -> None:
    """Names, roles and contrast, as far as a page can tell: what we know of our views, and what axe-core finds."""
    findings = axe_findings(view)
    assert not findings, findings
    problems = view.evaluate(
        """root => {
          const found = [], named = node => (node.getAttribute('aria-label') || node.textContent || '').trim();
          if (root.getAttribute('role') !== 'group' || !named(root)) found.push('root: role or name');
          if (root.tabIndex !== 0) found.push('root: cannot be focused');
          for (const b of root.querySelectorAll('button')) if (!named(b)) found.push('a button without a name');
          for (const i of root.querySelectorAll('input'))
            if (!i.getAttribute('aria-label') || (i.type === 'range' && !i.getAttribute('aria-valuetext')))
              found.push('a mute slider');
          for (const s of root.querySelectorAll('svg.sluice-picture')) {
            if (s.getAttribute('role') !== 'img') found.push('svg: role');
            for (const id of s.getAttribute('aria-labelledby').split(' '))
              if (!document.getElementById(id)?.textContent) found.push('svg: ' + id);
          }
          if (!root.querySelector('[role=status]').textContent) found.push('no status');
          const ids = [...root.querySelectorAll('[id]')].map(n => n.id);
          if (new Set(ids).size !== ids.length) found.push('an id twice');
          return found; }"""
    )
    assert not problems, problems
