"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from course.compiled.choice import VARIABLE, choose
from course.curriculum.languages import ENGLISH
from course.curriculum.languages import VARIABLE as LANGUAGE
from tests.support.compiled import is_compiled, is_left_out, skip_on_compiled
from tests.support.flink_scenarios import numbers_in
from tests.support.heaviest import place
from tests.support.sampling import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Tests are of the source, also in a checkout that has a compiled engine; `make test-compiled` asks for that one.
choose(os.environ.setdefault(VARIABLE, "source"))

# What a learner of this checkout has chosen for good is not what tests are about.
os.environ[LANGUAGE] = ENGLISH

# A shell that starts us in the background lets us, and all that we start, ignore Ctrl-C; tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says something of the machine, not of the code. Where a test does not say how many it wants,
# a quarter of Hypothesis's hundred are in an ordinary run.
settings.register_profile("sluice", deadline=None, max_examples=25)
settings.register_profile("whole", deadline=None)
settings.load_profile("sluice")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="all of what is otherwise a sample (`make test-whole`)")
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("whole"):
        settings.load_profile("whole")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if is_compiled() and is_left_out(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("whole") and not config.getoption("keyword"):  # who names a test wants that one
        kept = set(sample(items))
        if left_out := [item for item in items if item not in kept]:
            items[:] = [item for item in items if item in kept]
            config.hook.pytest_deselected(items=left_out)
    for item in items:
        for number in numbers_in(getattr(getattr(item, "function", None), "__doc__", None)):
            item.add_marker(pytest.mark.peer(number=number))
            item.extra_keyword_matches.add(f"P{number}")
    if is_compiled():
        skip_on_compiled(items)
    if hasattr(config, "workerinput"):  # several processes share the tests
        items.sort(key=lambda item: place(item.nodeid))


@pytest.fixture(scope="session")
def is_whole(pytestconfig: pytest.Config) -> bool:
    """Whether nothing is a sample in this run."""
    return bool(pytestconfig.getoption("whole"))


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one Spark session of the test run; tests never stop it. Where Spark cannot start, they fail."""
    from course.data.session import spark as start

    return start("tests", quick=True)
