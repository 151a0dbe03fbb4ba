"""Run a notebook as it is stored, and compare every output strictly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "SHIPPED", "check_unchanged"]

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = sorted((ROOT / "lessons").glob("*.ipynb"))


def check_unchanged(notebook: Path, folder: Path, **more: str) -> None:
    """Fail if a cell puts out something else than what is stored.

    `folder` is an empty one; `more` is set in the environment.

    Progress of an earlier run would change what a receipt says: each run starts with an empty folder.
    """
    environment = dict(os.environ, SLUICE_WORK=str(folder / "work"), PYTHONPATH=str(ROOT), **more)
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of a dozen plugins it takes one
    # A configuration of its own: the project's strict one turns nbval's own warnings into errors.
    command = [
        sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={notebook.parent}", "-p", "no:cacheprovider",
        "-p", "course.cli.no_addresses", "-p", "nbval.plugin",
        "--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", "-q", str(notebook),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=850)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
