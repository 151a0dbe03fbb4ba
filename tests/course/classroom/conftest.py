"""A class for each test, and a learner's folder of its own."""

from __future__ import annotations

import pytest

from tests.support.class_ends import served


@pytest.fixture
def room(tmp_path):
    with served(tmp_path / "class.sqlite", title="Tuesday") as serving:
        yield serving


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    """The learner's folder; the one returned exists not yet."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "learner" / "work"))
    return tmp_path / "learner" / ".course"
