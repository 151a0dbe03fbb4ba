"""The judge in a process of its own, for notebooks: the kernel asks, plain data comes back.

The kernel is where learner code has run, so nothing in it can be trusted with a verdict. The process stays
for the next check, with everything loaded and a child ready, so that an answer comes at once; it ends when the kernel
does, or when nobody has asked it anything for a while.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from course.curriculum.languages import VARIABLE, language
from course.grading.report import Report, RuleResult
from course.grading.rules import RuleStatus, Status
from course.grading.runner import Grader, GraderError
from course.output import let_go
from course.places import IN_A_BROWSER

__all__ = ["JudgeHere", "JudgeProcess", "judge_apart", "prepare", "report_from_plain", "report_to_plain"]

_ROOT = Path(__file__).parent.parent.parent
_START = "import sys; sys.path.insert(0, sys.argv[1]); from course.grading.remote import main; main()"
_IDLE_SECONDS = 600.0


def report_to_plain(report: Report) -> dict[str, Any]:
    """A report as JSON-ready data, with what `show` needs beside the public form."""
    extra = {"printed": report.printed, "printed_text": report.printed_text, "trace": report.trace,
             "ended": [rule.ended.value for rule in report.rules]}  # fmt: skip
    return {**report.as_json(), **extra}


def report_from_plain(data: Mapping[str, Any]) -> Report:
    """The report from its plain form; findings are not carried over, their messages are."""
    rules = [
        RuleResult(rule["id"], rule["title"], RuleStatus(rule["status"]), rule["message"], Status(ended))
        for rule, ended in zip(data["rules"], data["ended"], strict=True)
    ]
    return Report(
        data["exercise"],
        Status(data["status"]),
        data["seed"],
        data["vectors"],
        data["code_hash"],
        rules,
        data["printed"],
        data["printed_text"],
        trace=data["trace"],
    )


class JudgeProcess:
    """A judge in a process of its own, started when it is first asked. One question at a time."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._language = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = _Lines(-1)
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def ask(self, order: Mapping[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """Its answer to `order`; an interrupt ends the process and what it was doing.

        Raises:
            GraderError: the process could not do its work.
        """
        with self._lock:
            try:
                answer = self._answer(order, timeout_seconds)
            except BaseException:
                self.close()
                raise
        if "trouble" in answer:
            raise GraderError(answer["trouble"])
        return answer

    def tell(self, order: Mapping[str, Any]) -> None:
        """Give it an order that has no answer; does not wait, and trouble is left for the next question."""
        with self._lock, contextlib.suppress(OSError, GraderError):
            self._send(order)

    def close(self) -> None:
        """End the process: gently, so that it ends its child and takes away its folder; then for certain."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None, "the process was started with pipes"
                pipe.close()

    def _answer(self, order: Mapping[str, Any], timeout_seconds: float) -> dict[str, Any]:
        line = self._line(order, timeout_seconds, is_last=False) or self._line(order, timeout_seconds, is_last=True)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise GraderError(f"the check ended without an answer: {line[:80]!r}") from error
        return answer

    def _line(self, order: Mapping[str, Any], timeout_seconds: float, *, is_last: bool) -> bytes:
        """The line that answers an order; b"" if the process had ended and this was not the last try."""
        process = self._send(order)
        line = self._answers.next(timeout_seconds)
        if line is None:
            raise GraderError(f"the check did not answer within {timeout_seconds:.0f} seconds")
        if not line:
            self._process = None  # it had ended, idle for long or killed; a second try starts another
            if process.wait() or is_last:
                raise GraderError(f"the check ended without an answer (exit status {process.wait()})")
        return line

    def _send(self, order: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """Write the order to the process, started if there is none (any more)."""
        text = json.dumps(order).encode() + b"\n"
        if self._language != language():
            self.close()  # it would go on in another one
        for process in (self._process, None):
            if process is None or process.poll() is not None or self._owner != os.getpid():
                process = self._process = self._start()
            assert process.stdin is not None, "the process was started with a pipe"
            try:
                process.stdin.write(text)
                process.stdin.flush()
            except OSError:  # it ended just now
                continue
            return process
        raise GraderError("the check could not be started")

    def _start(self) -> subprocess.Popen[bytes]:
        self._owner, self._language = os.getpid(), language()
        command = [sys.executable, "-I", "-X", "utf8", "-c", _START, str(_ROOT), str(self._idle_seconds)]
        try:
            # In a session of its own: an interrupt is meant for whoever asked, and `ask` passes it on.
            process = subprocess.Popen(
                command,
                env={**os.environ, VARIABLE: self._language},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GraderError(f"the check could not be started: {error}") from error
        assert process.stdout is not None, "the process was started with a pipe"
        self._answers = _Lines(process.stdout.fileno())
        return process


class _Lines:
    """The lines of a pipe, each within a time; a file object's own buffer would hide lines from `select`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self, seconds: float) -> bytes | None:
        """The next line; b"" at the end, None if none came in time."""
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return None
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                return b""
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class JudgeHere:
    """A judge in this process, for a browser, which has no other. It answers as the other one does."""

    def __init__(self) -> None:
        self._graders: dict[str, Grader] = {}

    def ask(self, order: Mapping[str, Any], _timeout_seconds: float) -> dict[str, Any]:
        """Its answer to `order`, however long that takes.

        Raises:
            GraderError: a child could not do its work.
        """
        answer = _answer(order, self._graders)
        assert answer is not None, "a question has an answer"
        if "trouble" in answer:
            raise GraderError(answer["trouble"])
        return {"reports": json.loads(json.dumps(answer["reports"]))}

    def tell(self, order: Mapping[str, Any]) -> None:
        """Give it an order that has no answer."""
        _answer(order, self._graders)


_JUDGE = JudgeHere() if IN_A_BROWSER else JudgeProcess()


def judge_apart(
    exercise: str, sources: Sequence[str | None], seed: int, names: Mapping[str, str] | None = None
) -> list[Report]:
    """Judge one or several sources in the judge's process; reports come back in the same order.

    Raises:
        GraderError: the process could not do its work.
    """
    order = {"exercise": exercise, "sources": list(sources), "seed": seed, "names": dict(names or {})}
    answer = _JUDGE.ask(order, 30 + 15 * len(sources))
    return [report_from_plain(each) for each in answer["reports"]]


def prepare(exercise: str, seed: int) -> None:
    """Have the judge's process ready for a check of this exercise."""
    _JUDGE.tell({"prepare": exercise, "seed": seed})


# -- the other end ---------------------------------------------------------------------------------


def main() -> None:
    """Answer orders from standard input until it ends, nobody asks any more, or somebody ends us."""
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    idle_seconds = float(sys.argv[2])
    graders: dict[str, Grader] = {}
    try:
        for order in _orders(idle_seconds):
            answer = _answer(order, graders)
            if answer is not None:
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
    except BrokenPipeError:  # whoever asked has gone
        let_go(sys.stdout)
    finally:
        for grader in graders.values():
            grader.close()


def _leave_with(parent: int) -> None:
    """End in the middle of a check, too, when whoever asked has gone; `_leave` cleans up."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _orders(idle_seconds: float) -> Iterator[dict[str, Any]]:
    lines = _Lines(sys.stdin.fileno())
    while line := lines.next(idle_seconds):
        yield json.loads(line)


def _answer(order: Mapping[str, Any], graders: dict[str, Grader]) -> dict[str, Any] | None:
    from course.curriculum.seams import child_job
    from course.grading.judge import judge, warm_up

    name = order.get("prepare") or order["exercise"]
    try:
        if name not in graders:
            for other in graders.values():
                other.close()  # one child waits, not one for each exercise
            graders[name] = Grader(child_job(name), keeps_one_ready=True)
        if "prepare" in order:
            graders[name].prepare()
            warm_up(name, order["seed"])
            return None
        reports = [judge(name, source, order["seed"], order["names"], graders[name]) for source in order["sources"]]
    except GraderError as error:
        return None if "prepare" in order else {"trouble": str(error)}
    return {"reports": [report_to_plain(report) for report in reports]}


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
