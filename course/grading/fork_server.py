"""A child that has loaded all it takes, runs no learner's code itself, and forks a child for each run.

This file runs inside `child.py`, which cannot import `course`; so it uses the standard library only. What is in the
server's memory is in that of every child: a job, which holds no answers and nothing of a learner. No child has one of
its descriptors.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["serve"]

_MODULES = ("_socket", "select")
_FROM_PARENT = 4  # standard input, output and errors of the child, and its handle


def serve(control: int, parent: int) -> int:
    """Fork a child for each message; returns in the children only, with this server's process id.

    A message brings four descriptors: three for the child, and a handle, through which the child's process id is
    answered. What comes through the handle is the child's folder. When its other end closes for writing, the child is
    ended, its folder removed and its exit status answered. The server ends with its parent, and its children with it.

    Raises:
        OSError: this system lacks something of it; then nothing was forked.
    """
    before = frozenset(sys.modules)
    socket, select = map(importlib.import_module, _MODULES)
    if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 (pathlib costs 10 ms here)
        raise OSError("a process with several threads cannot fork safely")
    server, pid = os.getpid(), os.pidfd_open(parent)
    if os.getppid() != parent:
        os._exit(0)
    events = select.poll()
    for each in (control, pid):
        events.register(each, select.POLLIN)
    messages = socket.socket(fileno=control)
    running: dict[int, _Child] = {}
    while True:
        ready = [descriptor for descriptor, _ in events.poll()]
        if pid in ready:
            _leave(running)
        for handle in [each for each in ready if each in running]:
            if not running[handle].heard(handle):
                events.unregister(handle)
                running.pop(handle).end(handle)
        if control in ready:
            received = _received(socket, messages)
            if not received:
                _leave(running)
            child = os.fork()
            if not child:
                messages.detach()
                _become_a_child(received)
                for name in _MODULES:
                    if name not in before:
                        sys.modules.pop(name, None)
                return server
            for each in received[:3]:
                os.close(each)
            handle = received[3]
            running[handle] = _Child(child)
            events.register(handle, select.POLLIN)
            _answer(handle, child)


def _received(socket: Any, messages: Any) -> Sequence[int]:
    """The descriptors of the next message; none at the end."""
    kept = _FROM_PARENT * struct.calcsize("i")
    _, ancillary, _, _ = messages.recvmsg(1, socket.CMSG_SPACE(kept))
    return struct.unpack(f"{_FROM_PARENT}i", ancillary[0][2]) if ancillary else ()


def _become_a_child(received: Sequence[int]) -> None:
    """A session of its own, and no descriptor but three."""
    os.setsid()
    for number, descriptor in enumerate(received[:3]):
        os.dup2(descriptor, number)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the one that this list was read by
                os.close(int(name))


def _answer(handle: int, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody wants to know
        os.write(handle, b"%d" % number)


def _leave(running: dict[int, _Child]) -> None:
    for handle, child in running.items():
        child.end(handle)
    os._exit(0)


class _Child:
    """One that was forked; not waited for before it is to end, so that its process id stays its own."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._folder = ""

    def heard(self, handle: int) -> bool:
        """Whether the other end of the handle said something; it closed otherwise."""
        with contextlib.suppress(OSError):
            if said := os.read(handle, 1 << 16):
                self._folder = os.fsdecode(said)
                return True
        return False

    def end(self, handle: int) -> None:
        """End it and all of its session, remove its folder, answer its exit status."""
        for kill in (os.killpg, os.kill):  # the second for one that has no session yet
            with contextlib.suppress(ProcessLookupError):
                kill(self._pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        _answer(handle, code)
        os.close(handle)
