"""Fixtures of these tests; `--rewrite` writes the golden messages anew instead of comparing them."""

from __future__ import annotations

import pytest


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files instead of comparing")


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    """Progress and attempts go into a folder of the test's own: the one returned, which does not exist yet."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))
    return tmp_path / ".course"
