"""The parent's half of a run: give the child a folder of its own, read its transcript, end it.

Whatever the child does, the parent gets back a `Transcript`; lines that are not what a child writes
are dropped, and a child that says too much or too long is ended with its whole process group.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from course.grading import boundary
from course.grading.children import Process, StartError, fresh, started
from course.grading.rules import Case
from course.grading.transcripts import Transcript, parsed

__all__ = ["Grader", "GraderError", "Host", "Limits", "Working", "lent", "work_in"]

_HERE = Path(__file__).parent
_TRANSCRIPT_BYTES = 32 << 20
_LEAST_WORK_SECONDS = 0.05
_NOT_CLOSED = (
    "the check has not run your code, because this system refused to keep it to a folder of its own: {said}. "
    "Often a container does that; sluice doctor tries it again."
)
_LEAVES_SECONDS = 0.5
_OUT_OF_TIME = (-signal.SIGKILL, -getattr(signal, "SIGXCPU", signal.SIGKILL))
"""How the system ends a child for the processor time it took: in C code no clock of ours rings."""
_PATIENCE = 3
_KEPT = 2
"""So many times as long as fresh code has the code that is kept: what still has no end does more and more."""


class GraderError(RuntimeError):
    """The grader itself could not work on this machine; says nothing about the learner's code."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. `wall_seconds` is the parent's clock, the others are the child's own.

    A child that is at work when the parent's clock rings has up to three times as long: then the machine is slow.
    """

    wall_seconds: float = 10.0
    case_seconds: float = 2.5
    run_seconds: float = 9.0
    cpu_seconds: int = 12
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 20

    def as_plain(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__slots__}

    def times(self, factor: int) -> Limits:
        """So many times as long for everything that is measured in seconds."""
        names = ("wall_seconds", "case_seconds", "run_seconds", "cpu_seconds")
        return replace(self, **{name: factor * getattr(self, name) for name in names})


class Working(Protocol):
    """One child of a check, wherever it is at work; until `send` it is getting ready."""

    def send(self, order: Mapping[str, Any], limits: Limits) -> None:
        """Give it its source, the inputs and its limits, which the order has as well.

        Raises:
            OSError: the child is gone.
        """

    def finish(self) -> Transcript:
        """Wait for it until its time is up, end it, and return what it wrote.

        Raises:
            GraderError: it failed before it reached the learner's code.
        """

    def abandon(self) -> None:
        """End it at once; nobody wants its transcript any more."""


Host = Callable[[Mapping[str, Any]], Working]
"""What starts a child for a job."""

_elsewhere: list[Host] = []


def work_in(host: Host) -> None:
    """From now on have children at work there, wherever nobody says otherwise: a browser has no processes."""
    _elsewhere[:] = [host]


def lent() -> dict[str, str]:
    """The sources that every child is handed with its job, because it cannot import `course`."""
    return {name: (_HERE / f"{name}.py").read_text(encoding="utf-8") for name in ("fence", "stand_ins", "kinds")}


class Grader:
    """Starts children for one exercise.

    Args:
        job: what does not change between runs: exercise, kind, member, methods, driver, loads, modules,
            engine paths (see `course.curriculum.seams.child_job`).
        limits: what each run may use.
        keeps_one_ready: whether the next child is started while the last one works, so that it has
            loaded everything when its source comes. Then `close` must be called.
        host: where children are at work; by default where `work_in` says, else each is a process of its own.
    """

    def __init__(
        self,
        job: Mapping[str, Any],
        limits: Limits | None = None,
        *,
        keeps_one_ready: bool = False,
        host: Host | None = None,
    ) -> None:
        self._limits = limits or Limits()
        host = host or (_elsewhere[0] if _elsewhere else None)
        self._host, self._job = (host, {**job, **lent()}) if host else (Run, _for_a_process(job))
        self._keeps_one_ready = keeps_one_ready
        self._ready: Working | None = None

    def start(self, source: str, cases: Sequence[Case], *, is_kept: bool = False) -> Working:
        """Start a child on `source`; the caller must call `finish` on what it gets.

        The code is loaded afresh for each case, unless it `is_kept`: then what it keeps meets the next one, and the
        child has twice as long.

        Raises:
            GraderError: no child could be started.
        """
        starts = [i for i, case in enumerate(cases) if not i or case.rule != cases[i - 1].rule]
        limits = self._limits.times(_KEPT) if is_kept else self._limits
        order = {"source": source, "cases": [case.ops for case in cases], "starts": starts,
                 "is_kept": is_kept, "limits": limits.as_plain()}  # fmt: skip
        run, self._ready = self._ready or self._host(self._job), None
        try:
            run.send(order, limits)
        except OSError:  # the one kept ready was ended by somebody
            run.abandon()
            run = self._host(self._job)
            run.send(order, limits)
        if self._keeps_one_ready:
            self.prepare()
        return run

    @contextlib.contextmanager
    def several(self) -> Iterator[None]:
        """Within it one child is kept ready, because several runs follow each other."""
        kept, self._keeps_one_ready = self._keeps_one_ready, True
        try:
            yield
        finally:
            self._keeps_one_ready = kept
            if not kept:
                self.close()

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """Within it a child gets ready for what is started next."""
        self.prepare()
        try:
            yield
        finally:
            if not self._keeps_one_ready:
                self.close()

    def prepare(self) -> None:
        """Have a child ready for the next source."""
        self._ready = self._ready or self._host(self._job)

    def close(self) -> None:
        """End the child that was kept ready."""
        if self._ready is not None:
            self._ready.abandon()
            self._ready = None


def _for_a_process(job: Mapping[str, Any]) -> dict[str, Any]:
    own = (_HERE / "boundary.py").read_text(encoding="utf-8")
    has_boundary = boundary.available() is not None
    return {**job, **lent(), "boundary": own, "has_boundary": has_boundary, "native": _native_folders()}


def _native_folders() -> list[str]:
    """Where compiled modules may come from: Python's own, and numpy's."""
    found = find_spec("numpy")
    assert found is not None, "the engine needs numpy"
    assert found.origin, "numpy has files"
    package = Path(found.origin).parent
    own = [path for path in (sysconfig.get_path("platstdlib"), sysconfig.get_config_var("DESTSHARED")) if path]
    return [*(str(Path(path) / "lib-dynload") for path in own), *own[1:], str(package), f"{package}.libs"]


class Run:
    """One child at work in its own temporary folder; until `send` it is getting ready."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._deadline = self._latest = math.inf
        self._busy: tuple[int, float] = (0, 0.0)
        self._was_killed = False
        self._order: tuple[Mapping[str, Any], Limits] | None = None
        self._start(started)

    def _start(self, how: Callable[[Mapping[str, Any]], Process]) -> None:
        try:
            self._process = how(self._job)
        except StartError as error:
            raise GraderError(str(error)) from error

    def send(self, order: Mapping[str, Any], limits: Limits) -> None:
        """Give the child its source, the inputs and its limits, which the order has as well; its clock starts here.

        Raises:
            OSError: the child is gone.
        """
        self._order = order, limits
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-check-", ignore_cleanup_errors=True)
        self._deadline = time.monotonic() + limits.wall_seconds
        self._latest = time.monotonic() + _PATIENCE * limits.wall_seconds
        self._process.works_in(self._folder.name)
        # In a file, because a pipe would make us wait until the child is ready; there is work to do meanwhile.
        (Path(self._folder.name) / "order.json").write_text(json.dumps(order), encoding="utf-8")
        self._process.order.write(json.dumps(self._folder.name).encode() + b"\n")
        self._process.order.close()

    def finish(self) -> Transcript:
        """Wait for the child until its time is up, end it, and return what it wrote.

        Raises:
            GraderError: the child failed before it reached the learner's code.
        """
        transcript = self._finish()
        if transcript is None:  # whoever forked the child was ended, and it with it; its code has done no harm
            assert self._order is not None, "it was sent"
            self._start(fresh)
            try:
                self.send(*self._order)
            except OSError as error:
                self.abandon()
                raise GraderError(f"the check could not start: {error}") from error
            transcript = self._finish()
            assert transcript is not None, "we have started it ourselves"
        return transcript

    def _finish(self) -> Transcript | None:
        """What the child wrote; `None` if it is lost."""
        try:
            data, timed_out = self._read()
        finally:
            code = self._end()
        if code is None:
            self._process.errors.close()
            return None
        transcript = parsed(data)
        transcript.timed_out = timed_out or (not self._was_killed and code in _OUT_OF_TIME)
        if code == 3 or (not transcript.loaded and not data and not timed_out):
            self._raise_if_ours(transcript)
        self._process.errors.close()
        return transcript

    def abandon(self) -> None:
        """End the child at once; nobody wants its transcript any more."""
        self._deadline = 0.0
        self._end()
        self._process.errors.close()

    def _raise_if_ours(self, transcript: Transcript) -> None:
        self._process.errors.seek(0)
        lines = self._process.errors.read(20_000).decode(errors="replace").strip().splitlines()
        if lines and not transcript.loaded:
            self._process.errors.close()
            kind, _, said = lines[-1].partition(": ")
            if kind == "boundary.BoundaryError":
                raise GraderError(_NOT_CLOSED.format(said=said))
            raise GraderError(f"the check could not start: {lines[-1]}")

    def _read(self) -> tuple[bytes, bool]:
        output = self._process.output
        chunks: list[bytes] = []
        total = 0
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                left = self._deadline - time.monotonic()
                if left <= 0 and not self._is_starved():
                    return b"".join(chunks), True
                if not selector.select(left):
                    continue
                chunk = os.read(output, 1 << 16)
                if not chunk or total > _TRANSCRIPT_BYTES:
                    return b"".join(chunks), False
                chunks.append(chunk)
                total += len(chunk)

    def _is_starved(self) -> bool:
        """Whether the child still works, on a machine too busy for it; then it has a second more, for a while.

        Its own clock counts processor time and ends what is endless; so a busy machine changes no message.
        """
        import psutil  # slow to load, and seldom asked

        pid = self._process.busy()
        try:
            times = psutil.Process(pid).cpu_times()
        except psutil.Error:
            return False
        (before, seconds), self._busy = self._busy, (pid, times.user + times.system)
        has_worked = before not in (0, pid) or self._busy[1] - seconds >= _LEAST_WORK_SECONDS
        if not has_worked or time.monotonic() > self._latest:
            return False
        self._deadline = time.monotonic() + 1.0
        return True

    def _end(self) -> int | None:
        """End the child, and its folder with it; its exit status, `None` if it is lost."""
        seconds = _LEAVES_SECONDS if time.monotonic() < self._deadline else 0.0
        self._was_killed = not self._process.has_left(seconds)
        code = self._process.end()
        if self._folder is not None:
            self._folder.cleanup()
        return code
