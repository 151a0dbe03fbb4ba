"""The table of both engines: passes are paired, and what only one of them has is left out."""

from typing import Any

import pytest

from tests.bench.command import main
from tests.bench.engines import Passes, add, table


def answer(*, is_less_better: bool = False, **medians: float | None) -> dict[str, Any]:
    limits = {"goal": 2.0, "floor": 3.0 if is_less_better else 1.5, "is_less_better": is_less_better}
    lines = [
        {"what": what, "against": "peer", "value": None if median is None else {"median": median}, **limits}
        for what, median in medians.items()
    ]
    return {"rows": [{"number": 3, "lines": lines}]}


def test_each_pass_is_compared_with_its_neighbour() -> None:
    source: Passes = {}
    compiled: Passes = {}
    for one, other in ((1.0, 2.0), (4.0, 4.0), (2.0, 3.0)):
        add(answer(write=one, lost=None), source)
        add(answer(write=other, lost=1.0), compiled)
    assert table({"source": source, "compiled": compiled}) == [
        ("3", "write", "peer", "≥ 2", "2 [1 .. 4] goal", "3 [2 .. 4] goal", "1.5 [1 .. 2]")
    ]


@pytest.mark.parametrize(
    ("is_less_better", "one", "other", "told"),
    [
        (False, 1.6, 1.4, ("≥ 2", "1.6 floor", "1.4 missed")),
        (True, 2.0, 2.9, ("≤ 2", "2 goal", "2.9 floor")),
        (True, 3.1, 1.0, ("≤ 2", "3.1 missed", "1 goal")),
    ],
)
def test_one_pass_has_no_spread_and_each_engine_its_verdict(
    is_less_better: bool, one: float, other: float, told: tuple[str, ...]
) -> None:
    source: Passes = {}
    compiled: Passes = {}
    add(answer(is_less_better=is_less_better, write=one), source)
    add(answer(is_less_better=is_less_better, write=other), compiled)
    assert [line[3:6] for line in table({"source": source, "compiled": compiled})] == [told]


@pytest.mark.parametrize("words", [["--json", "-"], ["--results"]])
def test_a_file_is_of_one_engine(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--engine", "both", *words])
    assert ended.value.code == 2
    assert "say --engine source or --engine compiled" in capsys.readouterr().err
