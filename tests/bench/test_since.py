"""Two trees take turns with the same work. No speed is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.rows import ENTRIES, ROWS
from tests.bench.since import ROOT, Tree, compared, keys_of, main, told

KEY = "record/exchange"


def test_what_is_ours_and_keeps_no_pace_takes_part_once() -> None:
    keys = keys_of(ROWS)
    assert {KEY, "record/job", "batch/exchange"} <= set(keys)
    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if key.startswith(("peers/", "flink/", "latency/", "memory/"))]
    assert all(ENTRIES[key].contender.lacking() is None for key in keys)


def test_a_line_says_the_median_of_rounds_and_the_least_of_each() -> None:
    line = told(KEY, [(100.0, 200.0), (400.0, 400.0), (200.0, 300.0)])
    assert line.split() == [KEY, "200", "300", "1.500", "[1.000", "..", "2.000]", "2.000"]


@pytest.mark.slow
def test_two_trees_do_the_same_turns_and_one_that_cannot_is_told() -> None:
    with Tree(ROOT) as here, Tree(ROOT) as there:
        assert set(here.keys) == set(ENTRIES)
        turns = compared(KEY, (here, there), 3, 0.1)  # some kernels count user time in ticks of 10 ms
        assert len(turns) == 3
        assert all(ns > 0 for pair in turns for ns in pair)
        with pytest.raises(ChildProcessError, match="has ended with 1"):
            there.ns_per_record("record/nobody", 1)


def test_a_folder_that_is_no_tree_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path)])
    assert stopped.value.code == 2
    assert "is no tree with benchmarks" in capsys.readouterr().err
