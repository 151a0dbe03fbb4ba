"""Finds a job by its name: `path/to/file.py:function` or `module:function`.

The function takes one argument, what the job gives its results to, and returns the job, a `StreamEnvironment`. Without
`:function` it is called `job`.

What such a file defines, and what lies beside it, is sent along to other processes and machines with the job, which
need not have it.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import cloudpickle

import refimpl
from course.files import read_file
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import StreamEnvironment

__all__ = ["JobError", "load_job", "no_silent_exit"]

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
    place, colon, function_name = name.rpartition(":")
    if not colon or name.endswith(".py"):  # a path may have colons of its own
        place, function_name = name, _DEFAULT_FUNCTION
    if not place or not function_name.isidentifier():
        raise JobError(f"{name!r} names no job; write FILE.py:FUNCTION or MODULE:FUNCTION")
    module = _module(place)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise JobError(f"{place} has no function {function_name!r} that makes a job")
    try:
        job = function(sink)
    except USER_CODE_RAISES as error:  # a `sys.exit()` too, which would look like success
        raise JobError(f"{name} did not make its job: {_where(error)}") from error
    if not isinstance(job, StreamEnvironment):
        raise JobError(f"{name} returned {type(job).__name__}, where a StreamEnvironment was expected")
    return job


@contextmanager
def no_silent_exit() -> Iterator[None]:
    """Let a job's `os._exit` in this process be told, and be no success: nothing else has a chance to say so."""
    end, here = os._exit, os.getpid()

    def tell_and_end(status: int) -> NoReturn:
        if os.getpid() == here:  # a process that the job has forked ends as it likes
            os.write(2, f"the job failed: its code called os._exit({status})\n".encode())
            status = status or 1
        end(status)

    vars(os)["_exit"] = tell_and_end
    try:
        yield
    finally:
        vars(os)["_exit"] = end


def _module(place: str) -> ModuleType:
    """Import a file or a module; what lies beside it can be imported too, as when Python runs it.

    For the engine and all else its folder comes last: a `queue.py` there is no queue of ours. For the job it is first.
    """
    is_file = place.endswith(".py")
    folder = Path(os.path.realpath(place)).parent if is_file else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
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
    try:
        read_file(path)
    except OSError as error:
        raise JobError(f"{path} cannot be read: {error.strerror}") from error
    return _Beside(path.resolve().parent).load(path.stem, path)


class _Beside:
    """Imports of a job's own files: what lies beside them comes first, whatever else has that name.

    Such a module goes by another name where all modules are listed, and its own imports are found in the same way.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str, file: Path) -> ModuleType:
        """The module of a file or of a package's `__init__.py`, loaded once; another folder's may have its name."""
        listed = name
        while _is_taken(listed):
            if _is_loaded(listed, file):
                return sys.modules[listed]
            listed = f"{name}_of_the_job" if listed == name else f"{listed}_"
        within = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(listed, file, submodule_search_locations=within)
        assert spec is not None, f"{file} ends in .py"
        assert spec.loader is not None, f"{file} ends in .py"
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = self._builtins
        sys.modules[listed] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[listed]
            raise
        return module

    def _import(
        self,
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """What an `import` statement in one of these files brings."""
        first, _, rest = name.partition(".")
        file = next(filter(Path.is_file, (self._folder / f"{first}.py", self._folder / first / "__init__.py")), None)
        if level or file is None or first in _OURS:  # a job needs the engine, whatever it is called itself
            return builtins.__import__(name, globals_, locals_, fromlist, level)
        top = self.load(first, file)
        if not rest:
            return top
        whole = importlib.import_module(f"{top.__name__}.{rest}")
        return whole if fromlist else top


def _is_taken(name: str) -> bool:
    """Whether a module of that name is loaded already, or is somewhere else than beside the job."""
    if name in sys.modules or name in sys.stdlib_module_names or name in _OURS:
        return True
    folders = filter(Path.is_dir, map(Path, sys.path[:-1]))
    return any((folder / f"{name}.py").is_file() or (folder / name).is_dir() for folder in folders)


def _is_loaded(name: str, file: Path) -> bool:
    found = getattr(sys.modules.get(name), "__file__", None)
    return found is not None and Path(found) == file.absolute()


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
    ours = {str(Path(refimpl.__file__).parent), str(Path(__file__).parents[1])}
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_file() and not ours & {str(folder) for folder in Path(frame.filename).parents}
    ]
    place = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
    return f"{described(error)}{place}"
