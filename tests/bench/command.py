"""The command line: what to measure, how often, and the answer as a table and as JSON."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course.compiled.choice import ENGINES
from tests.bench.engines import compare
from tests.bench.measure import ContenderError, Entry, Turn, WrongAnswerError, play
from tests.bench.program import INTERRUPTED
from tests.bench.report import (
    FORMAT,
    as_table,
    cores,
    deliver,
    is_complete,
    line_of,
    machine,
    machine_in_words,
    results_block,
    rewritten,
    row_of,
)
from tests.bench.rows import ENTRIES, ROWS, Row, lacking

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "bench" / "RESULTS.md"
FOLDER = ROOT / ".cache" / "bench"
BOTH = "both"
OUR_LOAD = 2  # what a producer and a consumer add to the load average themselves
WRONG_ANSWER = 1
NAMES = [row.name for row in ROWS]
NUMBERS = [str(row.number) for row in ROWS if row.number]

DESCRIPTION = """\
The engine beside what you would use instead: the goals of the design, one row each. Contenders of a row take turns,
A B C C B A, so a ratio of one run holds where the figures drift. Ratio: by the clock. CPU: by the work of all
processes; trust it more while the machine is busy, as the verdict does. A contender that loses a record ends the run.
Rows that miss their goal take their turns once more, and all turns count.
"""
EPILOG = f"""\
Rows have numbers, 1 to {NUMBERS[-1]}, and names; --list shows them. The answer is also written as JSON, to
{FOLDER.relative_to(ROOT)}/run.json if all rows were measured, else to part.json beside it; of both engines side by
side there is the table only.

