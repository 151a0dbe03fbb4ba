"""A learner's folder that is not the class's."""

from __future__ import annotations

import pytest


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    """The learner's folder; the one returned exists not yet."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "learner" / "work"))
    return tmp_path / "learner" / ".course"
