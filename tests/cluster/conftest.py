"""A place for each process of these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.places import Place


@pytest.fixture(scope="session")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    return lambda: Place(tmp_path_factory.mktemp("cluster"))
