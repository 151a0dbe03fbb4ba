"""The command line: what to measure, how often, and the answer in words or as JSON."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.bench.contenders import BENCHMARKS
from tests.bench.measure import Benchmark, Figure, Outcome, WrongAnswerError, measure

__all__ = ["main"]

FORMAT = "sluice-bench/1"
WRONG_ANSWER, WRONG_USE, INTERRUPTED = 1, 2, 130
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}

DESCRIPTION = """\
The engine beside what you would use instead. All contenders move the same records between two threads of one process
and take turns, A B C C B A, so a ratio of one run holds where the figures drift. Wall: by the clock. CPU: by the work
of the whole process; trust it more while the machine is busy. A contender that loses a record ends the run.
"""
EPILOG = """\
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
        description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(BY_NAME)}; all by default")
    made.add_argument("--list", action="store_true", help="show the benchmarks and their contenders; measure nothing")
    made.add_argument("--rounds", type=whole_number(1, 1000), metavar="N", help="turns of each contender (11)")
    made.add_argument("--seconds", type=seconds, metavar="S", help="length of a turn (0.5)")
    made.add_argument(
        "--records", type=whole_number(1, 10**9), metavar="N", help="records of a turn, in place of --seconds"
    )
    made.add_argument("--quick", action="store_true", help="3 rounds of 0.1 s: does it work, and roughly how fast")
    made.add_argument("--json", action="store_true", help="print one JSON document; progress stays on stderr")
    return made


class Progress:
    """What is going on, on stderr: one line written over, or in a log a new one every two seconds."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._said_s = time.monotonic()

    def __call__(self, text: str) -> None:
        if self._is_terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._said_s > 2:
            self._said_s = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def chosen(names: Sequence[str], refuse: Callable[[str], object]) -> list[Benchmark]:
    for name in names:
        if name not in BY_NAME:
            close = difflib.get_close_matches(name, BY_NAME, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(BY_NAME)}"
            refuse(f"there is no benchmark called {name!r}{hint}")
    return [benchmark for benchmark in BENCHMARKS if not names or benchmark.name in names]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what `arguments` ask for; return the exit status."""
    made = parser()
    given = made.parse_args(arguments)
    benchmarks = chosen(given.names, made.error)
    if given.seconds is not None and given.records is not None:
        made.error("--seconds and --records both say how long a turn is; give one of them")
    if given.list:
        print("\n\n".join(listed(benchmark) for benchmark in benchmarks))
        return 0
    rounds = given.rounds or (3 if given.quick else 11)
    length = given.seconds or (0.1 if given.quick else 0.5)
    progress = Progress()
    outcomes: list[Outcome] = []
    load_before = os.getloadavg()[0]
    try:
        for benchmark in benchmarks:
            outcomes.append(measure(benchmark, rounds, length, given.records, progress))
            progress.clear()
            if not given.json:
                print(in_words(outcomes[-1], rounds), flush=True)
    except KeyboardInterrupt:
        progress.clear()
        print("interrupted; the rounds of this benchmark are not reported", file=sys.stderr)
        return INTERRUPTED
    except WrongAnswerError as error:
        progress.clear()
        print(f"wrong answer: {error}", file=sys.stderr)
        return WRONG_ANSWER
    where = machine(load_before)
    if given.json:
        print(json.dumps(as_json(outcomes, rounds, where), indent=2))
    else:
        print(f"{machine_in_words(where)}")
    return 0


# -- the answer ------------------------------------------------------------------------------------


def machine(load_before: float) -> dict[str, object]:
    """What the figures depend on."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": round(load_before, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": version("numpy"),
        "pyarrow": version("pyarrow"),
        "sluice": version("sluice"),
    }


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def machine_in_words(where: dict[str, object]) -> str:
    return (
        f"{where['processor']}, {where['cores']} cores, load {where['load_before']} before and {where['load_after']} "
        f"after; {where['system']};\n{where['python']}, numpy {where['numpy']}, pyarrow {where['pyarrow']}, "
        f"sluice {where['sluice']}"
    )


def listed(benchmark: Benchmark) -> str:
    width = max(len(contender.name) for contender in benchmark.contenders)
    lines = [f"{benchmark.name}: {benchmark.meaning}"]
    lines += [f"  {contender.name:<{width}}  {contender.meaning}" for contender in benchmark.contenders]
    return "\n".join(lines)


def in_words(outcome: Outcome, rounds: int) -> str:
    benchmark = outcome.benchmark
    width = max(len(contender.name) for contender in benchmark.contenders)
    lines = [f"{benchmark.name}: {benchmark.meaning}; {rounds} rounds, median [middle half]"]
    for contender in benchmark.contenders:
        rate, work = outcome.records_per_s(contender.name), outcome.cpu_ns_per_record(contender.name)
        lines.append(
            f"  {contender.name:<{width}}  {rate.median / 1e6:8.3f} M records/s "
            f"[{rate.low / 1e6:.3f} .. {rate.high / 1e6:.3f}]  CPU {work.median:.0f} ns/record"
        )
    for ratio in benchmark.ratios:
        wall, cpu = outcome.wall_ratio(ratio), outcome.cpu_ratio(ratio)
        asked = "" if ratio.goal is None else f"  (goal {ratio.goal}, floor {ratio.floor})"
        lines.append(
            f"  {ratio.one} / {ratio.other}: wall {in_brackets(wall)}, CPU {in_brackets(cpu)}{asked}"
        )
    return "\n".join(lines) + "\n"


def in_brackets(figure: Figure) -> str:
    return f"{figure.median:.2f} [{figure.low:.2f} .. {figure.high:.2f}]"


def as_json(outcomes: Sequence[Outcome], rounds: int, where: dict[str, object]) -> dict[str, object]:
    return {
        "format": FORMAT,
        "machine": where,
        "rounds": rounds,
        "benchmarks": [
            {
                "name": outcome.benchmark.name,
                "contenders": [
                    {
                        "name": contender.name,
                        "records_per_turn": outcome.turns[contender.name][0].num_records,
                        "records_per_s": spread(outcome.records_per_s(contender.name)),
                        "cpu_ns_per_record": spread(outcome.cpu_ns_per_record(contender.name)),
                    }
                    for contender in outcome.benchmark.contenders
                ],
                "ratios": [
                    {
                        "of": ratio.one,
                        "to": ratio.other,
                        "wall": spread(outcome.wall_ratio(ratio)),
                        "cpu": spread(outcome.cpu_ratio(ratio)),
                        "goal": ratio.goal,
                        "floor": ratio.floor,
                    }
                    for ratio in outcome.benchmark.ratios
                ],
            }
            for outcome in outcomes
        ],
    }


def spread(figure: Figure) -> dict[str, float]:
    return {"median": figure.median, "low": figure.low, "high": figure.high}
