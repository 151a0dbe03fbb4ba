"""TaskManagers on demand, as processes of this machine: started, stopped, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["ProcessLauncher"]

_SECONDS_TO_END = 10.0


class ProcessLauncher:
    """A `WorkerLauncher` of processes of this machine; `command` is what to run for a name.

    Each leads a process group of its own, and what it prints is in the file of its name in `logs`. Its standard input
    ends when this process does, however that ends. Stopped, it has 10 s to end by itself.
    """

    def __init__(self, command: Callable[[str], Sequence[str]], logs: Path, grace_s: float = _SECONDS_TO_END) -> None:
        self._command = command
        self._logs = logs
        self._grace_s = grace_s
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stops: list[threading.Thread] = []
        self._lock = threading.Lock()

    def start(self, name: str) -> None:
        with self._lock:
            if (running := self._running.get(name)) is not None and running.poll() is None:
                return
            with (self._logs / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(
                    self._command(name), stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
                )

    def stop(self, name: str) -> None:
        with self._lock:
            process = self._running.pop(name, None)
        if process is None:
            return
        self._signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._grace_s)
        self._signal(process, signal.SIGKILL)  # it, or what it has left behind
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def list(self) -> Sequence[str]:
        with self._lock:
            return [name for name, process in self._running.items() if process.poll() is None]

    def close(self) -> None:
        """Stop all, at the same time, and those that are being stopped."""
        stops = [threading.Thread(target=self.stop, args=(name,)) for name in list(self._running)]
        for each in stops:
            each.start()
        for each in (*stops, *self._stops):
            each.join()

    def stop_aside(self, name: str) -> None:
        """As `stop`, on a thread of its own; `close` waits for it."""
        self._stops = [each for each in self._stops if each.is_alive()]
        self._stops.append(stop := threading.Thread(target=self.stop, args=(name,), name=f"end of {name}"))
        stop.start()

    def _signal(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """Signal the whole group, if anybody is left in it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
