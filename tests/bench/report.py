"""What turns come to: a line for each comparison, as a table, as JSON, and as the block of RESULTS.md."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from course.compiled.choice import in_use
from course.spark.java import JavaUnavailable, find_java
from tests.bench.flink_jvm import FLINK_VERSION
from tests.bench.measure import Figure, Turn
from tests.bench.pace import pace, pace_in_words
from tests.bench.rows import ROWS, Comparison, Row

__all__ = [
    "BEGIN", "END", "FORMAT", "as_table", "deliver", "line_of", "machine", "machine_in_words", "results_block",
    "rewritten",
]  # fmt: skip

FORMAT = "sluice-bench/2"
PACKAGES = ("numpy", "pyarrow", "pyzmq", "bytewax", "polars", "sluice")
BEGIN = "<!-- The output of one `make bench`; `python -m tests.bench --results` writes it. Begin. -->"
END = "<!-- End. -->"

Turns = Mapping[str, Sequence[Turn]]


# -- the figures -----------------------------------------------------------------------------------


def deliver(answer: Mapping[str, Any], wanted: str | None, usual: Path) -> Path | None:
    """Print the answer as JSON if `-` is wanted; else write it there, or to the usual file, and return where it is."""
    text = json.dumps(answer, indent=1)
    if wanted == "-":
        print(text)
        return None
    file = Path(wanted) if wanted else usual
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def values(comparison: Comparison, turns: Turns) -> list[float]:
    """One value for each round."""
    ones = turns[comparison.one]
    if comparison.found is not None:
        if comparison.other is None:
            return [turn.found[comparison.found] for turn in ones]
        others = turns[comparison.other]
        return [a.found[comparison.found] / b.found[comparison.found] for a, b in zip(ones, others, strict=True)]
    assert comparison.other is not None, f"{comparison.what} is compared with nothing"
    pairs = zip(ones, turns[comparison.other], strict=True)
    return [
        comparison.weight * (one.num_records / one.wall_s) / (other.num_records / other.wall_s) for one, other in pairs
    ]


def cpu_values(comparison: Comparison, turns: Turns) -> list[float]:
    """How many times as much `one` gets done in a second of all processors' work; nothing where that says nothing."""
    if comparison.found is not None or comparison.other is None:
        return []
    pairs = zip(turns[comparison.one], turns[comparison.other], strict=True)
    return [
        comparison.weight * (other.cpu_s / other.num_records) / (one.cpu_s / one.num_records)
        for one, other in pairs
        if one.cpu_s > 0
    ]


def reached(comparison: Comparison, value: float) -> int:
    """2 the goal, 1 the floor, 0 neither."""
    assert comparison.goal is not None
    assert comparison.floor is not None
    sign = -1 if comparison.is_less_better else 1
    return (sign * value >= sign * comparison.floor) + (sign * value >= sign * comparison.goal)


WORDS = ("missed", "floor", "goal")


def verdict(comparison: Comparison, value: Figure, cpu: Figure | None, unmet: Sequence[str], *, is_busy: bool) -> str:
    """Return `goal`, `floor` or `missed`, and whether it was the CPU ratio that said so."""
    if comparison.goal is None:
        return ""
    if unmet:
        return "missed"
    if comparison.by_cpu:
        assert cpu is not None, f"{comparison.what} is judged by the CPU ratio and has none"
        return WORDS[reached(comparison, cpu.median)]
    by_clock = reached(comparison, value.median)
    by_cpu = reached(comparison, cpu.median) if cpu and is_busy else 0
    return f"{WORDS[by_cpu]} by CPU" if by_cpu > by_clock else WORDS[by_clock]


def unmet_demands(comparison: Comparison, turns: Turns) -> list[str]:
    said = []
    for demand in comparison.demands:
        median = statistics.median(turn.found[demand.found] for turn in turns[comparison.one])
        if not demand.least <= median <= demand.most:
            asked = f"at least {demand.least:g}" if median < demand.least else f"at most {demand.most:g}"
            said.append(f"{demand.found} {median:.3g}, {asked} asked for")
    return said


