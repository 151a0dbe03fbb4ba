"""The cluster that runs in the background: started, found again and ended, by a note in its folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from course.compiled.choice import in_use
from course.engine.hosts import keys_in
from course.places import state_folder
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_options import NodeOptions, task_manager_in
from refimpl.drivers.cluster.rpc.service import RpcService

__all__ = [
    "EngineError",
    "client_of",
    "default_folder",
    "engine_of",
    "keep_running",
    "start",
    "stop",
    "supervisor_of",
    "task_managers_of",
]

_PAUSE_S = 0.1
_UNTIL_UP_S = 120.0
_UNTIL_ENDED_S = 60.0
_ANSWER_WITHIN_S = 20.0


class EngineError(Exception):
    """The cluster cannot be started, found or ended; the text says why and what to do."""


def default_folder() -> Path:
    """Where the cluster of `sluice engine` is if nobody says where: `engine` in `.course`."""
    return state_folder() / "engine"


@contextmanager
def client_of(folder: Path, host: str = "127.0.0.1", keys: Path | str | None = None) -> Iterator[ClusterClient]:
    """Somebody who asks the Dispatcher of the cluster of `folder`, and gets the answers on `host`.

    Raises:
        EngineError: there is no cluster.
    """
    if not (folder / "secret").is_file():
        raise EngineError(f"there is no cluster in {folder}; `sluice engine start` starts one")
    cluster = ClusterFolder(folder)
    leaders = StoredLeaders(cluster.leases)
    rpc = RpcService(cluster.secret, host, security=keys_in(keys))
    client = ClusterClient(rpc, leaders, _ANSWER_WITHIN_S)
    try:
        yield client
    finally:
        client.close()
        leaders.close()


def supervisor_of(folder: Path) -> psutil.Process | None:
    """The process that keeps the cluster of `folder` running, if it does."""
    with suppress(OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        note = _read_note(folder)
        process = psutil.Process(note["process"])
        if process.create_time() == note["born"] and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def engine_of(folder: Path) -> str | None:
    """Which engine the cluster of `folder` runs: `source`, `compiled`, or `None` if its parts were started singly."""
    with suppress(OSError, ValueError):
        return str(_read_note(folder).get("engine", "")) or None
    return None


def task_managers_of(folder: Path) -> list[str]:
    """The names of the TaskManagers that the cluster of `folder` runs on this machine now.

    Raises:
        EngineError: no cluster is kept running there.
    """
    supervisor = supervisor_of(folder)
    if supervisor is None:
        raise EngineError(f"no cluster runs in {folder}; `sluice engine start` starts one")
    names = []
    for process in supervisor.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if (name := task_manager_in(process.cmdline(), folder)) is not None:
                names.append(name)
    return sorted(names)


def keep_running(folder: Path, num_task_managers: int, options: NodeOptions) -> None:
    """Keep a cluster running until this process is told to end; all of it ends with this process.

    Raises:
        EngineError: one runs already.
    """
    _refuse_second(folder)
    with ClusterProcesses(folder, num_task_managers, options) as processes:
        own = psutil.Process()
        note = {"process": own.pid, "born": own.create_time(), "parts": processes.process_ids, "engine": in_use()}
        _note(folder).write_text(json.dumps(note), encoding="utf-8")
        try:
            processes.wait_until_up(_UNTIL_UP_S)
            print(f"✓ a cluster runs in {folder}, until Ctrl-C", flush=True)
            threading.Event().wait()
        finally:
            _note(folder).unlink(missing_ok=True)


def start(folder: Path, arguments: Sequence[str]) -> None:
    """Start a cluster in the background; when this returns it answers.

    Raises:
        EngineError: one runs already, or it does not come up, and what it says.
    """
    _refuse_second(folder)
    ClusterFolder.make(folder)
    log = folder / "logs" / "supervisor.log"
    log.parent.mkdir(exist_ok=True)
    path = [str(Path(__file__).resolve().parents[2]), *(each for each in sys.path if each)]
    command = [sys.executable, "-P", "-m", "course.cli", "engine", "start", "--foreground", "--at", str(folder)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            start_new_session=True,
        )
    try:
        give_up_s = time.monotonic() + _UNTIL_UP_S
        while "✓" not in log.read_text(encoding="utf-8", errors="replace"):
            if process.poll() is not None or time.monotonic() > give_up_s:
                raise EngineError(f"the cluster does not come up:\n{log.read_text(errors='replace').strip()}")
            time.sleep(_PAUSE_S)
    except BaseException:
        _end(psutil.Process(process.pid))
        raise


def stop(folder: Path) -> bool:
    """End the cluster of `folder`, with all its processes; false if none runs.

    Raises:
        EngineError: it does not end.
    """
    supervisor = supervisor_of(folder)
    if supervisor is None:
        return False
    _end(supervisor)
    return True


def _end(supervisor: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        supervisor.send_signal(signal.SIGCONT)
        supervisor.terminate()
        try:
            supervisor.wait(_UNTIL_ENDED_S)
        except psutil.TimeoutExpired:
            raise EngineError(
                f"process {supervisor.pid} does not end; `kill -KILL {supervisor.pid}` ends all"
            ) from None


def _refuse_second(folder: Path) -> None:
    if (supervisor := supervisor_of(folder)) is not None:
        raise EngineError(f"a cluster runs there already, process {supervisor.pid}; `sluice engine stop` ends it")


def _read_note(folder: Path) -> dict[str, Any]:
    note = json.loads(_note(folder).read_text(encoding="utf-8"))
    if not isinstance(note, dict):
        raise ValueError(f"{_note(folder)} is no note of a cluster")
    return note


def _note(folder: Path) -> Path:
    return folder / "cluster.json"
