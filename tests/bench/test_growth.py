"""Growth experiments: each measures something at every point, and what is asked of its curve can be missed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench.growth import EXPERIMENTS, SECONDS_OF_DEPTH, Counted, as_table, flat, main, paper, run


@pytest.mark.slow
@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_measures_all_its_curves_at_its_first_and_last_point(name: str) -> None:
    experiment = EXPERIMENTS[name]
    if not experiment.runs_once:
        experiment = replace(experiment, points=(experiment.points[0], experiment.points[-1]), judge=flat(1e9))
    (found,) = run([experiment], rounds=1, scale=0.005)
    assert found["curves"]
    for curve in found["curves"].values():
        assert len(curve) == len(experiment.points)
        assert all(value["median"] > 0 for value in curve if name != "flusher")
    assert found["came"] in (True, False)


@pytest.mark.parametrize(
    ("name", "curves", "came"),
    [
        ("active", {"CPU": [10, 10, 10, 15]}, True),
        ("active", {"CPU": [10, 10, 10, 16]}, False),
        ("active", {"CPU": [10, 16, 10, 10]}, False),
        ("idle", {"a": [10, 10, 10, 11], "b": [10, 10, 10, 12]}, False),
        ("size", {"CPU": [1, 1, 1, 1, 1, 10, 80, 400]}, True),
        ("size", {"CPU": [1, 1, 1, 1, 1, 10, 80, 401]}, False),
        ("spanning", {"CPU": [10, 20, 10]}, True),
        ("spanning", {"CPU": [10, 21, 10]}, False),
        ("credits", {"CPU": [7, 10, 90, 90]}, True),
        ("credits", {"CPU": [7, 11, 11, 11]}, False),
        ("syscalls", {"reads": [9, 9], "writes": [1.0, 9]}, True),
        ("syscalls", {"reads": [0, 0], "writes": [1.1, 0]}, False),
        ("depth", {"memory": [1, 1.05, 1]}, True),
        ("depth", {"memory": [1, 1.06, 1]}, False),
    ],
)
def test_what_is_asked_of_a_curve(name: str, curves: dict[str, Sequence[float]], came: bool) -> None:
    assert EXPERIMENTS[name].judge(curves) is came


def test_points_take_turns_and_every_second_round_goes_backwards() -> None:
    seen: list[float] = []

    def measure(point: float, _scale: float) -> dict[str, float]:
        seen.append(point)
        return {"y": point + len(seen)}

    experiment = replace(EXPERIMENTS["active"], points=(1, 2), measure=measure, judge=flat(10))
    (found,) = run([experiment], rounds=2, scale=1)
    assert seen == [1, 2, 2, 1]
    assert [value["median"] for value in found["curves"]["y"]] == [(2 + 5) / 2, (4 + 5) / 2]


def test_the_depth_of_queues_is_one_run_for_all_its_points() -> None:
    assert EXPERIMENTS["depth"].points == SECONDS_OF_DEPTH
    assert EXPERIMENTS["depth"].runs_once


def test_calls_are_counted_and_passed_on() -> None:
    class Stream:
        peer = "somebody"

        def __init__(self) -> None:
            self.written: list[bytes] = []

        def write(self, pieces: list[bytes]) -> None:
            self.written += pieces

        def read(self, max_bytes: int) -> bytes:
            return bytes(max_bytes)

    stream, counts = Stream(), {"reads": 0, "writes": 0}
    counted = Counted(counts, stream)  # type: ignore[arg-type]
    counted.write([b"a", b"b"])
    assert counted.read(3) == bytes(3)
    assert (stream.written, counts, counted.peer) == ([b"a", b"b"], {"reads": 1, "writes": 1}, "somebody")


def some() -> list[dict[str, Any]]:
    value = {"median": 2.0, "low": 1.0, "high": 3.0}
    return [
        {
            "name": name,
            "varies": "things",
            "unit": "ns",
            "points": list(EXPERIMENTS[name].points),
            "curves": {"CPU": [value] * len(EXPERIMENTS[name].points)},
            "expected": "flat",
            "came": True,
        }
        for name in ("active", "size", "spanning", "depth")
    ]


def test_the_picture_is_the_same_each_time_and_tells_itself_in_words() -> None:
    first, second = (paper(some()).svg() for _ in range(2))
    assert first == second
    assert "CPU: from 2 at 1 to 2 at 1000" in paper(some()).alt
    assert paper(some()).alt[:40] in first
    assert not re.search(r"fill: ?#(ffffff|000000)", first[first.index("</style>") :])  # the page's ground, not its own


def test_the_table_has_a_line_for_each_curve() -> None:
    assert as_table(some()).count("  CPU") == 4


@pytest.mark.slow
def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "growth.json", tmp_path / "growth.svg"
    assert main(["spanning", "--quick", "--json", str(file), "--picture", str(picture)]) == 0
    assert "spanning" in capsys.readouterr().out
    assert json.loads(file.read_text())["format"] == "sluice-growth/1"
    assert picture.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sise"], "did you mean size?"), (["--rounds", "0"], "at least 1 round"),
        (["--picture", "a.gif"], "saved as .svg, .png, .pdf"), (["--picture", "no/a.svg"], "there is no folder no"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err