def line_of(comparison: Comparison, turns: Turns, *, is_busy: bool, missing: str | None = None) -> dict[str, Any]:
    """One comparison as data; `missing` says why it could not be measured."""
    line: dict[str, Any] = {
        "what": comparison.what,
        "against": comparison.against,
        "one": comparison.one,
        "other": comparison.other,
        "goal": comparison.goal,
        "floor": comparison.floor,
        "is_less_better": comparison.is_less_better,
    }
    if missing is not None:
        return {**line, "value": None, "cpu": None, "found": {}, "notes": [], "verdict": f"not measured: {missing}"}
    value = Figure.of(values(comparison, turns))
    ratios = cpu_values(comparison, turns)
    cpu = Figure.of(ratios) if ratios else None
    notes = unmet_demands(comparison, turns)
    found = {
        name: statistics.median(turn.found[name] for turn in turns[comparison.one])
        for name in turns[comparison.one][0].found
    }
    return {
        **line,
        "value": spread(value),
        "cpu": spread(cpu) if cpu else None,
        "found": found,
        "notes": notes,
        "verdict": verdict(comparison, value, cpu, notes, is_busy=is_busy),
    }


def spread(figure: Figure) -> dict[str, float]:
    return {"median": figure.median, "low": figure.low, "high": figure.high}


# -- what the figures depend on --------------------------------------------------------------------


def machine(load_before: float) -> dict[str, Any]:
    """The machine, its pace and the versions."""
    versions = {"CPython" if platform.python_implementation() == "CPython" else "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    with contextlib.suppress(JavaUnavailable):
        versions |= {"Java": str(find_java().major), "Flink": FLINK_VERSION}
    return {
        "engine": in_use(),
        "processor": processor(),
        "cores": cores(),
        "load_before": round(load_before, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "pace": pace(),
        "versions": versions,
    }


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


WORDS_FOR_ENGINE = {"source": "the source, interpreted", "compiled": "compiled (`make fast`)"}


def machine_in_words(where: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    return (
        f"the engine is {WORDS_FOR_ENGINE[where.get('engine', 'source')]};\n"
        f"{where['processor']}, {where['cores']} cores, load {where['load_before']} before and {where['load_after']} "
        f"after; {where['system']};\n{pace_in_words(where['pace'])};\n{versions}"
    )


# -- in words --------------------------------------------------------------------------------------

HEADINGS = ("#", "what", "against", "ratio [middle half]", "CPU", "goal", "floor", "verdict")


def number(value: float | None) -> str:
    """Three digits, as many as a ratio is worth."""
    if value is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
    return f"{value:.{min(digits, 3)}f}"


def cells(row: Mapping[str, Any], line: Mapping[str, Any]) -> list[str]:
    value, cpu = line["value"], line["cpu"]
    sign = "" if line["goal"] is None else "≤ " if line["is_less_better"] else "≥ "
    verdict = line["verdict"] if line["verdict"] or value is None else "–"
    notes = line["notes"]
    told = [
        f"{name} {number(found)}"
        for name, found in line["found"].items()
        if name in SHOWN and not any(note.startswith(name) for note in notes)
    ]
    if extra := "; ".join([*notes, *told]):
        verdict += f" ({extra})"
    return [
        str(row["number"] or "–"),
        line["what"],
        line["against"],
        f"{number(value['median'])} [{number(value['low'])} .. {number(value['high'])}]" if value else "",
        number(cpu["median"]) if cpu else "",
        *(f"{sign}{line[name]:g}" if line[name] is not None else "" for name in ("goal", "floor")),
        verdict,
    ]


SHOWN = {"flushes_per_s", "p99_ms", "grown_mib", "pools_mib"}


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """All lines with their columns under each other; a row's number stands at its first line."""
    lines = [list(HEADINGS), *lines_of(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    )


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    found = []
    for row in rows:
        for index, line in enumerate(row["lines"]):
            found.append(cells(row, line))
            if index:
                found[-1][0] = ""
    return found


def results_block(answer: Mapping[str, Any]) -> str:
    """The table in Markdown, between its marks."""
    table = ["| " + " | ".join(line) + " |" for line in [list(HEADINGS), ["---"] * len(HEADINGS)]]
    table += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines_of(answer["rows"])]
    said = (
        f"One run, {answer['rounds']} rounds of {answer['seconds']:g} s: the median of the rounds' ratios and what the "
        f"middle half of them lie between; CPU is the same by the work of all processes.\n"
        f"{machine_in_words(answer['machine'])}."
    )
    return "\n".join([BEGIN, *table, "", said, END])


def rewritten(text: str, block: str) -> str:
    """The page with this block in the place of the one it has.

    Raises:
        ValueError: the marks are not there, in order, once each.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise ValueError("the page has no place for the table: it needs both marks once, in order")
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL)


def is_complete(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every goal has its row."""
    return {row["number"] for row in rows} >= {row.number for row in ROWS}


def row_of(row: Row, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"number": row.number, "name": row.name, "lines": list(lines)}
