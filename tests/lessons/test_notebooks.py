"""Every lesson runs as it is stored: as a learner gets it, and with the reference parts in place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted([*(ROOT / "lessons").glob("*.ipynb"), *(ROOT / "tests" / "solved").glob("*.ipynb")])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_strict_nbval_finds_every_output_unchanged(notebook, tmp_path):
    # Progress of an earlier run would change what the receipt says: each run starts with an empty folder.
    environment = dict(os.environ, SLUICE_WORK=str(tmp_path / "work"), PYTHONPATH=str(ROOT))
    # A configuration of its own: the project's strict one turns nbval's own warnings into errors.
    command = [
        sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={notebook.parent}", "-p", "no:cacheprovider",
        "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "-q", str(notebook),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_there_is_a_notebook_of_each_kind_for_every_lesson():
    from course.manifest import LESSONS

    names = {lesson.name for lesson in LESSONS.values()}
    for folder in (ROOT / "lessons", ROOT / "tests" / "solved"):
        assert {path.stem for path in folder.glob("*.ipynb")} == names
