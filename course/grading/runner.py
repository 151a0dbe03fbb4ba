"""The parent's half of a run: start the child in a folder of its own, read its transcript, end it.

Whatever the child does, the parent gets back a `Transcript`; lines that are not what a child writes
are dropped, and a child that says too much or too long is ended with its whole process group.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course.grading.rules import Case, Seen

__all__ = ["Grader", "GraderError", "Limits", "Transcript"]

_HERE = Path(__file__).parent
_TRANSCRIPT_BYTES = 32 << 20


class GraderError(RuntimeError):
    """The grader itself could not work on this machine; says nothing about the learner's code."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. `wall_seconds` is the parent's clock, the others are the child's own."""

    wall_seconds: float = 10.0
    case_seconds: float = 2.5
    run_seconds: float = 9.0
    cpu_seconds: int = 12
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 20

    def as_plain(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Transcript:
    """What came back. `problem` is why the code never ran; `step` the last case that was begun.

    `ended` is true only if the child itself said so; a transcript without it is never a pass.
    """

    problem: Mapping[str, Any] | None = None
    loaded: bool = False
    seen: dict[int, Seen] = field(default_factory=dict)
    step: int | None = None
    ended: bool = False
    timed_out: bool = False
    tampered: list[str] = field(default_factory=list)
    printed: int = 0
    printed_text: str = ""


class Grader:
    """Starts children for one exercise.

    Args:
        job: what does not change between runs: exercise, kind, member, methods, driver, modules,
            engine paths (see `course.seams.child_job`).
        limits: what each run may use.
    """

    def __init__(self, job: Mapping[str, Any], limits: Limits | None = None) -> None:
        self._job = dict(job)
        self._limits = limits or Limits()
        self._texts = {name: (_HERE / f"{name}.py").read_text(encoding="utf-8") for name in ("fence", "stand_ins")}

    def start(self, source: str, cases: Sequence[Case]) -> Run:
        """Start a child on `source`; the caller must call `finish` on what it gets."""
        starts = [i for i, case in enumerate(cases) if not i or case.rule != cases[i - 1].rule]
        job = {**self._job, "source": source, "cases": [case.ops for case in cases], "starts": starts,
               **self._texts, "limits": self._limits.as_plain()}  # fmt: skip
        return Run(job, self._limits)


class Run:
    """One child at work in its own temporary folder."""

    def __init__(self, job: Mapping[str, Any], limits: Limits) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-check-", ignore_cleanup_errors=True)
        self._deadline = time.monotonic() + limits.wall_seconds
        sandbox = Path(self._folder.name)
        (sandbox / "job.json").write_text(json.dumps(job), encoding="utf-8")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in finish
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        # A warning of Python names files of this machine; the learner sees it in the cell, where it is theirs.
        command = [sys.executable, "-I", "-W", "ignore", "-X", "utf8", str(_HERE / "child.py")]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=sandbox,
                env={**kept, **threads, "HOME": str(sandbox), "TMPDIR": str(sandbox)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            self._folder.cleanup()
            raise GraderError(f"Python could not be started for the check: {error}") from error

    def finish(self) -> Transcript:
        """Wait for the child until its time is up, end it, and return what it wrote.

        Raises:
            GraderError: the child failed before it reached the learner's code.
        """
        try:
            data, timed_out = self._read()
        finally:
            self._end()
        transcript = _parse(data)
        transcript.timed_out = timed_out
        if self._process.returncode == 3 or (not transcript.loaded and not data and not timed_out):
            self._raise_if_ours(transcript)
        self._errors.close()
        return transcript

    def abandon(self) -> None:
        """End the child at once; nobody wants its transcript any more."""
        self._deadline = 0.0
        self._end()
        self._errors.close()

    def _raise_if_ours(self, transcript: Transcript) -> None:
        self._errors.seek(0)
        lines = self._errors.read(20_000).decode(errors="replace").strip().splitlines()
        if lines and not transcript.loaded:
            self._errors.close()
            raise GraderError(f"the check could not start: {lines[-1]}")

    def _read(self) -> tuple[bytes, bool]:
        output = self._process.stdout
        assert output is not None, "the child was started with a pipe"
        chunks: list[bytes] = []
        total = 0
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return b"".join(chunks), True
                if not selector.select(left):
                    continue
                chunk = os.read(output.fileno(), 1 << 16)
                if not chunk or total > _TRANSCRIPT_BYTES:
                    return b"".join(chunks), False
                chunks.append(chunk)
                total += len(chunk)

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None and not self._left_by_itself():
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()

    def _left_by_itself(self) -> bool:
        """Whether the child, whose output has ended, also ends within half a second."""
        if time.monotonic() >= self._deadline:
            return False
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return False
        return True


def _parse(data: bytes) -> Transcript:
    """The transcript from the child's lines; anything of another shape is ignored."""
    transcript = Transcript()
    for raw in data.split(b"\n"):
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if not isinstance(line, list) or not line:
            continue
        match line:
            case ["loaded", None]:
                transcript.loaded = True
            case ["loaded", dict() as problem]:
                transcript.loaded, transcript.problem = True, problem
            case ["case", int() as index]:
                transcript.step = index
            case ["did", int() as index, list() as events, (dict() | None) as ending]:
                # Only the first word about a case counts, and only after the child began it.
                if index == transcript.step and index not in transcript.seen:
                    transcript.seen[index] = Seen(events, ending)
            case ["end", dict() as ending]:
                transcript.ended = True
                transcript.tampered = [str(name)[:80] for name in _list(ending.get("tampered"))]
                transcript.printed = ending.get("printed") if isinstance(ending.get("printed"), int) else 0
                transcript.printed_text = str(ending.get("text", ""))[:2000]
    return transcript


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