Exit status: 0 measured, 1 a contender did not deliver what it was given, 2 wrong use, 130 interrupted.
No speed makes this fail: how fast is for you to judge, whether it works is for `make test`.
"""


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return parse


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.001 <= value <= 60:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.001 to 60")
    return value


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="make bench ARGS='…'" if "MAKELEVEL" in os.environ else "python -m tests.bench",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("names", nargs="*", metavar="ROW", help="rows to measure, by number or name; all by default")
    made.add_argument("--only", default="", metavar="ROWS", help="the same, with commas: --only 11,14")
    made.add_argument("--list", action="store_true", help="show the rows and their contenders; measure nothing")
    made.add_argument("--rounds", type=whole_number(1, 1000), metavar="N", help="turns of each contender (7)")
    made.add_argument("--seconds", type=seconds, metavar="S", help="length of a turn (0.5)")
    made.add_argument(
        "--records", type=whole_number(1, 10**9), metavar="N", help="records of a turn, in place of --seconds"
    )
    made.add_argument("--quick", action="store_true", help="2 rounds of 0.1 s: does it work, and roughly how fast")
    made.add_argument(
        "--engine",
        choices=(*ENGINES, BOTH),
        help="what is measured: source, or if `make fast` has built the other, both side by side",
    )
    made.add_argument("--json", metavar="FILE", help="write the answer there; - prints it instead of the table")
    made.add_argument(
        "--results",
        action="store_true",
        help="measure nothing: put the last complete run, or --json FILE, into RESULTS.md",
    )
    return made


class Progress:
    """What is going on, on stderr: one line written over, or in a log a new one every two seconds."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._started_s = time.monotonic()
        self._said_s = 0.0

    def __call__(self, text: str) -> None:
        now_s = time.monotonic()
        text = f"{now_s - self._started_s:4.0f} s  {text}"
        if self._is_terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif now_s - self._said_s > 2:
            self._said_s = now_s
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def chosen(names: Sequence[str], refuse: Callable[[str], object]) -> list[Row]:
    for name in names:
        if name not in (*NAMES, *NUMBERS):
            close = difflib.get_close_matches(name, NAMES, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are 1 to {NUMBERS[-1]} and {', '.join(NAMES)}"
            refuse(f"there is no row {name!r}{hint}")
    return [row for row in ROWS if not names or row.name in names or str(row.number) in names]


def main(arguments: Sequence[str] | None = None, can_be_both: bool = False) -> int:
    """Measure what `arguments` ask for; return the exit status.

    `can_be_both` says that no engine was asked for and both are there.
    """
    made = parser()
    given = made.parse_args(arguments)
    rows = chosen([*given.names, *filter(None, (name.strip() for name in given.only.split(",")))], made.error)
    if given.seconds is not None and given.records is not None:
        made.error("--seconds and --records both say how long a turn is; give one of them")
    if given.engine == BOTH and (given.json or given.results):
        made.error("a file has the figures of one engine; say --engine source or --engine compiled")
    if given.list:
        print("\n\n".join(listed(row) for row in rows))
        return 0
    if given.results:
        return write_results(Path(given.json or FOLDER / "run.json"), made.error)
    num_rounds, length_s = given.rounds or (2 if given.quick else 7), given.seconds or (0.1 if given.quick else 0.5)
    if given.engine == BOTH or (can_be_both and not given.json):
        words = ["--records", given.records] if given.records else ["--seconds", length_s]
        return compare([str(row.number or row.name) for row in rows], 1, [f"--rounds={num_rounds}", *map(str, words)])
    run = Run(num_rounds, length_s, given.records)
    try:
        run.measure(rows)
    except KeyboardInterrupt:
        run.say.clear()
        print("interrupted; nothing is reported", file=sys.stderr)
        return INTERRUPTED
    except WrongAnswerError as error:
        run.say.clear()
        print(f"wrong answer: {error}", file=sys.stderr)
        return WRONG_ANSWER
    answer = run.answer(rows)
    path = deliver(answer, given.json, FOLDER / ("run.json" if is_complete(answer["rows"]) else "part.json"))
    if path is None:
        return 0
    print(as_table(answer["rows"]), machine_in_words(answer["machine"]), f"All of it: {path}", sep="\n\n")
    return 0


class Run:
    """One run: what each contender did in each round, by group."""

    def __init__(self, rounds: int, length_s: float, num_records: int | None) -> None:
        self.say = Progress()
        self._rounds = rounds
        self._seconds = length_s
        self._num_records = num_records
        self._load_before = os.getloadavg()[0]
        self._turns: dict[str, dict[str, list[Turn]]] = {}
        self._failed: dict[str, str] = {}
        self._is_busy: dict[str, bool] = {}

    def measure(self, rows: Sequence[Row]) -> None:
        """Let the contenders of these rows take turns, group by group.

        Raises:
            WrongAnswerError: one lost a record.
        """
        for group in dict.fromkeys(row.group for row in rows):
            of_group = [row for row in rows if row.group == group]
            self._play(group, of_group)
            # Once more if something was missed, so that a bad minute does not decide; the first turns stay.
            missed = [row for row in of_group if any(map(is_missed, self._lines(row)))]
            if missed and self._num_records is None and self._rounds > 2:
                self._play(group, of_group)

    def answer(self, rows: Sequence[Row]) -> dict[str, Any]:
        """All there is to say."""
        self.say.clear()
        return {
            "format": FORMAT,
            "machine": machine(self._load_before),
            "rounds": self._rounds,
            "seconds": self._seconds,
            "rows": [row_of(row, self._lines(row)) for row in rows],
            "turns": {
                group: {key: [asdict(turn) for turn in turns] for key, turns in found.items()}
                for group, found in self._turns.items()
            },
        }

    def _play(self, group: str, rows: Sequence[Row]) -> None:
        while entries := self._entries(rows):
            turns = {key: list(found) for key, found in self._turns.get(group, {}).items()}
            try:
                self._turns[group] = play(
                    entries,
                    self._rounds,
                    self._seconds,
                    self._num_records,
                    lambda text: self.say(f"{group}: {text}"),
                    turns,
                )
                self._is_busy[group] = max(self._load_before, os.getloadavg()[0] - OUR_LOAD) > cores()
                return
            except ContenderError as error:
                self._failed[error.key] = str(error)  # the others go on without it

    def _entries(self, rows: Sequence[Row]) -> list[Entry]:
        keys: dict[str, None] = {}
        for row in rows:
            for comparison in row.comparisons:
                pair = [key for key in (comparison.one, comparison.other) if key is not None]
                if not any(map(self._missing, pair)):
                    keys |= dict.fromkeys(pair)
        return [ENTRIES[key] for key in keys]

    def _missing(self, key: str | None) -> str | None:
        return None if key is None else self._failed.get(key) or lacking(key)

    def _lines(self, row: Row) -> list[dict[str, Any]]:
        is_busy = self._is_busy.get(row.group, False)
        return [
            line_of(
                comparison,
                self._turns.get(row.group, {}),
                is_busy=is_busy,
                missing=self._missing(comparison.one) or self._missing(comparison.other),
            )
            for comparison in row.comparisons
        ]


def is_missed(line: Mapping[str, Any]) -> bool:
    """Whether a line was measured and its goal not met."""
    return line["goal"] is not None and line["value"] is not None and not line["verdict"].startswith("goal")


def write_results(source: Path, refuse: Callable[[str], object]) -> int:
    """Put the table of one complete run into RESULTS.md."""
    if not source.exists():
        refuse(f"there is no {source}; `make bench` makes it")
    answer = json.loads(source.read_text(encoding="utf-8"))
    if answer.get("format") != FORMAT or not is_complete(answer["rows"]):
        refuse(f"{source} is no complete run of {FORMAT}; `make bench` without ONLY makes one")
    RESULTS.write_text(rewritten(RESULTS.read_text(encoding="utf-8"), results_block(answer)), encoding="utf-8")
    print(f"{RESULTS.name} shows the run of {source}")
    return 0


def listed(row: Row) -> str:
    lines = [f"{row.number or '–'} {row.name}, in turns with all of {row.group}"]
    for comparison in row.comparisons:
        lines.append(f"  {comparison.what} / {comparison.against}")
        for key in filter(None, (comparison.one, comparison.other)):
            known = ENTRIES.get(key)
            lines.append(f"    {key}: {known.contender.meaning if known else 'not there yet'}")
    return "\n".join(lines)
