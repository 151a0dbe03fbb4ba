"""The fence around learner code: an audit hook and resource limits, put up once and for good.

This file runs inside the child, which cannot import `course`; so it uses the standard library only.
The fence keeps mistakes and shortcuts harmless: files, network, processes, signals, and native code but for
Python's own and numpy's, which could go round it. What makes a forged run worthless all the same is that
no expected answer is inside the child.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

__all__ = ["FenceError", "FenceImportError", "limit_processes", "limit_resources", "raise_fence"]

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_HARMLESS_FILES = frozenset({os.devnull, "/dev/urandom", "/dev/random"})

# What the event means to the learner; anything that starts with the key is refused.
_CLOSED = {
    "socket.": "the network",
    "subprocess.": "starting programs",
    "os.system": "starting programs",
    "os.exec": "starting programs",
    "os.posix_spawn": "starting programs",
    "os.spawn": "starting programs",
    "os.fork": "starting programs",
    "os.startfile": "starting programs",
    "pty.": "starting programs",
    "os.kill": "sending signals",
    "os.killpg": "sending signals",
    "signal.pthread_kill": "sending signals",
    "resource.setrlimit": "changing limits",
    "resource.prlimit": "changing limits",
    "ctypes.": "native code through ctypes",
    "sys._current_frames": "looking into the grader",
    "sys.setprofile": "tracing",
    "sys.settrace": "tracing",
    "os.chdir": "changing the working folder",
    "os.chroot": "changing the working folder",
    "webbrowser.": "the browser",
    "syslog.": "the system's log",
}
# Modules that start processes, share memory or run code beside the audit hook; and those that a second
# import would give back whole after `_remove` has been at them.
_CLOSED_MODULES = frozenset(
    {
        "_posixsubprocess", "_multiprocessing", "_posixshmem", "_xxsubinterpreters", "_interpreters", "_winapi",
        "_interpchannels", "_xxinterpchannels", "_testcapi", "_testinternalcapi", "_ctypes", "_imp", "_signal",
        "posix", "nt", "os", "signal",
    }
)  # fmt: skip
# What Python has no audit event for.
_UNAUDITED = (
    "mkfifo", "mknod", "unshare", "setns", "pidfd_open", "chroot", "memfd_create", "setpriority", "nice",
    "pidfd_send_signal", "fork_exec",
)  # fmt: skip
_MOST_FILES_WRITTEN = 200
_READS = frozenset({"os.listdir", "os.scandir"})
_WRITES = frozenset(
    {
        "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate",
        "os.chmod", "os.chown", "os.lchown", "os.utime", "os.setxattr", "os.removexattr",
        "os.chflags", "os.lchflags", "sqlite3.connect",
    }
)  # fmt: skip


class FenceError(PermissionError):
    """Learner code reached for something a check has closed."""


class FenceImportError(ImportError):
    """The same for native code: libraries that treat `ctypes` as optional go on without it."""


def limit_resources(limits: Mapping[str, int]) -> None:
    """Set the operating system's limits, as far as this system has them.

    `limits`: cpu_seconds, memory_bytes, file_bytes. Sets no address-space limit on macOS, whose
    kernel refuses it.
    """
    wanted = {
        "RLIMIT_CPU": limits["cpu_seconds"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
    }
    if sys.platform != "darwin":
        wanted["RLIMIT_AS"] = limits["memory_bytes"]
    _set_limits(wanted)


def limit_processes() -> None:
    """Let no process be started; where the system has no boundary that does this and no more.

    To Linux a thread is a process too, and root may start both all the same.
    """
    _set_limits({"RLIMIT_NPROC": 0})


def _set_limits(wanted: Mapping[str, int]) -> None:
    try:
        import resource
    except ImportError:  # Windows has none; the parent's clock still ends the child
        return
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # A system that refuses one limit still has the others, and the parent's clock.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (allowed, allowed))


def raise_fence(
    sandbox: str, readable: Sequence[str], listable: Sequence[str], denied: Sequence[str], native: Sequence[str]
) -> None:
    """Close files, network, processes and native code for the rest of this process's life.

    Args:
        sandbox: the one folder that may be written.
        readable: folders whose files may be read (Python's own, the engine).
        listable: folders that may be listed, but whose files may not be read.
        denied: files and folders that may not be read although `readable` holds them.
        native: folders whose compiled modules may be loaded.
    """
    check_path = _path_rule(sandbox, readable, listable, denied)
    check_import = _import_rule(native)
    closed = tuple(_CLOSED.items())
    num_written = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal num_written
        if event == "open":
            path, mode, flags = arguments[0], arguments[1], arguments[2]
            writes = bool(flags & _WRITE_FLAGS) or (isinstance(mode, str) and any(c in mode for c in "wax+"))
            check_path(path, writes, False, True)
            num_written += writes and path not in _HARMLESS_FILES
            if num_written > _MOST_FILES_WRITTEN:
                raise FenceError("writing more files than an exercise can need is closed")
        elif event == "import":
            check_import(arguments[0], arguments[1])
        elif event in _READS:
            check_path(arguments[0], False, True)
        elif event in _WRITES:
            for path in arguments[:2]:
                check_path(path, True, False)
        else:
            for prefix, meaning in closed:
                if event.startswith(prefix):
                    error = FenceImportError if prefix == "ctypes." else FenceError
                    raise error(f"{meaning} is closed while a check runs")

    _remove_unaudited()
    sys.addaudithook(hook)


def _remove_unaudited() -> None:
    """Take away the functions that reach out of the process without an audit event."""

    def closed(*_: object, **__: object) -> None:
        raise FenceError("reaching out of the check's own process is closed while a check runs")

    with contextlib.suppress(ImportError):
        import _posixsubprocess  # noqa: F401 - here, so that its one door can be closed
    for name in ("os", "posix", "signal", "_signal", "_posixsubprocess"):
        module = sys.modules.get(name)
        for function in _UNAUDITED:
            if module is not None and hasattr(module, function):
                setattr(module, function, closed)
    _guard_builtins(sys.modules["_imp"])


def _guard_builtins(imp: ModuleType) -> None:
    """Built-in modules are made without an audit event; those that are closed are not made again."""
    make = imp.__dict__["create_builtin"]

    def create_builtin(spec: Any) -> ModuleType:
        if spec.name in _CLOSED_MODULES:
            raise FenceImportError(f"the module {spec.name} is closed while a check runs")
        made: ModuleType = make(spec)
        return made

    imp.__dict__["create_builtin"] = create_builtin


def _import_rule(native: Sequence[str]) -> Callable[[Any, Any], None]:
    roots = tuple(os.path.realpath(root) + os.sep for root in native)
    real = os.path.realpath

    def check(name: Any, file: Any) -> None:
        if name in _CLOSED_MODULES:
            raise FenceImportError(f"the module {name} is closed while a check runs")
        if file is not None and not real(os.fsdecode(file)).startswith(roots):
            raise FenceImportError(f"compiled modules but Python's own and numpy's, such as {name}, are closed")

    return check


def _path_rule(
    sandbox: str, readable: Sequence[str], listable: Sequence[str], denied: Sequence[str]
) -> Callable[..., None]:
    real = os.path.realpath  # bound now: learner code may replace the name later
    fsdecode, separator, is_folder, is_a = os.fsdecode, os.sep, os.path.isdir, isinstance
    home, path_like = real(sandbox), os.PathLike
    open_roots = tuple(real(root) for root in readable)
    list_only = frozenset(real(root) for root in listable)
    closed_roots = tuple(real(root) for root in denied)

    def inside(path: str, root: str) -> bool:
        return path == root or path.startswith(root + separator)

    def check(path: Any, writes: bool, lists: bool, opens: bool = False) -> None:
        if path is None or is_a(path, int) or not is_a(path, str | bytes | path_like):
            return  # an open descriptor: whoever opened it was checked
        name = fsdecode(path)
        if name in _HARMLESS_FILES:
            return
        place = real(name)
        if opens and is_folder(place):
            raise FenceError("opening a folder as a file is closed while a check runs")  # a way round names
        if inside(place, home):
            return
        if writes:
            raise FenceError("writing files outside the check's own folder is closed")
        if any(inside(place, root) for root in closed_roots):
            raise FenceError("the reference part and the recorded answers are closed while a check runs")
        if any(inside(place, root) for root in open_roots) or (lists and place in list_only):
            return
        raise FenceError("reading files is closed while a check runs")

    return check
