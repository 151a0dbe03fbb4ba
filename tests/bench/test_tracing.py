"""The cost of a trace is measured on jobs that come to their end, with every event in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.tracing import CASES, FORMAT, main


@pytest.mark.slow
def test_every_job_runs_with_and_without_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["--rounds", "1", "--scale", "0.02", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert (found["format"], found["rounds"]) == (FORMAT, 1)
    assert [row["job"] for row in found["rows"]] == [case.name for case in CASES]
    for row in found["rows"]:
        assert row["events"] > 10
        assert row["throughput"]["median"] > 0
        assert row["cpu"]["median"] > 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in table[1 : len(CASES) + 1]] == [case.name for case in CASES]
