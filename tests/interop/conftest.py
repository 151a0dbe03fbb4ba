"""Tests against the real Flink: marked `flink`, and where it is not there, one skip for all of them that says why.

With SLUICE_REQUIRE_FLINK=1 they fail instead, each saying what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest

from course.peer.process import Peer, flink_command, missing

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flink: needs the jar of the real Flink (`sluice flink fetch`)")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one of the tests that would be skipped for the same reason."""
    if is_required() or missing() is None:
        return
    needy = [item for item in items if HERE in item.path.parents and item.get_closest_marker("flink")]
    config.hook.pytest_deselected(items=needy[1:])
    items[:] = [item for item in items if item not in set(needy[1:])]


def is_required() -> bool:
    return os.environ.get("SLUICE_REQUIRE_FLINK") == "1"


@pytest.fixture(scope="session")
def lacking() -> Callable[[str], NoReturn]:
    """Skips the test for this reason, or fails it if there must be no such reason."""

    def leave_out(reason: str) -> NoReturn:
        if is_required():
            pytest.fail(f"SLUICE_REQUIRE_FLINK=1, but {reason}", pytrace=False)
        pytest.skip(f"NOT TESTED AGAINST THE REAL FLINK: {reason}")

    return leave_out


@pytest.fixture(scope="session")
def flink(lacking: Callable[[str], NoReturn]) -> None:
    """The real Flink, ready to be started."""
    if reason := missing():
        lacking(reason)
    flink_command()


@pytest.fixture(autouse=True)
def _flink_for_those_who_need_it(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("flink"):
        request.getfixturevalue("flink")


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    """Starts ends; all of them are gone when the test is over."""
    with ExitStack() as running:
        yield lambda kind, mode, **options: running.enter_context(Peer(kind, mode, **options))
