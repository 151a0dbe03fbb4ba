"""The child of a check: runs one learner source on given inputs and writes a transcript.

Started as `python -I child.py` in a folder of its own that holds `job.json` and nothing else. It
knows the inputs and no answers. The transcript goes to the descriptor that was standard output at
the start, one JSON list a line: ["loaded", …], ["case", i], ["did", i, events, …], ["end", …].
Standard library only; the engine is imported from the path the job names, without the parts that
are being graded.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import linecache
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator
from typing import Any

LEARNER_FILE = "<your code>"
_PRINT_LIMIT = 2_000
_RELOAD_SECONDS = 1.0
_MANY_RAISED = 100


class StepTimeoutError(BaseException):
    """One case took too long; a BaseException so that `except Exception` does not swallow it."""


class _Printed(io.StringIO):
    """Standard output of learner code: the first characters are kept, all are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def write(self, text: str) -> int:
        room = _PRINT_LIMIT - self.count
        self.count += len(text)
        if room > 0:
            super().write(text[:room])
        return len(text)


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: type, text, and the deepest line of the learner's own code."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == LEARNER_FILE:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    line = lines[-1] if lines else None
    if isinstance(error, StepTimeoutError) and lines:
        line = lines[0]  # deeper ones depend on the moment the clock rang
    if isinstance(error, SyntaxError) and error.filename == LEARNER_FILE:
        line = error.lineno
    try:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    except Exception:  # noqa: BLE001 - a learner's exception may fail to print itself
        text = "(the exception cannot be printed)"
    described = {"type": type(error).__name__, "text": text[:400], "line": line}
    if isinstance(error, NameError) and isinstance(error.name, str):
        described["name"] = error.name
    return described


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise StepTimeoutError after so many seconds of processor time, again and again."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.25)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _on_alarm(_signal: int, _frame: object) -> None:
    raise StepTimeoutError


def find_part(job: dict[str, Any], module: types.ModuleType, registered: list[tuple[str, object]]) -> dict[str, Any]:
    """Which object of the learner's module is the part: {"part": …} or {"problem": …, "names": …}."""
    decorated = [part for exercise, part in registered if exercise == job["exercise"]]
    unique = list({id(part): part for part in decorated}.values())
    own = {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and callable(value)
    }
    if not unique:
        unique = _undecorated(job, own)
    if len(unique) > 1:
        return {"problem": "ambiguous", "names": sorted(getattr(part, "__name__", "?") for part in unique)}
    if not unique:
        others = sorted({exercise for exercise, _ in registered})
        return {"problem": "absent", "names": sorted(own), "others": others}
    part = unique[0]
    if job["kind"] == "class":
        if not isinstance(part, type):
            return {"problem": "not_a_class", "names": [type(part).__name__]}
        missing = [name for name in job["methods"] if not _is_written(part, name)]
        if missing:
            return {"problem": "missing_method", "names": missing}
    return {"part": part}


def _is_written(part: type, method: str) -> bool:
    """Whether the class has a method of its own; a protocol's empty one does not count."""
    owner = next((cls for cls in part.__mro__ if method in vars(cls)), None)
    return owner is not None and not vars(owner).get("_is_protocol", False) and callable(getattr(part, method))


def _undecorated(job: dict[str, Any], own: dict[str, Any]) -> list[Any]:
    if job["kind"] == "class":
        classes = [v for v in own.values() if isinstance(v, type) and hasattr(v, job["member"])]
        # A base class with helpers is not the answer; the class nobody derives from is.
        found = [c for c in classes if not any(c is not other and issubclass(other, c) for other in classes)]
        return list({id(c): c for c in found}.values())
    if job["member"] in own:
        return [own[job["member"]]]
    return [v for v in own.values() if isinstance(v, types.FunctionType)]


