"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from tests.support.class_ends import served


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    """Progress and attempts go into a folder of the test's own: the one returned, which does not exist yet."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))
    return tmp_path / ".course"


@pytest.fixture
def room(tmp_path):
    """A class for one test, at work."""
    with served(tmp_path / "class.sqlite", title="Tuesday") as serving:
        yield serving
