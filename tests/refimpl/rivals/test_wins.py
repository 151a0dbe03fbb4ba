"""Who wins at what: nobody beats them, and what is less than a step apart is equal."""

from __future__ import annotations

from dataclasses import replace

from refimpl.rivals import Measures, measure, wins
from tests.support.small_races import small_race


def made(name: str, recovery_s: float, peak_records: int) -> Measures:
    return replace(measure(small_race()[1]), name=name, recovery_s=recovery_s, peak_records=peak_records)


def test_who_is_best_wins_and_equals_share_it() -> None:
    found = {win.what: win for win in wins({n: made(n, s, r) for n, s, r in [("a", 2, 9), ("b", 1, 10), ("c", 1, 8)]})}
    assert found["is back first"].names == ("b", "c")
    assert found["is back first"].words == "1 s"
    assert found["has the least inside"].names == ("c",)
    assert found["has the least inside"].words == "8 records"
    assert found["spares the innocent"].names == ("a", "b", "c")
