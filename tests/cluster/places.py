"""Processes with a Spark of their own, each of which does all that is asked of one master."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("child.py")
TIMEOUT_S = 1200.0  # only so that a hang fails; a machine that has much to do needs minutes


@dataclass(frozen=True)
class Place:
    """Where a child works: everything temporary is below it."""

    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        own = {name: str(self.folder / name.lower()) for name in ("TMPDIR", "SLUICE_SCRATCH")}
        for folder in own.values():
            Path(folder).mkdir(exist_ok=True)
        work = {"SLUICE_WORK": str(self.folder / "state" / "work"), "PYTHONPATH": str(ROOT)}
        return os.environ | own | work | more

    @property
    def left(self) -> list[str]:
        """What is left in the places for temporary files."""
        return [str(path) for name in ("tmpdir", "sluice_scratch") for path in (self.folder / name).iterdir()]


FLIGHTS = (4_000, "8bc53edd2b7e99bf")
"""How many flights are asked about, and the fingerprint of the answer; it is the same on every driver."""

SECTION, RECEIPT = 9, "L09 ✓ 3 of 3 as predicted; 5000 rows of flights, seed 7; d01cf3519429"
"""A data section of the lessons, and the receipt of whoever has run it, wherever Spark is."""


def run_child(place: Place, master: str, checks: Sequence[str]) -> dict[str, Any]:
    """What the checks found, by their names; and, as `left`, which of the processes are still there."""
    shared = place.folder / "shared"
    shared.mkdir()
    before = spark_work()
    done = subprocess.run(
        [sys.executable, str(CHILD), master, str(shared), *checks],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=place.environment(),
        cwd=place.folder,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    print(*(f"{line['check']}: {line['seconds']} s" for line in lines if "seconds" in line), sep="\n")
    found = {line["check"]: line["found"] for line in lines}
    found["left"] = [each for each in found.pop("processes") if is_running(*each)]
    found["new_work"] = spark_work() - before
    return found


def is_running(process_id: int, born: float) -> bool:
    try:
        process = psutil.Process(process_id)
        return process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def spark_work() -> set[str]:
    """What workers have written into the installed package."""
    work = Path(pyspark.__file__).parent / "work"
    return {path.name for path in work.iterdir()} if work.exists() else set()


def sluice(place: Place, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command, in the place."""
    return subprocess.run(
        [sys.executable, "-m", "course.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        env=place.environment(**more),
        cwd=place.folder,
        timeout=TIMEOUT_S,
    )
