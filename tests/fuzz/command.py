"""The command line: how many inputs, which ones, and what became of them."""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course.compiled.choice import ENGINES, in_use
from refimpl.config import Config
from refimpl.drivers.makers import makers_of
from tests.fuzz.control_wire import control_fault
from tests.fuzz.harness import Fault, fault_in, played, shrink
from tests.fuzz.inputs import Input
from tests.fuzz.sessions import numbered_input

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
WEIGHED_EVERY = 64  # weighing takes three times as long
MAX_SHRINKING_S = 30.0
CONTROL_EVERY = 10  # one input for the wire between the processes of a cluster after so many for that of data
CONTROL = "control:"
makers_of(Config())  # what takes shortcuts is loaded before memory is counted

DESCRIPTION = """\
Both ends of a connection, each alone and both together, are given frames that are right, nearly right, and no frames at
all, while tasks and transports do what they do at any time. Whatever comes, nothing but a RemoteProtocolError goes out,
every segment has one holder and comes home, credit is kept, and memory stays within what the configuration grants.
After each ten of them comes one for the wire between the processes of a cluster, which no stranger may open.

The verdict printed at the end is a hash over what came of each input for the ends of a connection: bytes said and read,
credit, states, words of errors. For the same seed and number of inputs it is the same with each engine.
"""
EPILOG = """\
An input that breaks something is made short and written to a file, which --replay reads. Ctrl-C ends the run as well.
Exit status: 0 nothing broke, 1 something did, 2 wrong use.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="make fuzz ARGS='…'" if "MAKELEVEL" in os.environ else "python -m tests.fuzz",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--inputs", type=int, default=1_000_000, metavar="N", help="how many inputs (1 000 000)")
    made.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="stop after so long (never)")
    made.add_argument("--seed", metavar="TEXT", help="where they begin; the same seed, the same inputs (random)")
    made.add_argument("--replay", metavar="INPUT", help="play one input: a file, SEED:NUMBER, or control:SEED:NUMBER")
    made.add_argument("--engine", choices=ENGINES, help="what is played (compiled if `make fast` has built it)")
    made.add_argument("--shortcuts", action="store_true", help="play the ends that take shortcuts")
    made.add_argument(
        "--keep", type=Path, default=ROOT / ".cache" / "fuzz", metavar="DIR", help="where to write inputs that break"
    )
    return made


@dataclass(slots=True)
class Run:
    """How far a run has come."""

    seed: str
    keep: Path
    shortcuts: bool = False
    started_s: float = field(default_factory=time.monotonic)
    num_inputs: int = 0
    slowest_s: float = 0.0
    slowest: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    verdicts: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=8))

    def __str__(self) -> str:
        seconds = time.monotonic() - self.started_s
        number = f"{self.num_inputs:,}".replace(",", " ")
        rate = self.num_inputs / max(seconds, 1e-9)
        slowest = f"the slowest took {self.slowest_s * 1000:.0f} ms ({self.seed}:{self.slowest})"
        return f"{number} inputs in {seconds:.0f} s, {rate:.0f}/s, {len(self.faults)} faults; {slowest}"

    def play_next(self) -> None:
        """One input more; a fault that is new is written down."""
        number = self.num_inputs
        if number % CONTROL_EVERY == 0:
            self._play_control(number // CONTROL_EVERY)
        given = replace(numbered_input(self.seed, number), shortcuts=self.shortcuts)
        started_s = time.perf_counter()
        found = played(given, is_weighed=number % WEIGHED_EVERY == 0)
        took_s = time.perf_counter() - started_s
        if took_s > self.slowest_s:
            self.slowest, self.slowest_s = number, took_s
        self.num_inputs += 1
        if isinstance(found, Fault):
            if found.name not in self.faults:
                self._write_down(number, given, found)
            self.faults[found.name] = self.faults.get(found.name, 0) + 1
        else:
            self.verdicts.update(found.encode())

    def _play_control(self, number: int) -> None:
        """One input for the control wire; it is written down by its number."""
        fault = control_fault(self.seed, number, is_weighed=number % WEIGHED_EVERY == 0)
        if fault is not None:
            if fault.name not in self.faults:
                say(f"{fault.story}\ninput {CONTROL}{self.seed}:{number}")
            self.faults[fault.name] = self.faults.get(fault.name, 0) + 1

    def _write_down(self, number: int, given: Input, fault: Fault) -> None:
        self.keep.mkdir(parents=True, exist_ok=True)
        path = self.keep / f"{self.seed}-{number}.json"
        path.write_text(shortened(given, fault).to_json(), encoding="utf-8")
        say(f"{fault.story}\ninput {self.seed}:{number}, made short: {path}")


def shortened(given: Input, fault: Fault) -> Input:
    """The shortest input with the same fault that is found soon."""
    until_s = time.monotonic() + MAX_SHRINKING_S

    def is_the_same(other: Input) -> bool:
        found = fault_in(other) if time.monotonic() < until_s else None
        return found is not None and found.name == fault.name

    return shrink(given, is_the_same) if is_the_same(given) else given


def say(text: str, end: str = "\n") -> None:
    """Say `text` on stderr, over the line of progress if that is a terminal."""
    print(f"\r\033[K{text}" if sys.stderr.isatty() else text, end=end, file=sys.stderr, flush=True)


def replay(what: str, shortcuts: bool = False) -> int:
    """Play one input and tell all about it; return the exit status."""
    path = Path(what)
    if what.startswith(CONTROL):
        return replay_control(what.removeprefix(CONTROL))
    if path.is_file():
        given = Input.from_json(path.read_text(encoding="utf-8"))
    else:
        given = numbered_input(*seed_and_number(what))
    given = replace(given, shortcuts=shortcuts)
    print(given.to_json(), end="")
    fault = fault_in(given, is_weighed=True)
    print("nothing broke" if fault is None else fault.story)
    return fault is not None


def replay_control(what: str) -> int:
    """Play one input for the control wire; return the exit status."""
    fault = control_fault(*seed_and_number(what), is_weighed=True)
    print("nothing broke" if fault is None else fault.story)
    return fault is not None


def seed_and_number(what: str) -> tuple[str, int]:
    """What is behind the last colon, and what before it."""
    seed, _, number = what.rpartition(":")
    if not seed or not number.isdecimal():
        raise ValueError(f"{what} is no file, and not SEED:NUMBER")
    return seed, int(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` ask for; return the exit status."""
    made = parser()
    asked = made.parse_args(arguments)
    if asked.replay is not None:
        try:
            return replay(asked.replay, asked.shortcuts)
        except ValueError as error:
            made.error(str(error))
    run = Run(asked.seed or secrets.token_hex(4), asked.keep, asked.shortcuts)
    until_s = run.started_s + asked.seconds
    pause_s = 0.5 if sys.stderr.isatty() else 30.0
    next_line_s = run.started_s + pause_s
    try:
        while run.num_inputs < asked.inputs and (now_s := time.monotonic()) < until_s:
            run.play_next()
            if now_s >= next_line_s:
                say(str(run), end="" if sys.stderr.isatty() else "\n")
                next_line_s = now_s + pause_s
    except KeyboardInterrupt:
        say(f"interrupted in input {run.seed}:{run.num_inputs}")
    say("", end="")
    print(run)
    print(f"engine {in_use()}, seed {run.seed}, verdict {run.verdicts.hexdigest()}")
    for name, count in run.faults.items():
        print(f"  {count} × {name}")
    return bool(run.faults)