class Child:
    """One run: load the job, load the learner's source, run every case, write the transcript."""

    def __init__(self, job: dict[str, Any], transcript: int) -> None:
        self.job = job
        self.stand_ins: dict[str, Any] = {"__name__": "stand_ins"}
        exec(compile(job["stand_ins"], "<stand_ins>", "exec"), self.stand_ins)  # noqa: S102 - our own source
        self.transcript = transcript
        self.printed = _Printed()
        self.registered: list[tuple[str, object]] = []
        self.code: types.CodeType | None = None
        self.load_seconds = 0.0
        self._write = os.write
        self._encode = json.JSONEncoder(separators=(",", ":")).encode

    def say(self, *items: object) -> None:
        """Write one line of the transcript."""
        data = (self._encode(list(items)) + "\n").encode()
        while data:
            data = data[self._write(self.transcript, data) :]

    def run(self) -> None:
        """Load and run everything; every end of the learner's code becomes a line."""
        driver = self._load_driver()
        sys.stdout = sys.stderr = self.printed
        started = time.process_time()
        part, problem = self._load_learner()
        self.load_seconds = time.process_time() - started
        self.say("loaded", problem)
        if problem is None:
            tampered = self._run_cases(driver, part)
            self.say("end", {"tampered": tampered, "printed": self.printed.count, "text": self.printed.getvalue()})

    def _load_driver(self) -> dict[str, Any]:
        stripped = self.job["modules"]
        sys.meta_path.insert(0, self.stand_ins["StrippedModules"](stripped))
        sys.path.insert(0, self.job["engine_root"])
        sys.dont_write_bytecode = True
        sys.modules["course"] = self.stand_ins["course_stand_in"](self.registered)
        driver: dict[str, Any] = {"__name__": "driver"}
        sys.modules["driver"] = types.ModuleType("driver")
        exec(compile(self.job["driver"], "<driver>", "exec"), driver)  # noqa: S102 - our own source
        driver["guard"] = driver["Guard"]()  # before any learner code runs
        sys.path.remove(self.job["engine_root"])
        sys.path.append(self.job["engine_root"])
        return driver

    def _load_learner(self) -> tuple[Any, dict[str, Any] | None]:
        source = self.job["source"]
        lines = source.splitlines(keepends=True)
        linecache.cache[LEARNER_FILE] = (len(source), None, lines, LEARNER_FILE)
        self.registered.clear()
        module = types.ModuleType("answer")
        sys.modules["answer"] = module
        stand_in = sys.modules["course"].__dict__
        module.__dict__.update({k: v for k, v in stand_in.items() if not k.startswith("__")})
        try:
            with time_limit(self.job["limits"]["case_seconds"]):
                if self.code is None:
                    self.code = compile(source, LEARNER_FILE, "exec", dont_inherit=True)
                exec(self.code, module.__dict__)  # noqa: S102 - what this process is for
        except BaseException as error:  # noqa: BLE001 - sys.exit and endless loops included
            return None, {"problem": self._kind_of(error), "error": describe_error(error)}
        found = find_part(self.job, module, self.registered)
        if "part" in found:
            return found["part"], None
        return None, found

    def _kind_of(self, error: BaseException) -> str:
        if isinstance(error, StepTimeoutError):
            return "timeout"
        if isinstance(error, self.stand_ins["ReferencePartError"]):
            return "reference_part"
        return "fenced" if type(error).__name__ in ("FenceError", "FenceImportError") else "raised"

    def _run_cases(self, driver: dict[str, Any], part: Any) -> list[str]:
        limit = self.job["limits"]["case_seconds"]
        clock, deadline = time.process_time, time.process_time() + self.job["limits"]["run_seconds"]
        starts, num_raised = set(self.job["starts"]), 0
        # State that outlives a case would be blamed on the wrong rule; so each case gets the code
        # afresh, or each rule where loading is too slow for that.
        each_case = self.load_seconds * len(self.job["cases"]) < _RELOAD_SECONDS
        for index, case in enumerate(self.job["cases"]):
            self.say("case", index)
            if index and (each_case or index in starts):
                again, problem = self._load_learner()
                part = part if problem else again
            events: list[Any] = []
            ending = None
            try:
                with time_limit(limit):
                    driver["run_case"](part, case, events)
            except BaseException as error:  # noqa: BLE001 - whatever the learner's code raised
                ending = {"problem": self._kind_of(error), "error": describe_error(error)}
            try:
                self.say("did", index, events, ending)
            except (TypeError, ValueError):
                self.say("did", index, [], {"problem": "not_plain", "error": None})
            num_raised += ending is not None
            if (ending and ending["problem"] == "timeout") or num_raised > _MANY_RAISED or clock() > deadline:
                break
        return list(driver["guard"].tampered())


def _leave_with_parent() -> None:
    """End this process soon after the parent that reads its transcript has gone."""
    parent = os.getppid()
    get_parent, leave, sleep = os.getppid, os._exit, time.sleep

    def watch() -> None:
        while get_parent() == parent:
            sleep(0.5)
        leave(4)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Read the job, close everything the learner does not need, run, and leave at once."""
    here = os.getcwd()  # noqa: PTH109
    with open("job.json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 10 ms here
        job = json.load(file)
    os.remove("job.json")  # noqa: PTH107
    transcript = os.dup(1)
    fence: dict[str, Any] = {"__name__": "fence"}
    exec(compile(job["fence"], "<fence>", "exec"), fence)  # noqa: S102 - our own source
    child = Child(job, transcript)
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, _on_alarm)
    _leave_with_parent()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    fence["limit_resources"](job["limits"])
    readable = [sys.prefix, sys.base_prefix, sys.exec_prefix, job["engine"]]
    fence["raise_fence"](here, readable, [job["engine_root"]], job["denied"])
    builtins.input = lambda *_: (_ for _ in ()).throw(EOFError("a check has no keyboard"))
    try:
        child.run()
    except BaseException:  # noqa: BLE001 - our own mistake: the parent reads it and says so
        traceback.print_exc(file=sys.__stderr__)
        os._exit(3)
    os._exit(0)  # threads of the learner's code do not keep a check waiting


if __name__ == "__main__":
    main()
