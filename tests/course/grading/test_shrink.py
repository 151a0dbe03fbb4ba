"""A failing input that was made from a seed becomes small, the same way each time."""

from __future__ import annotations

import pytest

from course.curriculum import stubs
from course.grading.judge import judge
from course.grading.shrink import smaller_lists

HIDDEN = """
def to_departure(flight):
    late = flight["dep_delay_minutes"]
    if 200 < late < 500 and flight["carrier"] == "EV":
        late += 1
    return flight["origin"], max(0, late)
"""


def test_lists_become_smaller_from_halves_to_single_items():
    found = list(smaller_lists("abcd", lambda item: ["x"] if item == "c" else []))
    assert found[:2] == [["c", "d"], ["a", "b"]]
    assert ["a", "b", "d"] in found
    assert found[-1] == ["a", "b", "x", "d"]
    assert list(smaller_lists([], lambda _: [])) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_flight_is_left_of_a_mixture(seed):
    report = judge("0.1", HIDDEN, seed)
    assert report.failed_rule.id == "G"
    assert len(report.trace["ops"]) == 1
    assert 200 < report.trace["ops"][0][1]["dep_delay_minutes"] < 500
    assert str(report) == str(judge("0.1", HIDDEN, seed))


@pytest.mark.slow
def test_a_mixture_of_operations_is_left_with_those_that_matter():
    forgets = stubs.solution("3.1").replace(
        "        self._position = 0\n\n    def prune(self) -> None:",
        "        self._position = int(self.num_pruned > 1 and self._position > 20)\n\n"
        "    num_pruned = 0\n\n    def prune(self) -> None:\n        self.num_pruned += 1",
    )
    report = judge("3.1", forgets, 1)
    assert report.failed_rule.id == "O"
    assert len(report.trace["ops"]) <= 8
    assert "reset()" in report.trace["ran"]
    assert "a random mixture" not in str(report)
