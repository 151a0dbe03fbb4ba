"""Ends of an exchange as processes: Flink's own, and ours with the same options and the same JSON.

    with Peer("flink", "serve", records=1000) as producer, Peer("flink", "consume", **producer.offer()) as consumer:
        assert consumer.done()["channels"][0]["records"] == 1000
        producer.done()

`course/flink/FlinkPeer.java` is Flink's end. It is compiled once for each version of its source, into a folder beside
the jar.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from course.flink.command import FlinkUnavailable, find_compiler, flink_folder, jar_path
from course.flink.program import FlinkProgram
from course.spark.java import JavaUnavailable, find_java

__all__ = ["MAIN", "PROGRAM", "ROOT", "SECONDS", "Peer", "PeerError", "flink_command", "missing"]

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = FlinkProgram(ROOT / "course" / "flink" / "FlinkPeer.java", "peer")
MAIN = "org.apache.flink.runtime.io.network.netty.FlinkPeer"
SECONDS = 60.0
"""A peer has this long for everything, unless it is given another time."""


class PeerError(Exception):
    """A peer did not do what was expected; the text has its exit status, its events and its stderr."""


def missing() -> str | None:
    """What of the real Flink is not on this machine, and how to get it; `None` if all of it is here."""
    folder = flink_folder()
    try:
        jar_path(folder)
        find_java()
        if not PROGRAM.classes(folder).is_dir():
            find_compiler(folder)
    except (FlinkUnavailable, JavaUnavailable) as error:
        return str(error)
    return None


@functools.cache
def flink_command() -> tuple[str, ...]:
    """Begin the command line of Flink's end, compiled if it was not."""
    folder = flink_folder()
    jar, classes = jar_path(folder), PROGRAM.compiled(folder)
    # A JVM writes its performance counters into /tmp, where they stay when it is killed.
    # It lives for a second, in which the better of the two compilers costs more than it gains.
    quick = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    options = ("-Xmx512m", "-XX:-UsePerfData", *quick, "-cp", f"{classes}:{jar}")
    return (str(find_java().program), *options, MAIN)


def command_of(kind: str) -> tuple[str, ...]:
    """Begin the command line of one end: `flink` is the real one, `sluice` is ours."""
    return flink_command() if kind == "flink" else (sys.executable, "-m", "course.cli", "peer")


class Peer:
    """One end as a running process, between `with` and the end of its block, whatever happens there.

    `mode` is `serve` or `consume`; options are those of `FlinkPeer`: `string_pad=8` is `--string-pad 8`. When `seconds`
    have passed, waiting fails; the process has the same limit, so that it ends by itself should the tests be killed.

    Invariant: after the block the process is gone, and so is the thread that read from it.
    """

    def __init__(self, kind: str, mode: str, *, seconds: float = SECONDS, **options: object) -> None:
        self.name = f"{kind} {mode}"
        self.events: list[dict[str, Any]] = []
        self._options = {"max_seconds": max(1, round(seconds)), **options}
        words = [word for key, value in self._options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        self.command = [*command_of(kind), mode, *words]
        self._seconds = seconds
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._stderr, text=True, cwd=ROOT
        )
        self._deadline = time.monotonic() + self._seconds
        self._reader = threading.Thread(target=self._read, name=f"reader of {self.name}", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        self._reader.join()
        self._stderr.close()

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process as a power failure would, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the event of this name, each of which comes once; all that have come are in `events`.

        Raises:
            PeerError: the peer reported an error, ended, said something else than JSON, or time is up.
        """
        for before in self.events:
            if before["event"] == event:
                return before
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except queue.Empty:
                raise self._error(f"did not say {event!r} within {self._seconds:g} s") from None
            if line is None:
                self._lines.put(None)  # it has ended for whoever asks next, too
                raise self._error(f"ended with status {self.exit_code()} and did not say {event!r}")
            try:
                said: dict[str, Any] = json.loads(line)
            except ValueError:
                raise self._error(f"said {line!r}, which is not JSON") from None
            self.events.append(said)
            if said["event"] == event:
                return said
            if said["event"] == "error":
                raise self._error(f"reported an error before {event!r}")

    def exit_code(self) -> int:
        """Wait for the process to end; return its exit status, minus the signal if it was killed."""
        try:
            return self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._error(f"did not end within {self._seconds:g} s") from None

    def done(self, exit_code: int = 0) -> dict[str, Any]:
        """Wait for the end; return what the peer found out, having checked the exit status."""
        done = self.wait_for("done")
        if (found := self.exit_code()) != exit_code:
            raise self._error(f"ended with status {found} instead of {exit_code}")
        return done

    def offer(self) -> dict[str, Any]:
        """What a consumer must know of this producer: pass it to `Peer(kind, "consume", **offer)`."""
        listening = self.wait_for("listening")
        ids = [f"{partition['partition_id']}:{partition['producer_id']}" for partition in listening["partitions"]]
        same = {name: listening[name] for name in ("port", "subpartitions", "type", "elements", "segment_size")}
        return {**same, "partitions": ",".join(ids)}

    def stderr(self) -> str:
        """What the process wrote there until now."""
        descriptor = self._stderr.fileno()  # not read() and seek(): the process shares the position
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace")

    def _read(self) -> None:
        """Hand on the lines of stdout until it ends."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def _error(self, what: str) -> PeerError:
        events = "".join(f"\n  {json.dumps(event)[:2000]}" for event in self.events)
        command, stderr = " ".join(self.command), self.stderr()[-4000:]
        return PeerError(f"{self.name} {what}\n{command}\nevents:{events}\nstderr:\n{stderr}")
