"""A JVM for the kernels of several notebooks, one after the other: Spark's start, and its slow first queries, once.

Each kernel still has a session of its own. Run as a program, it prints where the JVM listens, and then ends for each
line that it reads what the kernel before has left; it ends with its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What every kernel does first. By itself a session uses no JVM that it finds in the environment: it may be anybody's.
_FIRST = """\
__import__("course.data.session").data.session._FOREIGN = ("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
"""


class WarmJava:
    """A process with a JVM. `environment` is for a kernel, and what it starts, that is to use it."""

    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self.environment = environment
        self._process = process

    def clear(self) -> None:
        """End the session of a kernel that has ended: nbval kills its kernels."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "clear\n"


@contextmanager
def warm_java(folder: Path) -> Iterator[WarmJava]:
    """A JVM until the body ends; `folder` is for what kernels read first."""
    startup = folder / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "first.py").write_text(_FIRST, encoding="utf-8")
    command = [sys.executable, str(Path(__file__))]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ) as process:
        assert process.stdout is not None
        yield WarmJava(process, {"IPYTHONDIR": str(folder), **json.loads(process.stdout.readline())})


def main() -> None:
    """Start a session, end it, and keep its JVM."""
    from pyspark import SparkContext

    from course.data.session import spark

    context = spark("warm", quick=True).sparkContext
    gateway, jvm = SparkContext._gateway, SparkContext._jvm
    assert gateway is not None
    assert jvm is not None
    java = gateway.java_parameters
    context.stop()
    print(json.dumps({"PYSPARK_GATEWAY_PORT": str(java.port), "PYSPARK_GATEWAY_SECRET": java.auth_token}), flush=True)
    contexts = getattr(getattr(jvm, "org.apache.spark.SparkContext$"), "MODULE$")
    for _ in sys.stdin:
        left = contexts.getActive()
        if left.isDefined():
            left.get().stop()
        jvm.org.apache.spark.sql.SparkSession.clearActiveSession()
        jvm.org.apache.spark.sql.SparkSession.clearDefaultSession()
        print("clear", flush=True)


if __name__ == "__main__":
    main()
