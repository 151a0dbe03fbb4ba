"""The child of a check: runs one learner source on given inputs and writes a transcript.

Started as `python -I child.py`, it reads two lines of JSON. The first says which exercise; the child loads
what that takes and waits. The second, which may come much later, names a folder of its own, where
`order.json` holds source and inputs. It knows the inputs and no answers. The transcript goes to the descriptor that
was standard output at the start, one JSON list a line: ["loaded", …], ["case", i], ["did", i, events, …],
["end", …]. Standard library only; the engine is imported from the path the job names, without the parts
that are being graded. A job that brings a `fork_server` makes this process one, between the two lines: then each of
its children is a child as said here, whose second line comes from its own standard input.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import json
import linecache
import os
import shutil
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]  # where there is none nothing is asked of it

LEARNER_FILE = "<your code>"
Limit = Callable[[float], contextlib.AbstractContextManager[None]]  # by a clock, or by what has been done
_RELOAD_SECONDS = 1.0
_MANY_RAISED = 100
_MUCH_MEMORY = 500 << 20
_NOTED_BY_PYTHON = frozenset({"__slotnames__", "_abc_impl", "__annotations__", "__annotations_cache__"})
"""What copy, abc and a look at annotations write into a class on their own."""


class StepTimeoutError(BaseException):
    """One case took too long; a BaseException so that `except Exception` does not swallow it."""


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
    except BaseException:  # noqa: BLE001 - a learner's exception may fail to print itself, in any way
        text = "(the exception cannot be printed)"
    if isinstance(error, SyntaxError):
        text = str(error.msg)  # the rest of it names a file that the learner does not know
    described = {"type": type(error).__name__, "text": text[:400], "line": line}
    if isinstance(error, NameError) and isinstance(error.name, str):
        described["name"] = error.name
    if isinstance(error, StepTimeoutError) and _has_taken_much():
        described["grows"] = True
    return described


def _has_taken_much() -> bool:
    """Whether this process has had a large part of the memory that it may have."""
    if resource is None:
        return False
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > _MUCH_MEMORY


def _as_plain(value: object) -> dict[str, Any]:
    """An exception that a driver caught and wrote down; nothing else has a plain form."""
    if isinstance(value, BaseException):
        return describe_error(value)
    raise TypeError


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


def find_part(job: dict[str, Any], module: Any, registered: list[tuple[str, object]], limit: Limit) -> dict[str, Any]:
    """Which object of the learner's module is the part: {"part": …} or {"problem": …, "names": …}."""
    decorated = [_last_of(module, part) for exercise, part in registered if exercise == job["exercise"]]
    unique = list({id(part): part for part in decorated}.values())
    own = {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and callable(value)
    }
    if not unique:
        unique = _undecorated(job, module, own)
    if len(unique) > 1:
        return {"problem": "ambiguous", "names": sorted(getattr(part, "__name__", "?") for part in unique)}
    if any(_is_of_engine(job, each) for each in unique or vars(module).values()):
        return {"problem": "reference_part"}
    if not unique:
        others = sorted({exercise for exercise, _ in registered})
        return {"problem": "absent", "names": sorted(own), "others": others}
    part = unique[0]
    if job["kind"] == "class":
        if not isinstance(part, type):
            return {"problem": "not_a_class", "names": [type(part).__name__]}
        missing = _missing(job, part, limit)
        if missing:
            return {"problem": "missing_method", "names": missing}
    return {"part": part}


def _is_of_engine(job: dict[str, Any], value: Any) -> bool:
    """Whether it is the part of the engine that is to be written, or what stands in its place."""
    if type(value).__name__ == "_ReferenceMeta" or getattr(value, "is_stand_in", False) is True:
        return True
    return getattr(value, "__module__", None) in job["modules"] and getattr(value, "__name__", None) == job["part"]


