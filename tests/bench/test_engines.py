"""The table of both engines: passes are paired, and what only one of them has is left out."""

from typing import Any

from tests.bench.engines import Ratios, add, table


def answer(**medians: float | None) -> dict[str, Any]:
    lines = [
        {"what": what, "against": "peer", "value": None if median is None else {"median": median}}
        for what, median in medians.items()
    ]
    return {"rows": [{"number": 3, "lines": lines}]}


def test_each_pass_is_compared_with_its_neighbour() -> None:
    source: Ratios = {}
    compiled: Ratios = {}
    for one, other in ((1.0, 2.0), (4.0, 4.0), (2.0, 3.0)):
        add(answer(write=one, lost=None), source)
        add(answer(write=other, lost=1.0), compiled)
    assert table({"source": source, "compiled": compiled}) == [
        ("3", "write", "peer", "2 [1 .. 4]", "3 [2 .. 4]", "1.5 [1 .. 2]")
    ]
