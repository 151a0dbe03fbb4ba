"""How a child is started: afresh, or forked from one that has loaded everything already.

Both run the same `child.py` behind the same boundary. Forking needs Linux and its boundary; the server that forks is a
process of its own with one thread, whatever runs in this one. Where anything of it fails, a child is started afresh.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

__all__ = ["FORKS", "Process", "StartError", "fresh", "started"]

_HERE = Path(__file__).parent
FORKS = "SLUICE_FORKS"
"""The environment variable that turns forking off where it is 0."""
_MOST_SERVERS = 3
_LEAVES_SECONDS = 5.0


class StartError(OSError):
    """Python could not be started."""


class Process(Protocol):
    """One child. What is written to `order` it reads; `output` and `errors` are what it writes."""

    order: IO[bytes]
    output: int
    errors: IO[bytes]

    def works_in(self, folder: str) -> None:
        """Tell whoever looks after it which folder goes with it."""

    def busy(self) -> int:
        """The process that works for it now."""

    def has_left(self, seconds: float) -> bool:
        """Whether it ends by itself within a time."""

    def end(self) -> int | None:
        """End all of it, and its exit status; `None` if nobody can say how it went, or whether it began."""


def started(job: Mapping[str, Any]) -> Process:
    """A child that gets ready for `job`, started in the fastest way there is.

    Raises:
        StartError: Python could not be started.
    """
    if _can_fork(job):
        with contextlib.suppress(OSError):  # the server has just ended, or could not be started
            if (server := _servers.of(job)) is not None:
                return _Forked(server)
    return fresh(job)


def _can_fork(job: Mapping[str, Any]) -> bool:
    """Without the system's boundary a run could reach the server, and so the runs after it."""
    return sys.platform == "linux" and bool(job["has_boundary"]) and os.environ.get(FORKS) != "0"


def fresh(job: Mapping[str, Any]) -> Process:
    """A child in a Python of its own.

    Raises:
        StartError: Python could not be started.
    """
    return _Fresh(job)


def _python(job: Mapping[str, Any], **streams: Any) -> subprocess.Popen[bytes]:
    """`child.py` in a Python that has nothing of our environment, and has been told its job."""
    # A warning of Python names files of this machine; the learner sees it in the cell, where it is theirs.
    command = [sys.executable, "-I", "-W", "ignore", "-X", "utf8", str(_HERE / "child.py")]
    home = tempfile.gettempdir()
    environment = {**_environment(), "HOME": home, "TMPDIR": home}
    try:
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.PIPE, start_new_session=True, **streams
        )
    except OSError as error:
        raise StartError(f"Python could not be started for the check: {error}") from error
    assert process.stdin is not None, "it was started with a pipe"
    with contextlib.suppress(OSError):  # one that is gone already is noticed by whoever uses it
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    return process


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    return {**kept, **{f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}}


