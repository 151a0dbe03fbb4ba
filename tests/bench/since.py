"""The engine of this tree beside that of another commit: has anything become slower?

    git worktree add --detach ../before COMMIT
    python -m tests.bench.since ../before                    all rows whose turns have no pace of their own
    python -m tests.bench.since ../before 1 10 --rounds 20   two rows, by number or name

Each tree has a process of its own. The two take turns with one contender and as many records, each by its own code and
its own benchmarks. What is compared is the CPU time of a turn in user mode, of all its processes: of that the clock of
a busy machine says little. Contenders that the other tree does not have are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.bench.command import chosen, seconds, whole_number
from tests.bench.measure import Figure
from tests.bench.program import run_program
from tests.bench.rows import ENTRIES, Row, lacking

__all__ = ["Tree", "compared", "keys_of"]

ROOT = Path(__file__).parents[2]
WORKER = """
import gc, json, resource, sys
from tests.bench.rows import ENTRIES
print(json.dumps(sorted(ENTRIES)), flush=True)
def user_s():
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
for line in sys.stdin:
    key, num_records = json.loads(line)
    gc.collect()
    before_s = user_s()
    turn = ENTRIES[key].contender.run(num_records)
    assert turn.checksum == ENTRIES[key].checksum(turn.num_records), key
    print(json.dumps([turn.num_records, user_s() - before_s]), flush=True)
"""
"""Knows nothing of this file, which the other tree may not have."""

NUM_FIRST = 1_000


class Tree:
    """A process that does turns with the code of one tree."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.keys: list[str] = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ns_per_record(self, key: str, num_records: int) -> float:
        """Of a turn of this contender, with so many records or some more."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([key, num_records]) + "\n")
        self._process.stdin.flush()
        moved, user_s = self._answer()
        return float(user_s) * 1e9 / int(moved)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"the process that does the turns has ended with {self._process.wait()}")
        return json.loads(line)


def keys_of(rows: Sequence[Row]) -> list[str]:
    """Our contenders of these rows that can take part and keep no pace."""
    named = dict.fromkeys(comparison.one for row in rows for comparison in row.comparisons)
    there = [key for key in named if lacking(key) is None and ENTRIES[key].is_ours]
    return [key for key in there if ENTRIES[key].contender.records_per_s is None]


def compared(key: str, trees: tuple[Tree, Tree], rounds: int, length_s: float) -> list[tuple[float, float]]:
    """The user time of a record in both trees, in ns, for each round; they begin in turn."""
    num_records = max(NUM_FIRST, ENTRIES[key].contender.least_records)
    while (spent_ns := num_records * trees[0].ns_per_record(key, num_records)) < length_s * 0.5e9:
        num_records *= 2 if spent_ns > length_s * 0.1e9 else 4
    trees[1].ns_per_record(key, num_records)
    found = []
    for number in range(rounds):
        turns = {tree: tree.ns_per_record(key, num_records) for tree in trees[:: -1 if number % 2 else 1]}
        found.append((turns[trees[0]], turns[trees[1]]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare what is asked for; print a line for each contender."""
    made = argparse.ArgumentParser(
        "python -m tests.bench.since", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("folder", type=Path, help="the tree of the other commit")
    made.add_argument("names", nargs="*", metavar="ROW", help="rows, by number or name; all by default")
    made.add_argument("--rounds", type=whole_number(1, 1000), default=11, metavar="N", help="turns of each (11)")
    made.add_argument("--seconds", type=seconds, default=0.4, metavar="S", help="user time of a turn, about (0.4)")
    given = made.parse_args(arguments)
    rows = chosen(given.names, made.error)
    if not (given.folder / "tests" / "bench" / "rows.py").is_file():
        made.error(f"{given.folder} is no tree with benchmarks")
    with ExitStack() as both:
        trees = both.enter_context(Tree(ROOT)), both.enter_context(Tree(given.folder))
        keys = [key for key in keys_of(rows) if key in trees[1].keys]
        print(f"{'contender':<32} {'ns here':>8} {'before':>8}  before ÷ here [middle half]  least ÷ least", flush=True)
        for key in keys:
            print(told(key, compared(key, trees, given.rounds, given.seconds)), flush=True)
    return 0


def told(key: str, turns: Sequence[tuple[float, float]]) -> str:
    here, before = (Figure.of(each) for each in zip(*turns, strict=True))
    ratio = Figure.of([other / one for one, other in turns])
    least = min(other for _, other in turns) / min(one for one, _ in turns)
    spread = f"{ratio.median:.3f} [{ratio.low:.3f} .. {ratio.high:.3f}]"
    return f"{key:<32} {here.median:8.0f} {before.median:8.0f}  {spread:<29} {least:.3f}"


if __name__ == "__main__":
    run_program(main)