def _last_of(module: types.ModuleType, part: Any) -> Any:
    """The class that stands in the module under the same name in the end; a decorator above may have made another."""
    last = vars(module).get(getattr(part, "__name__", ""))
    is_remade = isinstance(part, type) and isinstance(last, type) and last.__qualname__ == part.__qualname__
    return last if is_remade else part


def _missing(job: dict[str, Any], part: type, limit: Limit) -> list[str]:
    """The methods that the class has not written; an object may have them where its class has not."""
    missing = [name for name in job["methods"] if not _is_written(part, name)]
    if missing and not set(missing) & set(dir(part)):
        try:
            with limit(job["limits"]["case_seconds"]):
                made = part()
                missing = [name for name in missing if not callable(getattr(made, name, None))]
        except Exception:  # noqa: BLE001 - what it raises when it is made is told by the first case
            return missing
    return missing


def _is_written(part: type, method: str) -> bool:
    """Whether the class has a method of its own: no protocol's empty one, no abstract one, no stand-in for ours."""
    owner = next((cls for cls in part.__mro__ if method in vars(cls)), None)
    if owner is None or vars(owner).get("_is_protocol", False):
        return False
    found = vars(owner)[method]
    called = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    if getattr(called, "is_stand_in", False) or getattr(called, "__isabstractmethod__", False):
        return False
    return isinstance(found, property) or callable(getattr(part, method))


def _undecorated(job: dict[str, Any], module: types.ModuleType, own: dict[str, Any]) -> list[Any]:
    if job["kind"] == "class":
        classes = [v for v in own.values() if isinstance(v, type) and hasattr(v, job["member"])]
        # A base class with helpers is not the answer; the class nobody derives from is.
        found = [c for c in classes if not any(c is not other and issubclass(other, c) for other in classes)]
        return list({id(c): c for c in found}.values())
    if callable(named := vars(module).get(job["member"])):
        return [named]
    return [v for v in own.values() if isinstance(v, types.FunctionType)]


def changed_attributes(watched: list[tuple[type, dict[str, Any]]]) -> list[str]:
    """Names of the attributes that are not what they were, such as `Buffer.retain`."""
    return sorted(
        f"{cls.__name__}.{name}"
        for cls, before in watched
        for name in {*before, *vars(cls)} - _NOTED_BY_PYTHON
        if before.get(name) is not vars(cls).get(name)
    )


def _run_with(name: str, source: str, driver: str, names: dict[str, Any]) -> None:
    """Run a driver that imports a module of the course, of which no trace stays."""
    module, package = types.ModuleType(name), types.ModuleType(name.rpartition(".")[0])
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102 - our own source
    sys.modules.update({name: module, package.__name__: package})
    exec(compile(driver, "<driver>", "exec"), names)  # noqa: S102 - our own source
    del sys.modules[name], sys.modules[package.__name__]


