"""A lesson's kernel and its Java go when its tab is closed, and when its window is; an open one keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psutil
import pytest
from playwright.sync_api import BrowserContext

from tests.support.lab_pages import CLOSE, Lab, opened, running_sluice_lab
from tests.support.polling import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The same rule as ours, for tests that have no quarter of an hour; long enough for a kernel to start.
IDLE_S = 15
SOON = f"c.MappingKernelManager.cull_idle_timeout = {IDLE_S}\nc.MappingKernelManager.cull_interval = 1\n"
SPARK = [
    "import os\nfrom pyspark.sql import SparkSession\nSparkSession.builder.master('local[1]').getOrCreate()\n"
    "print(os.getpid())",
    "print('still here')",
]


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    with running_sluice_lab(tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("work"), request.param) as lab:
        yield lab


def processes_below(kernel: psutil.Process) -> list[psutil.Process]:
    return [kernel, *kernel.children(recursive=True)]


def seconds_idle(lab: Lab) -> float:
    (kernel,) = lab.api("kernels")
    return (datetime.now(UTC) - datetime.fromisoformat(kernel["last_activity"])).total_seconds()


def are_gone(processes: list[psutil.Process]) -> bool:
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes)


@pytest.mark.spark
@pytest.mark.parametrize("lab", [""], indirect=True)
def test_closing_a_tab_ends_its_kernel_and_its_java(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    running = processes_below(psutil.Process(int(opened(page, lab, "spark.ipynb", SPARK).run(0).split()[-1])))
    assert [each.name() for each in running if each.name() == "java"] == ["java"]
    page.evaluate(CLOSE)
    assert until(lambda: are_gone(running) and lab.api("kernels") == [])
    page.close()


@pytest.mark.parametrize("lab", [SOON], indirect=True)
def test_a_window_that_is_closed_ends_its_kernel_and_an_open_one_never(lab: Lab, context: BrowserContext) -> None:
    page = context.new_page()
    nb = opened(page, lab, "quiet.ipynb", ["import os; print(os.getpid())", "print('still here')"])
    kernel = psutil.Process(int(nb.run(0)))
    (before,) = lab.api("kernels")
    assert before["connections"] == 1
    until(lambda: seconds_idle(lab) > IDLE_S + 3)  # three looks of the server later
    assert nb.run(1).strip() == "still here"
    page.close()
    assert until(lambda: are_gone([kernel]) and lab.api("kernels") == [])
