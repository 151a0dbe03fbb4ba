"""A real JupyterLab in a real Chromium: one server and one browser for the tests of a file, a notebook for each.

No Chromium: the tests are skipped and say how to get one, unless SLUICE_REQUIRE_BROWSER=1, then they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.support.lab_pages import (
    GET_ONE,
    Lab,
    Notebook,
    chromium,
    close_kernels,
    close_notebooks,
    opened,
    opened_next,
    running_chromium,
    running_lab,
)
from tests.support.tab_pages import PATIENCE_MS

# What is expected comes at once or, on a machine at work elsewhere, after a while.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser_program() -> str:
    program = chromium()
    if program is None:
        if os.environ.get("SLUICE_REQUIRE_BROWSER") == "1":
            pytest.fail(f"SLUICE_REQUIRE_BROWSER=1, but {GET_ONE}")
        pytest.skip(f"NOT TESTED IN A BROWSER: {GET_ONE}")
    return program


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")) as lab:
        yield lab


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Iterator[BrowserContext]:
    with running_chromium(tmp_path_factory.mktemp("chromium"), browser_program) as context:
        yield context


class WatchedPage:
    """A page in which nothing may fail and which nothing may leave, and what has all the same."""

    def __init__(self, lab: Lab, context: BrowserContext) -> None:
        self.page = context.new_page()
        self.errors: list[str] = []
        self.outside: list[str] = []
        ours = (lab.base, lab.base.replace("http", "ws"), "blob:", "data:")
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if _is_ours(said.text, said.type) else None)
        self.page.on("request", lambda asked: None if asked.url.startswith(ours) else self.outside.append(asked.url))

    def check(self) -> None:
        assert not self.errors, self.errors
        assert not self.outside, self.outside


@pytest.fixture
def notebook(notebook_in_own_page: Callable[..., Notebook]) -> Callable[..., Notebook]:
    """A notebook in a page of its own, where a file has nothing else."""
    return notebook_in_own_page


@pytest.fixture
def notebook_in_own_page(lab: Lab, context: BrowserContext) -> Iterator[Callable[..., Notebook]]:
    """Opens a notebook, of the given code cells if any; at the end nothing may have failed or left this machine."""
    watched = WatchedPage(lab, context)
    yield lambda name, cells=None: opened(watched.page, lab, name, cells)
    watched.page.close()
    close_kernels(lab)
    watched.check()


@pytest.fixture(scope="module")
def shared_pages() -> list[WatchedPage]:
    """The page that the tests of a file share, once there is one."""
    return []


@pytest.fixture
def notebook_in_shared_page(
    lab: Lab, context: BrowserContext, shared_pages: list[WatchedPage], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Notebook]]:
    """The same, but JupyterLab is loaded once for all tests of a file, and anew after each one that fails."""
    if not shared_pages:
        shared_pages.append(WatchedPage(lab, context))
    (watched,) = shared_pages
    num_failed = request.session.testsfailed
    yield lambda name, cells: opened_next(watched.page, lab, name, cells)
    if watched.errors or watched.outside or request.session.testsfailed > num_failed:
        shared_pages.clear()
        watched.page.close()
    else:
        close_notebooks(watched.page)
    close_kernels(lab)
    watched.check()


def _is_ours(text: str, kind: str) -> bool:
    """JupyterLab itself complains of missing settings; only errors of modules we sent count."""
    return kind == "error" and ("anywidget" in text or "sluice" in text)
