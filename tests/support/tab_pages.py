"""The course in a tab, served from a folder, and what a reader does with it."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from course.curriculum.specimens import zoo
from course.grading.judge import judge

__all__ = ["PATIENCE_MS", "Served", "begun", "checked", "in_the_terminal", "opened", "ready", "served"]

PATIENCE_MS = 240_000
"""Python for browsers takes seconds to begin, and on a machine with much to do minutes."""


class _Counting(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *given: Any, count: Callable[[int], None], **named: Any) -> None:
        self._count = count
        super().__init__(*given, **named)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        before = source.tell()
        super().copyfile(source, outputfile)
        self._count(source.tell() - before)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


class Served:
    """A folder at an address of this machine, until it is `closed`; `num_bytes` is how much of its files was sent."""

    def __init__(self, folder: Path) -> None:
        self.num_bytes = 0
        self._counting = threading.Lock()
        handler = functools.partial(_Counting, directory=str(folder), count=self._count)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _count(self, num_bytes: int) -> None:
        with self._counting:
            self.num_bytes += num_bytes

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    server = Served(folder)
    try:
        yield server
    finally:
        server.close()


def begun(page: Page, address: str) -> Page:
    """The page, when its engine is there."""
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    ready(page)
    return page


def ready(page: Page) -> None:
    state = page.locator("#state")
    page.wait_for_function("document.documentElement.dataset.ready || document.querySelector('#state').matches('.bad')")
    assert "is here" in state.inner_text(), state.inner_text()


def opened(page: Page, exercise: str) -> None:
    page.locator(f'[data-exercise="{exercise}"]').click()
    page.wait_for_function("id => document.querySelector('#title').textContent.startsWith(`${id} `)", arg=exercise)


def checked(page: Page, exercise: str, source: str) -> str:
    """What is said of a source in the tab."""
    opened(page, exercise)
    page.locator("#part textarea").fill(source)
    page.locator("#check").click()
    page.wait_for_function("document.querySelector('#report').dataset.status")
    return page.locator("#report").inner_text()


def in_the_terminal(exercise: str, source: str) -> str:
    """What `sluice check` says of it."""
    report = judge(exercise, source)
    report.num_specimens = len(zoo(exercise))
    return report.in_terminal()
