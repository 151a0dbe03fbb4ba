"""Finds a job by its name: `path/to/file.py:function` or `module:function`.

The function takes one argument, what the job gives its results to, and returns the job, a `StreamEnvironment`. Without
`:function` it is called `job`.

What such a file defines, and what lies beside it, is sent along to other processes and machines with the job, which
need not have it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

import refimpl
from refimpl.job import StreamEnvironment

__all__ = ["JobError", "load_job"]

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DEFAULT_FUNCTION = "job"
_OURS = ("refimpl", "course", "widgets")


class JobError(Exception):
    """There is no such job, or it cannot be made; the text says why."""


def load_job(name: str, sink: Callable[[Any], object]) -> StreamEnvironment:
    """Make the job of that name, with `sink` for its results.

    Raises:
        JobError: no job comes of it, and why.
    """
    place, _, function_name = name.partition(":") if not name.endswith(":") else (name, "", "")
    function_name = function_name or _DEFAULT_FUNCTION
    if not function_name.isidentifier():
        raise JobError(f"{name!r} names no job; write FILE.py:FUNCTION or MODULE:FUNCTION")
    module = _module(place)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise JobError(f"{place} has no function {function_name!r} that makes a job")
    try:
        job = function(sink)
    except Exception as error:
        raise JobError(f"{name} did not make its job: {_where(error)}") from error
    if not isinstance(job, StreamEnvironment):
        raise JobError(f"{name} returned {type(job).__name__}, where a StreamEnvironment was expected")
    return job


def _module(place: str) -> ModuleType:
    """Import a file or a module; what lies beside it can be imported too, as when Python runs it."""
    is_file = place.endswith(".py")
    folder = Path(place).resolve().parent if is_file else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = _from_file(Path(place)) if is_file else _from_path(place)
    except JobError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise JobError(f"{place} cannot be loaded: {_where(error)}") from error
    _send_along(module)
    return module


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise JobError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, f"{path} ends in .py"
    assert spec.loader is not None, f"{path} ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> ModuleType:
    if not _MODULE.fullmatch(name):
        raise JobError(f"{name!r} is neither a file that ends in .py nor a module")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise JobError(f"there is no module {name}; a file is named with its .py") from error
        raise


def _send_along(module: ModuleType) -> None:
    """Let the job take the code of its own folder with it, wherever it runs; ours goes there anyway."""
    if module.__name__.split(".")[0] in _OURS or not module.__file__:
        return
    folder = Path(module.__file__).resolve().parent
    for each in [*sys.modules.values()]:
        file = getattr(each, "__file__", None)
        if file and folder in Path(file).resolve().parents and each.__name__.split(".")[0] not in _OURS:
            cloudpickle.register_pickle_by_value(each)


def _where(error: BaseException) -> str:
    """An exception of the user's, with the last line of theirs."""
    ours = {str(Path(refimpl.__file__).parent), str(Path(__file__).parent)}
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_file() and not ours & {str(folder) for folder in Path(frame.filename).parents}
    ]
    place = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
