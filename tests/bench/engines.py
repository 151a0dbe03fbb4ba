"""The source beside the compiled engine: `python -m tests.bench.engines 1 3 6 7 8 14`.

One process has one engine, so each pass of `make bench` is a process. They take turns, source, compiled, compiled,
source, and what is compared is the ratio to the same peer, which is the same code in both: pass n of one with pass n of
the other, which stand next to each other in time. The loops of the benchmark and the peers are interpreted in both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course.compiled.choice import ENGINES
from tests.bench.measure import Figure
from tests.bench.program import run_program

ROOT = Path(__file__).parents[2]
HEADINGS = ("#", "what", "against", "source", "compiled", "compiled / source")

Ratios = dict[tuple[int, str, str], list[float]]
"""By row, what and against: the ratio of each pass."""


def measured(engine: str, rows: Sequence[str], words: Sequence[str]) -> Mapping[str, Any]:
    """The answer of one pass.

    Raises:
        SystemExit: it failed; it has said why.
    """
    with tempfile.TemporaryDirectory(prefix="sluice-engines-") as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "tests.bench", "--engine", engine, *words, "--json", str(answer), *rows]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(done.returncode)
        found: Mapping[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    assert found["machine"]["engine"] == engine, f"asked for {engine}"
    return found


def add(answer: Mapping[str, Any], ratios: Ratios) -> None:
    """Put the ratios of one pass to those of the passes before; what could not be measured is left out."""
    for row in answer["rows"]:
        for line in row["lines"]:
            if line["value"] is not None:
                key = row["number"], line["what"], line["against"]
                ratios.setdefault(key, []).append(line["value"]["median"])


def table(by_engine: Mapping[str, Ratios]) -> list[tuple[str, ...]]:
    """A line for each comparison that both engines have: medians of the passes, and what they lie between."""
    source, compiled = (by_engine[engine] for engine in ENGINES)
    lines: list[tuple[str, ...]] = []
    for key, ones in source.items():
        if len(others := compiled.get(key, [])) == len(ones):
            gains = [other / one for one, other in zip(ones, others, strict=True)]
            number, what, against = key
            lines.append((str(number or "–"), what, against, *(in_words(each) for each in (ones, others, gains))))
    return lines


def in_words(values: Sequence[float]) -> str:
    figure = Figure.of(values)
    return f"{figure.median:.3g} [{figure.low:.3g} .. {figure.high:.3g}]"


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.engines", description=__doc__)
    parser.add_argument("rows", nargs="*", default=["1", "3", "6", "7", "8", "14"], help="rows, by number or name")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="passes of each engine (%(default)s)")
    parser.add_argument("--rounds", default="3", metavar="N", help="turns of each contender in a pass (%(default)s)")
    parser.add_argument("--seconds", default="0.35", metavar="S", help="length of a turn (%(default)s)")
    given = parser.parse_args()
    by_engine: dict[str, Ratios] = {engine: {} for engine in ENGINES}
    answer: Mapping[str, Any] = {}
    for number in range(given.passes):
        for engine in ENGINES[:: -1 if number % 2 else 1]:
            print(f"pass {number + 1} of {given.passes}, {engine}", file=sys.stderr, flush=True)
            answer = measured(engine, given.rows, ["--rounds", given.rounds, "--seconds", given.seconds])
            add(answer, by_engine[engine])
    from tests.bench.report import machine_in_words

    lines = [HEADINGS, *table(by_engine)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    print("\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines))
    print(
        f"\n{given.passes} passes of each, {given.rounds} rounds of {given.seconds} s; medians of the passes, and what "
        "the middle half of them lie between, or with under four, all"
    )
    print(machine_in_words(answer["machine"]).partition("\n")[2])
    return 0


if __name__ == "__main__":
    run_program(main)
