"""The source beside the compiled engine: `make bench`, or `python -m tests.bench.engines 1 3 6 7 8 14` for some passes.

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
HEADINGS = ("#", "what", "against", "goal", "source", "compiled", "compiled / source")

Passes = dict[tuple[int | None, str, str], list[Mapping[str, Any]]]
"""By row, what and against: the line of each pass."""


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


def add(answer: Mapping[str, Any], passes: Passes) -> None:
    """Put the lines of one pass to those of the passes before; what could not be measured is left out."""
    for row in answer["rows"]:
        for line in row["lines"]:
            if line["value"] is not None:
                passes.setdefault((row["number"], line["what"], line["against"]), []).append(line)


def table(by_engine: Mapping[str, Passes]) -> list[tuple[str, ...]]:
    """A line for each comparison that both engines have: medians of the passes, and what they lie between."""
    source, compiled = (by_engine[engine] for engine in ENGINES)
    lines: list[tuple[str, ...]] = []
    for (number, what, against), ones in source.items():
        if len(others := compiled.get((number, what, against), [])) == len(ones):
            one, other = ([line["value"]["median"] for line in of_engine] for of_engine in (ones, others))
            gains = [after / before for before, after in zip(one, other, strict=True)]
            goal = ones[0]["goal"]
            sign = "≤" if ones[0]["is_less_better"] else "≥"
            told = "" if goal is None else f"{sign} {goal:g}"
            figures = (f"{in_words(each)}{reached(ones[0], each)}" for each in (one, other))
            lines.append((str(number or "–"), what, against, told, *figures, in_words(gains)))
    return lines


def reached(line: Mapping[str, Any], values: Sequence[float]) -> str:
    """What the median of the passes comes to, as a verdict behind it; nothing where there is no goal."""
    if line["goal"] is None:
        return ""
    sign = -1 if line["is_less_better"] else 1
    median = sign * Figure.of(values).median
    for name in ("goal", "floor"):
        if median >= sign * line[name]:
            return f" {name}"
    return " missed"


def in_words(values: Sequence[float]) -> str:
    figure = Figure.of(values)
    if len(values) == 1:
        return f"{figure.median:.3g}"
    return f"{figure.median:.3g} [{figure.low:.3g} .. {figure.high:.3g}]"


def compare(rows: Sequence[str], num_passes: int, words: Sequence[str]) -> int:
    """Measure rows with both engines in turn, and print the table; `words` are options of a pass."""
    by_engine: dict[str, Passes] = {engine: {} for engine in ENGINES}
    answer: Mapping[str, Any] = {}
    for number in range(num_passes):
        for engine in ENGINES[:: -1 if number % 2 else 1]:
            print(f"pass {number + 1} of {num_passes}, {engine}", file=sys.stderr, flush=True)
            answer = measured(engine, rows, words)
            add(answer, by_engine[engine])
    from tests.bench.report import machine_in_words

    lines = [HEADINGS, *table(by_engine)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    print("\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines))
    middle = "; medians of the passes, and what the middle half of them lie between, or with under four, all"
    spread = "" if num_passes == 1 else middle
    print(f"\n{num_passes} {'pass' if num_passes == 1 else 'passes'} of each, {answer['rounds']} rounds of ", end="")
    print(f"{answer['seconds']:g} s{spread}")
    print(machine_in_words(answer["machine"]).partition("\n")[2])
    return 0


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.engines", description=__doc__)
    parser.add_argument("rows", nargs="*", default=["1", "3", "6", "7", "8", "14"], help="rows, by number or name")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="passes of each engine (%(default)s)")
    parser.add_argument("--rounds", default="3", metavar="N", help="turns of each contender in a pass (%(default)s)")
    parser.add_argument("--seconds", default="0.35", metavar="S", help="length of a turn (%(default)s)")
    given = parser.parse_args()
    return compare(given.rows, given.passes, ["--rounds", given.rounds, "--seconds", given.seconds])


if __name__ == "__main__":
    run_program(main)