class Child:
    """One run: load the driver, load the learner's source, run every case, write the transcript."""

    def __init__(self, job: dict[str, Any], limit: Limit = time_limit) -> None:
        self.job, self._limit = job, limit
        self.stand_ins: dict[str, Any] = {"__name__": "stand_ins"}
        exec(compile(job["stand_ins"], "<stand_ins>", "exec"), self.stand_ins)  # noqa: S102 - our own source
        self.transcript = 1
        self.printed = self.stand_ins["Printed"]()
        self.registered: list[tuple[str, object]] = []
        self.code: types.CodeType | None = None
        self.driver: dict[str, Any] = {}
        self.watched: list[tuple[type, dict[str, Any]]] = []
        self.load_seconds = 0.0
        self._load_numpy: Callable[[], None] = lambda: None
        self._write = os.write
        self._encode = json.JSONEncoder(separators=(",", ":"), default=_as_plain).encode

    def say(self, *items: object) -> None:
        """Write one line of the transcript."""
        data = (self._encode(list(items)) + "\n").encode()
        while data:
            data = data[self._write(self.transcript, data) :]

    def run(self) -> None:
        """Load and run everything; every end of the learner's code becomes a line."""
        if "numpy" in self.job["source"]:
            self._load_numpy()  # before the clock starts
        sys.stdout = sys.stderr = self.printed
        started = time.process_time()
        part, problem = self._load_learner()
        self.load_seconds = time.process_time() - started
        self.say("loaded", problem)
        if problem is None:
            tampered = self._run_cases(self.driver, part)
            self.say("end", {"tampered": tampered, "printed": self.printed.count, "text": self.printed.getvalue()})

    def load_driver(self) -> None:
        """Load what runs a case; slow, and the same for every source."""
        stripped = self.job["modules"]
        sys.meta_path.insert(0, self.stand_ins["StrippedModules"](stripped))
        sys.path.insert(0, self.job["engine_root"])
        sys.dont_write_bytecode = True
        sys.modules["course"] = self.stand_ins["course_stand_in"](self.registered)
        self._load_numpy = self.stand_ins["put_off"]("numpy")  # half the time it takes to get ready; few cases use it
        importlib.import_module("refimpl")  # this one, also for a learner's own import later
        driver: dict[str, Any] = {"__name__": "driver"}
        sys.modules["driver"] = types.ModuleType("driver")
        _run_with("course.grading.kinds", self.job["kinds"], self.job["driver"], driver)
        for name in self.job["loads"]:
            importlib.import_module(name)
        self.watched = [(cls, dict(vars(cls))) for cls in driver.get("WATCHED", ())]  # before any learner code runs
        sys.path.remove(self.job["engine_root"])
        sys.path.append(self.job["engine_root"])
        self.driver = driver

    def _load_learner(self) -> tuple[Any, dict[str, Any] | None]:
        source = self.job["source"]
        lines = io.StringIO(source, newline=None).readlines()  # as Python counts them
        linecache.cache[LEARNER_FILE] = (len(source), None, lines, LEARNER_FILE)
        self.registered.clear()
        module = types.ModuleType("answer")
        sys.modules["answer"] = module
        stand_in = sys.modules["course"].__dict__
        module.__dict__.update({k: v for k, v in stand_in.items() if not k.startswith("__")})
        try:
            with self._limit(self.job["limits"]["case_seconds"]):
                if self.code is None:
                    self.code = compile(source, LEARNER_FILE, "exec", dont_inherit=True)
                exec(self.code, module.__dict__)  # noqa: S102 - what this process is for
        except BaseException as error:  # noqa: BLE001 - sys.exit and endless loops included
            return None, {"problem": self._kind_of(error), "error": describe_error(error)}
        found = find_part(self.job, module, self.registered, self._limit)
        return (found["part"], None) if "part" in found else (None, found)

    def _kind_of(self, error: BaseException) -> str:
        if isinstance(error, StepTimeoutError):
            return "timeout"
        if isinstance(error, self.stand_ins["PrintsEndlesslyError"]):
            return "prints"
        if isinstance(error, self.stand_ins["ReferencePartError"]):
            return "reference_part"
        return "fenced" if type(error).__name__ in ("FenceError", "FenceImportError") else "raised"

    def _run_cases(self, driver: dict[str, Any], part: Any) -> list[str]:
        limit = self.job["limits"]["case_seconds"]
        clock, deadline = time.process_time, time.process_time() + self.job["limits"]["run_seconds"]
        starts, num_raised = set(self.job["starts"]), 0
        # State that outlives a case would be blamed on the wrong rule; so each case gets the code
        # afresh, or each rule where loading is too slow for that.
        is_kept = self.job["is_kept"]
        each_case = self.load_seconds * len(self.job["cases"]) < _RELOAD_SECONDS
        for index, case in enumerate(self.job["cases"]):
            self.say("case", index)
            if index and not is_kept and (each_case or index in starts):
                again, problem = self._load_learner()
                part = part if problem else again
            events: list[Any] = []
            ending = None
            try:
                with self._limit(limit):
                    driver["run_case"](part, case, events)
            except BaseException as error:  # noqa: BLE001 - whatever the learner's code raised
                ending = {"problem": self._kind_of(error), "error": describe_error(error)}
            try:
                self.say("did", index, events, ending)
            except (TypeError, ValueError):
                self.say("did", index, [], {"problem": "not_plain", "error": None})
            num_raised += ending is not None
            is_stopped = ending is not None and ending["problem"] in ("timeout", "prints")
            if is_stopped or num_raised > _MANY_RAISED or clock() > deadline:
                break
        return changed_attributes(self.watched)