class _Fresh:
    def __init__(self, job: Mapping[str, Any]) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
        try:
            self._process = _python(job, stdout=subprocess.PIPE, stderr=self.errors)
        except StartError:
            self.errors.close()
            raise
        assert self._process.stdin is not None, "it was started with a pipe"
        assert self._process.stdout is not None, "it was started with a pipe"
        self.order, self._output = self._process.stdin, self._process.stdout
        self.output = self._output.fileno()

    def works_in(self, folder: str) -> None:
        """It removes its folder itself when we are gone."""

    def busy(self) -> int:
        return self._process.pid

    def has_left(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> int:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        for pipe in (self.order, self._output):
            with contextlib.suppress(OSError):  # what could not be written any more
                pipe.close()
        return code


# -- forked ------------------------------------------------------------------------------------------


class _Forked:
    def __init__(self, server: _Server) -> None:
        read_order, write_order = os.pipe()
        self.output, write_output = os.pipe()
        self.order: IO[bytes] = open(write_order, "wb")  # noqa: PTH123, SIM115 - a descriptor; closed in `end`
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
        self._server, self._pid, self._exit = server, 0, -1
        self._handle, handle = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            server.fork(self, [read_order, write_output, self.errors.fileno(), handle.fileno()])
        except OSError:
            self._close()
            self.errors.close()
            raise
        finally:
            for each in (read_order, write_output):
                os.close(each)
            handle.close()

    def works_in(self, folder: str) -> None:
        self._handle.send(os.fsencode(folder))

    def busy(self) -> int:
        return self._number(0) or self._server.pid

    def has_left(self, seconds: float) -> bool:
        return self._exit >= 0 and _can_read(self._exit, seconds) if self._number(seconds) else False

    def end(self) -> int | None:
        if self._handle.fileno() < 0:
            return None
        has_begun = bool(self._number(0))
        with contextlib.suppress(OSError):
            self._handle.shutdown(socket.SHUT_WR)  # then its server ends it, at once or when it is to be forked
        said = self._received() if has_begun else b""
        if has_begun and not said:  # the server was ended; so nobody has waited for it, and the number is still its own
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._exit, signal.SIGKILL)
        self._close()
        self._server.children.discard(self)
        return int(said) if said else None

    def _number(self, seconds: float) -> int:
        """Its process id; 0 if it has not begun within a time, or never does."""
        if not self._pid and self._handle.fileno() >= 0 and _can_read(self._handle.fileno(), seconds):
            pid = int(self._received() or 0)
            with contextlib.suppress(OSError):
                self._exit = os.pidfd_open(pid)
                if self._server.is_there:  # then it was its process that was opened, and no later one of this number
                    self._pid, self._server.has_forked = pid, True
        return self._pid

    def _received(self) -> bytes:
        with contextlib.suppress(OSError):
            return self._handle.recv(64)
        return b""

    def _close(self) -> None:
        self._handle.close()
        for each in (self.output, self._exit):
            if each >= 0:
                os.close(each)
        self._exit = -1
        with contextlib.suppress(OSError):  # what could not be written any more
            self.order.close()


def _can_read(descriptor: int, seconds: float) -> bool:
    events = select.poll()
    events.register(descriptor, select.POLLIN)
    return bool(events.poll(1000 * max(0.0, seconds)))


class _Server:
    """A child that has loaded what a job takes, and forks; for all graders of this process that have this job."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.children: set[_Forked] = set()
        self.has_forked = False
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with control:
            text = (_HERE / "fork_server.py").read_text(encoding="utf-8")
            order = {**job, "fork_server": text, "control": control.fileno(), "parent": os.getpid()}
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self._process = _python(order, pass_fds=[control.fileno()], **silent)
        self.pid = self._process.pid
        assert self._process.stdin is not None, "it was started with a pipe"
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    @property
    def is_there(self) -> bool:
        return self._process.poll() is None

    def fork(self, child: _Forked, descriptors: list[int]) -> None:
        """Have a child forked, now or when the server is ready.

        Raises:
            OSError: the server is gone.
        """
        socket.send_fds(self._control, [b"."], descriptors)
        self.children.add(child)

    def leave(self) -> None:
        """Let go of it; it ends by itself, and its children with it, when nobody else holds on."""
        self._control.close()

    def close(self) -> None:
        """End it, and its children with it."""
        self.leave()
        try:
            self._process.wait(_LEAVES_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Servers:
    """The servers of this process by what they have loaded, the last used last; `None` where one failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_job: OrderedDict[bytes, _Server | None] = OrderedDict()

    def of(self, job: Mapping[str, Any]) -> _Server | None:
        """The one for this job, started if there is none."""
        text = json.dumps([job, _environment()])
        key = hashlib.sha256(text.encode()).digest()
        with self._lock:
            server = self._by_job.get(key)
            if key in self._by_job and (server is None or server.is_there):
                self._by_job.move_to_end(key)
                return server
            has_failed = server is not None and not server.has_forked
            self._by_job[key] = None if has_failed else _Server(job)
            self._make_room()
            return self._by_job[key]

    def _make_room(self) -> None:
        idle = [key for key, each in self._by_job.items() if each is not None and not each.children][:-1]
        for key in idle[: max(0, len(self._by_job) - _MOST_SERVERS)]:
            server = self._by_job.pop(key)
            assert server is not None, "it was idle"
            server.close()

    def close(self) -> None:
        for each in self._by_job.values():
            if each is not None:
                each.close()
        self._by_job.clear()

    def leave_to_parent(self) -> None:
        """In a process that was forked from the one whose servers they are."""
        for each in self._by_job.values():
            if each is not None:
                each.leave()
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that is not here


_servers = _Servers()
atexit.register(_servers.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_servers.leave_to_parent)
