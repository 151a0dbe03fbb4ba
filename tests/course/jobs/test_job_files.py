"""Jobs of two folders in one process: each is made of its own files, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.jobs.job_files import load_job

JOB = """
from beside_the_job import WORD
from refimpl.job import StreamEnvironment

LOADED = []
LOADED.append(WORD)

def job(sink):
    environment = StreamEnvironment()
    environment.source(lambda *_: iter(()), f"{WORD}{len(LOADED)}").sink(sink)
    return environment
"""


@pytest.mark.parametrize("name", ["a_job_of_two_folders.py", "queue.py"])
def test_each_folder_has_its_own_job_of_that_name_loaded_once(name: str, tmp_path: Path) -> None:
    for word in ("early", "late", "last"):
        folder = tmp_path / word
        folder.mkdir()
        (folder / name).write_text(JOB)
        (folder / "beside_the_job.py").write_text(f"WORD = {word!r}")
    for word in ("early", "late", "last", "late", "early"):
        graph = load_job(str(tmp_path / word / name), print).execution_graph().job
        assert graph.vertices[0].name.startswith(f"{word}1")
