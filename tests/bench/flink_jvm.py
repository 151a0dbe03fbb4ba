"""Flink itself as a contender: a JVM beside this process that runs a job for each turn, warm from the ones before.

`flink/KeyBy.java` is the job. It is compiled once for each version of its source, into a folder beside Flink's jar,
which `sluice flink fetch` brings. The records are ours; so is the sum that the job must come to.
"""

from __future__ import annotations

import atexit
import functools
import json
import queue
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from course.flink.command import JAR, FlinkUnavailable, find_compiler, flink_folder, jar_path
from course.flink.program import FlinkProgram
from course.spark.java import JavaUnavailable, find_java
from tests.bench.contenders import ROWS
from tests.bench.measure import Contender, Row, Turn

__all__ = ["FLINK", "FLINK_VERSION"]

FLINK_VERSION = JAR.requirement.partition("==")[2]
PROGRAM = FlinkProgram(Path(__file__).parent / "flink" / "KeyBy.java", "bench")
SECONDS_FOR_A_JOB = 120.0
# Flink is older than the modules of Java: its serializers and closures are looked into.
OPENS = ("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")


class FlinkError(Exception):
    """Flink's job failed; the text has the end of what it said."""


@functools.cache
def lacking() -> str | None:
    """Why Flink cannot run here, if it cannot."""
    try:
        jar_path(flink_folder())
        find_java()
        if not PROGRAM.classes(flink_folder()).is_dir():
            find_compiler(flink_folder())
    except (FlinkUnavailable, JavaUnavailable) as error:
        return str(error)
    return None


class Jvm:
    """One JVM that runs jobs, one after the other, until this process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-bench-")
        records = Path(self._folder.name) / "records"
        records.write_bytes(np.array(ROWS, ">i8").tobytes())
        # A JVM writes its performance counters into /tmp, where they stay when it is killed.
        options = ("-Xmx1g", "-XX:-UsePerfData", *OPENS, f"-Djava.io.tmpdir={self._folder.name}")
        class_path = f"{PROGRAM.compiled(flink_folder())}:{jar_path(flink_folder())}"
        self._said: deque[str] = deque(maxlen=40)
        self._process = subprocess.Popen(
            [str(find_java().program), *options, "-cp", class_path, "KeyBy", str(records)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="reader of Flink", daemon=True)
        self._reader.start()
        atexit.register(self.close)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def run(self, mode: str, num_records: int, file: Path | None = None) -> dict[str, int]:
        """Run one job; return what it measured.

        Raises:
            FlinkError: the job failed or takes too long; the JVM is gone then.
        """
        assert self._process.stdin is not None
        try:
            print(mode, num_records, *([file] if file else []), file=self._process.stdin, flush=True)
            line = self._lines.get(timeout=SECONDS_FOR_A_JOB)
        except (queue.Empty, BrokenPipeError):
            line = ""
        if not line:
            self._process.kill()
            self._reader.join()
            self._process.wait()
            raise FlinkError(f"Flink ended: {''.join(self._said)[-2000:]}")
        answer: dict[str, int] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the JVM."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._folder.cleanup()
        atexit.unregister(self.close)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._said.append(line)
                if line.startswith("{"):
                    self._lines.put(line)
        self._lines.put("")


_running: list[Jvm] = []


def jvm() -> Jvm:
    """The JVM that runs, or a new one."""
    if _running and not _running[-1].is_running:
        _running.pop().close()
    if not _running:
        _running.append(Jvm())
    return _running[-1]


def turn(mode: str, num_records: int) -> Turn:
    answer = jvm().run(mode, num_records)
    # Timed is what comes after the first fifth; as many seconds more for the rest.
    whole = num_records / answer["timed"] / 1e9
    return Turn(num_records, answer["wall_ns"] * whole, answer["cpu_ns"] * whole, answer["sum"])


def deliver(mode: str, num_records: int) -> tuple[int, list[Row]]:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        arrived = Path(folder) / "arrived"
        jvm().run(mode, num_records, arrived)
        return num_records, [row_of(line) for line in arrived.read_text().splitlines()]


def row_of(line: str) -> Row:
    time, key, value = map(int, line.split())
    return time, key, value


def contender(mode: str, where: str) -> Contender:
    meaning = f"Flink {FLINK_VERSION} in the JVM: sequence, map, keyBy, map of Tuple3, objects reused; {where}"
    run: Any = functools.partial(turn, mode)
    return Contender(f"Flink {mode}", meaning, run, functools.partial(deliver, mode), lacking=lacking)


FLINK = {
    "flink/local": contender("local", "one TaskManager"),
    "flink/remote": contender("remote", "two TaskManagers of one JVM, TCP between them"),
}
