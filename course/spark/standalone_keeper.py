"""The process that keeps a standalone cluster: starts the master and the workers, and ends them.

Its standard input comes from whoever starts the cluster. If that ends before it says `stay`, so does the cluster; after
that it ends when the keeper is told to by a signal. If the keeper is killed, the system kills what it has started;
where the system cannot (that is Linux alone), `sluice cluster stop` does.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from course.spark.standalone import Process, Standalone, with_secret, write_private

_PR_SET_PDEATHSIG = 1
_PAUSE_S = 0.2
_UNTIL_ENDED_S = 5.0
_QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Masters and workers hand out executors, and do little else: what counts is how soon they are there."""
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
logger.master.name = org.apache.spark.deploy.master.Master
logger.master.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


class Keeper:
    """The processes of a cluster, as their parent sees them."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        self._named = [Process.of("keeper", os.getpid())]
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        conf = folder / "conf"
        conf.mkdir()
        (conf / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
        write_private(
            conf / "spark-defaults.conf",
            "spark.port.maxRetries 0\nspark.master.rest.enabled false\n" + with_secret(secrets.token_hex(32)),
        )

    def start(self, name: str, kind: str, *words: str) -> None:
        """Start a master or a worker."""
        import pyspark

        home = Path(pyspark.__file__).parent
        own = {"JAVA_HOME": "jre", "SPARK_CONF_DIR": "conf", "SPARK_WORKER_DIR": "work", "SPARK_LOCAL_DIRS": "blocks"}
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {key: str(self._folder / value) for key, value in own.items()}
        environment |= {"LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"}
        environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        environment["SPARK_DAEMON_JAVA_OPTS"] = _QUICK_JAVA
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words]
        with (self._folder / "logs" / name).open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=environment,
                preexec_fn=self._die_with_us,
            )
        self._children.append(child)
        self._named.append(Process.of(name, child.pid))

    def _die_with_us(self) -> None:
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def note(self, num_workers: int, cores: int) -> None:
        """Write down which processes there are."""
        Standalone(self.url, num_workers, cores, self._named).write(self._folder)

    def wait(self) -> None:
        """Wait until one of them has ended."""
        while all(child.poll() is None for child in self._children):
            time.sleep(_PAUSE_S)

    def end(self) -> None:
        """End all of them: workers first, which end their executors."""
        for child in reversed(self._children):
            child.terminate()
        give_up_s = time.monotonic() + _UNTIL_ENDED_S
        for child in reversed(self._children):
            try:
                child.wait(max(0.0, give_up_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def main(folder: Path, port: int, num_workers: int, cores: int, memory_mb: int) -> None:
    """Start a cluster, and keep it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    keeper = Keeper(folder, port)
    is_abandoned = threading.Event()
    try:
        address = ("--host", "127.0.0.1", "--webui-port", "0")
        keeper.start("master", "master.Master", "--port", str(port), *address)
        for worker in range(num_workers):
            size = ("--cores", str(cores), "--memory", f"{memory_mb}m")
            keeper.start(f"worker-{worker}", "worker.Worker", *address, *size, keeper.url)
        keeper.note(num_workers, cores)
        threading.Thread(target=_hear_the_starter, args=(is_abandoned,), daemon=True).start()
        keeper.wait()
    finally:
        keeper.end()
        if is_abandoned.is_set():
            shutil.rmtree(folder, ignore_errors=True)


def _hear_the_starter(is_abandoned: threading.Event) -> None:
    if sys.stdin.readline() != "stay\n":
        is_abandoned.set()
        os.kill(os.getpid(), signal.SIGTERM)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
