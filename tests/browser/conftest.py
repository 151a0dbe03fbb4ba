"""A real JupyterLab in a real Chromium: one server and one browser for all tests, a notebook for each.

No Chromium: the tests are skipped and say how to get one, unless SLUICE_REQUIRE_BROWSER=1, then they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from lab_pages import GET_ONE, Lab, Notebook, chromium, close_kernels, opened, running_chromium, running_lab
from playwright.sync_api import BrowserContext


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


@pytest.fixture
def notebook(lab: Lab, context: BrowserContext) -> Iterator[Callable[..., Notebook]]:
    """Opens a notebook, of the given code cells if any; at the end nothing may have failed or left this machine."""
    page = context.new_page()
    errors: list[str] = []
    outside: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_ours(message.text, message.type) else None)
    ours = (lab.base, lab.base.replace("http", "ws"), "blob:", "data:")
    page.on("request", lambda request: None if request.url.startswith(ours) else outside.append(request.url))
    yield lambda name, cells=None: opened(page, lab, name, cells)
    page.close()
    close_kernels(lab)
    assert not errors, errors
    assert not outside, outside


def _is_ours(text: str, kind: str) -> bool:
    """JupyterLab itself complains of missing settings; only errors of modules we sent count."""
    return kind == "error" and ("anywidget" in text or "sluice" in text)
