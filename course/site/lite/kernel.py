"""A kernel in a browser: what it does in another way than one on a machine.

A check runs in a worker of its own, as in the site's `try/`: core Pyodide and the engine without its reference parts.
What needs threads, processes, Spark or a package that a browser has not says so in a sentence, whichever cell it is in.
"""

from __future__ import annotations

import errno
import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from course.grading.runner import GraderError, Limits, work_in
from course.grading.transcripts import Transcript, parsed
from course.learner.answers import shell
from course.places import not_in_a_browser

__all__ = ["begin", "missing"]

_RUN_SECONDS = 600.0  # each case has its rounds; of time only the worker's keeper knows how it goes by
_ENGINE_THERE = "/course"  # where `check_worker.js` unpacks it
_FOLDERS_UP = "../../../../static/"  # from the kernel's own script, which is an extension's
_PACKAGES = {
    **dict.fromkeys(("pyspark", "pyarrow", "pandas", "py4j"), "Spark"),
    **dict.fromkeys(("psutil", "multiprocessing", "_multiprocessing", "cloudpickle", "cryptography"), "processes"),
    **dict.fromkeys(("numpy", "matplotlib", "networkx"), "numpy and what builds on it"),
    **dict.fromkeys(("_ssl", "ssl", "tornado"), "a network of its own"),
}  # fmt: skip


class _InWorker:
    """A child that is at work in a worker of its own."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        here = job["engine_root"]
        there = {name: job[name].replace(here, _ENGINE_THERE) for name in ("engine_root", "engine")}
        denied = [path.replace(here, _ENGINE_THERE) for path in job["denied"]]
        self._checker = _checker()
        self._child = self._checker.child(json.dumps({**job, **there, "denied": denied}), _static())
        self._order = ""

    def send(self, order: Mapping[str, Any], _limits: Limits) -> None:
        limits = {**order["limits"], "run_seconds": _RUN_SECONDS}
        self._order = json.dumps({**order, "limits": limits})

    def finish(self) -> Transcript:
        try:
            lines, is_over = _await(self._checker.run(self._child, self._order))
        except Exception as error:
            raise GraderError(str(error)) from error
        transcript = parsed(str(lines).encode())
        transcript.timed_out = bool(is_over)
        return transcript

    def abandon(self) -> None:
        self._child.worker.terminate()


_loaded: list[Any] = []


def _checker() -> Any:
    """The script that starts workers and hears them, loaded once."""
    if not _loaded:
        fetch = importlib.import_module("pyodide.code").run_js("address => import(address)")
        _loaded.append(_await(fetch(f"{_static()}checker.js")))
    return _loaded[0]


def _static() -> str:
    js = importlib.import_module("js")
    return str(js.URL.new(_FOLDERS_UP, js.location.href).href)


def _await(promise: Any) -> Any:
    """Wait for JavaScript, as a cell cannot go on without the answer.

    Raises:
        GraderError: this browser cannot wait so.
    """
    ffi = importlib.import_module("pyodide.ffi")
    if not ffi.can_run_sync():
        raise GraderError(
            "this browser cannot wait for a worker (it has no JavaScript Promise Integration); "
            "the page try/ beside this one checks without it"
        )
    return ffi.run_sync(promise)


def missing(error: BaseException | None) -> str:
    """What a browser lacks, if that is why `error` was raised; "" if it is another one."""
    while error is not None:
        match error:
            case RuntimeError() if "start new thread" in str(error):
                return "threads"
            case OSError() if error.errno == errno.ENOTSUP or "does not support processes" in str(error):
                return "processes"
            case AttributeError() if error.obj is sys.modules.get("socket"):
                return "sockets"
            case ModuleNotFoundError() if what := _PACKAGES.get((error.name or "").partition(".")[0]):
                return what
        error = error.__cause__ or error.__context__
    return ""


def begin() -> None:
    """Have this kernel do so."""
    work_in(_InWorker)
    # Modules of the notebook's folder are there, but to look for one takes a request: so it is looked at last.
    sys.path[:] = [*(each for each in sys.path if each), ""]
    # JupyterLite has an empty module in its place, and Python's own can lock, though there is nobody to wait for.
    sys.modules.pop("fcntl", None)
    running = shell()

    def tell(shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int = 0) -> None:
        if what := missing(error):
            print(not_in_a_browser(what))
        else:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    running.set_custom_exc((RuntimeError, OSError, ImportError, AttributeError), tell)