def _boundary(source: str) -> Callable[..., None]:
    """What puts the system's boundary up; no trace of it stays where the learner's code could find it."""
    boundary: dict[str, Any] = {"__name__": "boundary"}
    exec(compile(source, "<boundary>", "exec"), boundary)  # noqa: S102 - our own source
    raise_boundary: Callable[..., None] = boundary["raise_boundary"]
    for name in ("ctypes", "_ctypes", "ctypes._endian"):
        sys.modules.pop(name, None)
    return raise_boundary


def _forked(job: dict[str, Any]) -> int:
    """The parent's process id. Where forking is asked for, this returns in each forked child, and there alone."""
    if "fork_server" not in job:
        return os.getppid()
    server: dict[str, Any] = {"__name__": "fork_server"}
    exec(compile(job.pop("fork_server"), "<fork_server>", "exec"), server)  # noqa: S102 - our own source
    parent: int = server["serve"](job.pop("control"), job.pop("parent"))
    return parent


def _leave_with_parent(parent: int, folder: str) -> None:
    """End this process soon after the parent that looks after it has gone, and its folder with it."""
    get_parent, leave, sleep, remove = os.getppid, os._exit, time.sleep, shutil.rmtree

    def watch() -> None:
        while get_parent() == parent:
            sleep(0.5)
        remove(folder, ignore_errors=True)
        leave(4)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Get ready, wait for a source, close everything the learner does not need, run, and leave at once."""
    job = json.loads(sys.stdin.buffer.readline() or b"null")
    if job is None:
        os._exit(0)
    child = Child(job)
    fence: dict[str, Any] = {"__name__": "fence"}
    exec(compile(job["fence"], "<fence>", "exec"), fence)  # noqa: S102 - our own source
    raise_boundary = _boundary(job["boundary"]) if job["has_boundary"] else None
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, _on_alarm)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        child.load_driver()
        parent = _forked(job)
        child.transcript = os.dup(1)
        here = json.loads(sys.stdin.buffer.readline() or b"null")
        if here is None:  # it was kept ready, and nobody needs it any more
            os._exit(0)
        os.chdir(here)
        os.environ.update(HOME=here, TMPDIR=here)
        with open("order.json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 10 ms here
            job.update(json.load(file))
        os.remove("order.json")  # noqa: PTH107
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):
            os.dup2(null, descriptor)
        os.close(null)
        fence["limit_resources"](job["limits"])
        readable = [sys.prefix, sys.base_prefix, sys.exec_prefix, job["engine"]]
        if raise_boundary is not None:
            raise_boundary(here, readable, [job["engine_root"]], job["denied"])
        # A thread within the boundary; until here the pipe tells when the parent has gone.
        _leave_with_parent(parent, here)
        if raise_boundary is None:
            fence["limit_processes"]()
        fence["raise_fence"](here, readable, [job["engine_root"]], job["denied"], job["native"])
        builtins.input = lambda *_: (_ for _ in ()).throw(EOFError("a check has no keyboard"))
        child.run()
    except BaseException:  # noqa: BLE001 - our own mistake: the parent reads it and says so
        traceback.print_exc(file=sys.__stderr__)
        os._exit(3)
    os._exit(0)  # threads of the learner's code do not keep a check waiting


if __name__ == "__main__":
    main()
