"""A standalone Spark cluster on this machine: a master and workers, from the package that is installed anyway.

Everything it has is in one folder: what it says, the work of its executors, and the note `cluster.json` of which
processes it is. One of them, the keeper (`standalone_keeper.py`), has started the others. They live until it is
told to end them, or ends itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.places import state_folder
from course.spark.java import find_java, make_java_home

if TYPE_CHECKING:
    import psutil

__all__ = [
    "ClusterError", "Standalone", "cluster_folder", "find_cluster", "secret_of", "start_cluster", "stop_cluster",
    "with_secret", "write_private",
]  # fmt: skip

_PAUSE_S = 0.1
_UNTIL_READY_S = 120.0  # seconds, usually; a machine that has much to do needs more
_UNTIL_ENDED_S = 10.0


_OPTION = "spark.authenticate.secret"


class ClusterError(Exception):
    """The cluster cannot be started; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the cluster. Its number may be given to another one later, but not with the same birth."""

    name: str
    id: int
    born: float

    @staticmethod
    def of(name: str, process_id: int) -> Process:
        """The process with this number, that runs now."""
        import psutil

        return Process(name, process_id, psutil.Process(process_id).create_time())

    def running(self) -> psutil.Process | None:
        """The process, if it still runs."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.id)
            if process.create_time() == self.born and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


@dataclass(frozen=True, slots=True)
class Standalone:
    """What is known of a cluster: the first of its processes is the keeper."""

    url: str
    num_workers: int
    cores: int
    processes: list[Process]

    @property
    def is_running(self) -> bool:
        """Whether all of it runs."""
        return all(process.running() for process in self.processes)

    def write(self, folder: Path) -> None:
        """Note it in its folder; a reader sees this note or the one before."""
        new = folder / "cluster.json.new"
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        new.replace(folder / "cluster.json")


def cluster_folder() -> Path:
    """Where the cluster of this learner is, if there is one."""
    return state_folder() / "cluster"


def find_cluster(folder: Path) -> Standalone | None:
    """What a folder says of its cluster, which may have ended; None if there is none."""
    try:
        said = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))
        processes = [Process(**each) for each in said.pop("processes")]
        return Standalone(**said, processes=processes)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def with_secret(secret: str) -> str:
    """The settings with which a process of Spark speaks to a cluster, and only to those who have its secret."""
    return f"spark.authenticate true\n{_OPTION} {secret}\n"


def write_private(file: Path, text: str) -> None:
    """Write a file that nobody else can read; a secret in an argument or a setting of Python's could be seen by all."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)


def secret_of(url: str) -> str | None:
    """The secret of this learner's own cluster, if that is where `url` leads; else Spark's settings must have it."""
    folder = cluster_folder()
    cluster = find_cluster(folder)
    if cluster is None or cluster.url != url:
        return None
    with suppress(OSError):
        for line in (folder / "conf" / "spark-defaults.conf").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(" ")
            if name == _OPTION:
                return value
    return None


def start_cluster(folder: Path, port: int, num_workers: int, cores: int, memory_mb: int) -> Standalone:
    """Start a cluster and wait until all its workers are there.

    Whatever ends this process before that ends the cluster too.

    Raises:
        ClusterError: it runs already, the port is taken, or Spark has not started.
        JavaUnavailable: there is no Java that Spark can use.
    """
    there = find_cluster(folder)
    if there is not None and there.is_running:
        raise ClusterError(f"a cluster runs already at {there.url}; `sluice cluster stop` ends it")
    _check_that_it_is_free(port)
    java = find_java()
    stop_cluster(folder)  # what an earlier one has left
    (folder / "logs").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    make_java_home(folder / "jre", java)
    words = [str(folder), str(port), str(num_workers), str(cores), str(memory_mb)]
    package = str(Path(__file__).resolve().parents[2])
    with (folder / "logs" / "keeper").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "course.spark.standalone_keeper", *words],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": package},
            start_new_session=True,
        )
    assert keeper.stdin is not None, "it was asked for"
    try:
        give_up_s = time.monotonic() + _UNTIL_READY_S
        while (cluster := find_cluster(folder)) is None or not _is_complete(folder, cluster):
            if keeper.poll() is not None or time.monotonic() > give_up_s:
                raise ClusterError(f"the cluster has not started: {_last_words(folder)}")
            time.sleep(_PAUSE_S)
        keeper.stdin.write(b"stay\n")
        keeper.stdin.close()
    except BaseException:
        with suppress(OSError):
            keeper.stdin.close()  # it ends all the others and then itself
        with suppress(subprocess.TimeoutExpired):
            keeper.wait(_UNTIL_ENDED_S)
        stop_cluster(folder)
        raise
    return cluster


def stop_cluster(folder: Path) -> bool:
    """End the cluster, if it runs, and remove its folder; whether there was one."""
    import psutil

    cluster = find_cluster(folder)
    if cluster is not None:
        keeper, *others = cluster.processes
        if (process := keeper.running()) is not None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
                process.wait(_UNTIL_ENDED_S)
        for each in [keeper, *others]:  # whatever a keeper that was killed has left
            _kill(each)
    shutil.rmtree(folder, ignore_errors=True)
    return cluster is not None


def _kill(process: Process) -> None:
    import psutil

    if (running := process.running()) is not None:
        with suppress(psutil.NoSuchProcess):
            family = [*running.children(recursive=True), running]
            for each in family:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs(family, _UNTIL_ENDED_S)


def _is_complete(folder: Path, cluster: Standalone) -> bool:
    """Whether the master has heard of all workers."""
    with suppress(OSError):
        said = (folder / "logs" / "master").read_text(encoding="utf-8", errors="replace")
        return said.count("Registering worker") >= cluster.num_workers
    return False


def _check_that_it_is_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ClusterError(
                f"port {port} cannot be used: {error.strerror}; end what listens there, or choose another with --port"
            ) from error


def _last_words(folder: Path) -> str:
    """The end of what its processes have said."""
    for name in ("master", "keeper"):
        with suppress(OSError):
            lines = (folder / "logs" / name).read_text(encoding="utf-8", errors="replace").split("\n")
            told = [line for line in lines if line.strip() and not line.startswith("\t")]
            if told:
                return told[-1]
    return "it says nothing"
