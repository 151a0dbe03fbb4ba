"""What `pytest --nbval lessons/…` needs: progress of its own, so that outputs are those of a beginner, in English."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels that start now keep progress in a folder that goes with this run."""
    folder = tempfile.TemporaryDirectory(prefix="sluice-nbval-", ignore_cleanup_errors=True)
    os.environ["SLUICE_WORK"] = str(Path(folder.name) / "work")
    os.environ["SLUICE_LANGUAGE"] = "en"
    config.add_cleanup(folder.cleanup)
