"""A chain that takes values and batches: the tests of the book's chain and outputs with fast parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.refimpl.task import test_chain, test_outputs
from tests.refimpl.task.test_chain import *  # noqa: F403 - the same tests
from tests.refimpl.task.test_outputs import *  # noqa: F403 - the same tests
from tests.shortcuts.fast_parts import fast_in


@pytest.fixture(autouse=True, scope="module")
def _fast_parts() -> Iterator[None]:
    with fast_in(test_chain, test_outputs):
        yield
