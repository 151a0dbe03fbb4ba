"""How long turns are: a machine that stands still for a moment does not decide it."""

from collections import deque

import pytest

from tests.bench.measure import Contender, Entry, Turn, play

RECORDS_PER_S = 1_000_000
SECONDS = 0.4


class Clockwork:
    """A contender that says itself how long its turns took: as long as its records ask for, and the stalls besides."""

    def __init__(self, stalls_s: list[float]) -> None:
        self._stalls_s = deque(stalls_s)
        self.turns: list[Turn] = []

    def run(self, num_records: int) -> Turn:
        wall_s = num_records / RECORDS_PER_S + (self._stalls_s.popleft() if self._stalls_s else 0)
        self.turns.append(Turn(num_records, wall_s, wall_s, 0))
        return self.turns[-1]

    def entry(self) -> Entry:
        contender = Contender("clockwork", "counts", self.run, lambda num_records: (num_records, []))
        return Entry("clockwork", contender, lambda _: [], lambda _: 0)


@pytest.mark.parametrize("stalled", [None, 0, 1, 2, 3, 4, 5], ids=lambda number: f"turn {number}")
@pytest.mark.parametrize("stall_s", [SECONDS / 4, 30.0])
def test_one_stall_leaves_the_turns_as_long_as_they_are_asked_for(stalled: int | None, stall_s: float) -> None:
    clockwork = Clockwork([] if stalled is None else [0.0] * stalled + [stall_s])
    turns = play([clockwork.entry()], 2, SECONDS)["clockwork"]
    # 1000, 4000, 16000, 64000 and 256000 records are tried; the last take a quarter of the time asked for, or more.
    assert [turn.num_records for turn in turns] == [SECONDS * RECORDS_PER_S] * 2
