"""The Spark session of the course: one call, no noise, nothing left behind."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from course.data.master import Master, MasterError, master_of
from course.data.scratch import make_scratch, remove_scratch, runs_programs
from course.spark.java import Java, JavaUnavailable, find_java, make_java_home
from course.spark.standalone import secret_of, with_secret, write_private

if TYPE_CHECKING:
    import psutil
    from pyspark.sql import SparkSession

__all__ = ["FEW_ROWS", "SparkUnavailable", "cancels", "spark"]

DEFAULT_MASTER = "local[2]"

# No log: together with the shim of spark/java.py that makes 0 lines. What the JVM prints lands in the notebook's
# cell and would fail nbval; why a job fails, Python says too. The logger that announces "Setting default log level" has
# a level of its own.
_LOG4J = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    # By default a barrier task that never arrives is waited for a year. They only meet once, when they start.
    "spark.barrier.sync.timeout": "60",
    # By default a barrier stage that is too wide is tried for ten minutes. `SparkRun` knows at once; half a minute is
    # for the executor that takes the place of a lost one.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "30",
    # With it there are no barrier stages.
    "spark.dynamicAllocation.enabled": "false",
}

_SPARK_ASKS_S = 60.0
"""A master answers at once. One that hangs Spark asks for so long before it gives up."""
_UNTIL_A_MASTER_ANSWERS_S = 300.0
"""For the case that Spark does not give up; in this time it starts, too, where a machine has much else to do."""

_QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_QUICK = {
    "spark.driver.extraJavaOptions": _QUICK_JAVA,
    "spark.executor.extraJavaOptions": _QUICK_JAVA,
    # To compile a query takes longer than to run it, if there are few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings that start a second faster, do small queries in half the time, and large ones more slowly."""

FEW_ROWS = 10_000
"""Who asks about no more rows than that, as lessons do, has the answer sooner from a `quick` session."""

# What somebody else's Spark left in the environment would start another Spark, or another kind of session.
_FOREIGN = ("SPARK_HOME", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")


_ENDED = (
    "Spark ended in the middle of its work: its JVM was killed or crashed, perhaps because memory ran out. "
    "Close other programs and try again (in a notebook: restart the kernel)."
)
_FULL = "Spark cannot go on: the disk of {folder} is full; make room, or set TMPDIR (or SLUICE_SCRATCH) to another."


class SparkUnavailable(RuntimeError):  # noqa: N818 (a state to report)
    """Spark could not start; the text is one sentence that says why and what to do."""


def spark(app: str = "sluice", *, master: str | None = None, quick: bool = False, **settings: str) -> SparkSession:
    """Return the Spark session of this process; start one if there is none.

    Runs on 2 cores of this machine, or on the cluster whose master URL `master` or else the environment variable
    SLUICE_SPARK_MASTER names. `quick` starts faster and is quick with few rows, as in lessons and tests. `settings` are
    more Spark settings with `_` for `.`: `spark_driver_memory="2g"`. A session that is already running is returned as
    it is. It ends with the process (or with `stop()`), and its temporary folder with it.

    Raises:
        SparkUnavailable: Java is missing or unusable, there is no such master, or Spark did not start.
    """
    from pyspark.sql import SparkSession

    # Not getActiveSession(), which answers for the current thread only.
    running = SparkSession._instantiatedSession
    if running is not None and running._sc._jsc is not None:
        return running
    try:
        where = master_of(master or os.environ.get("SLUICE_SPARK_MASTER") or DEFAULT_MASTER)
        where.check_that_it_answers()
        java = find_java()
        state = make_scratch("spark")
        if not runs_programs(state):
            place = state.parent
            remove_scratch(state)
            raise SparkUnavailable(
                f"Spark could not start: no file of {place} may be run (it is mounted with noexec), and Java unpacks "
                f"libraries there; set SLUICE_SCRATCH to a folder on another disk."
            )
    except MasterError as error:
        raise SparkUnavailable(f"Spark could not start: {error}.") from error
    except JavaUnavailable as error:
        raise SparkUnavailable(f"Spark could not start: {error}") from error
    except OSError as error:
        advice = "set TMPDIR (or SLUICE_SCRATCH) to a folder that can be written"
        raise SparkUnavailable(f"Spark could not start: no temporary folder ({error}); {advice}.") from error
    conf = _SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
    conf |= {"spark.sql.warehouse.dir": str(state / "warehouse"), "spark.local.dir": str(state / "blocks")}
    if where.is_here:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if quick:
        conf |= _QUICK
    return _start(app, where, conf, state, java)


@contextmanager
def cancels(session: SparkSession) -> Iterator[None]:
    """Cancel the session's jobs when the body is interrupted or fails.

    An interrupted notebook cell ends, but its Spark job would go on and the next cell would wait for it.

    Raises:
        SparkUnavailable: the JVM is gone, or its disk is full.
    """
    try:
        yield
    except BaseException as error:
        with suppress(_java_error(), OSError):  # the JVM may be what failed
            session.sparkContext.cancelAllJobs()
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        process = getattr(session.sparkContext._gateway, "proc", None)
        if process is not None and _has_ended(process):
            raise SparkUnavailable(_ENDED) from error
        if "No space left on device" in str(error):
            raise SparkUnavailable(_FULL.format(folder=session.conf.get("spark.local.dir"))) from error
        raise


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended, or does so at once: its connections close a moment before it is gone."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    return True


def _was_interrupted(error: BaseException) -> bool:
    """Whether this began as an interrupt: the cancelled job's own error may come on top of it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _start(app: str, master: Master, conf: dict[str, str], state: Path, java: Java) -> SparkSession:
    """Start the JVM and the session, and arrange for their end."""
    import psutil
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    (state / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
    if (secret := secret_of(master.url)) is not None:
        write_private(state / "spark-defaults.conf", with_secret(secret))
    logging.getLogger().addFilter(_is_not_of_py4j)
    interrupt = signal.getsignal(signal.SIGINT)
    atexit.register(_end, state)
    before = {child.pid for child in psutil.Process().children()}
    try:
        # The builder too looks at the environment: an address of a Spark Connect server there would make it refuse.
        with _environment(state, java, master):
            conf = {"spark.master": master.url, "spark.app.name": app} | conf
            if SparkContext._gateway is None:
                # In a session of its own: ipykernel, before it ends, sends SIGTERM to every child of its process group
                # and waits, until Jupyter kills it, so that nothing here could end the JVM properly.
                gateway = launch_gateway(SparkConf().setAll(list(conf.items())), {"start_new_session": True})
                SparkContext._ensure_initialized(gateway=gateway)
            with _patience(master):
                return SparkSession.builder.config(map={**conf}).getOrCreate()
    except (PySparkException, OSError, _java_error()) as error:
        _end(state)
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise SparkUnavailable(
            f"Spark could not start on {master.url} with {java.verdict}: {first}. See `sluice doctor --deep`."
        ) from error
    except BaseException:
        # Interrupted while the JVM starts: nobody knows it yet, and it would outlive this process.
        _end(state)
        _kill(child for child in psutil.Process().children() if child.pid not in before)
        raise
    finally:
        # Spark's own handler calls the JVM in the middle of another call to it; `cancels` does it afterwards.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


@contextmanager
def _patience(master: Master) -> Iterator[None]:
    """Wait for a standalone master to answer, as long as Spark does.

    Raises:
        ConnectionError: it has not.
    """
    from pyspark import SparkContext

    if not master.addresses:
        yield
        return
    gateway = SparkContext._gateway
    assert gateway is not None, "the JVM has been launched"
    timer = threading.Timer(_UNTIL_A_MASTER_ANSWERS_S, gateway.proc.kill)
    timer.start()
    began_s = time.monotonic()
    try:
        yield
    except (OSError, _java_error()) as error:
        if time.monotonic() - began_s >= _SPARK_ASKS_S:
            raise ConnectionError("what listens there does not answer as a master does") from error
        raise
    finally:
        timer.cancel()


def _kill(processes: Iterable[psutil.Process]) -> None:
    """Kill these processes and all that they started."""
    import psutil

    for process in processes:
        with suppress(psutil.NoSuchProcess):
            for each in (*process.children(recursive=True), process):
                each.kill()


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Keep py4j from logging a traceback for each call that an interrupt breaks off; the interrupt is enough."""
    return "py4j" not in record.pathname


def _java_error() -> type[Exception]:
    """Return the error that py4j raises for an exception of the JVM."""
    from py4j.protocol import Py4JError

    error: type[Exception] = Py4JError
    return error


@contextmanager
def _environment(state: Path, java: Java, master: Master) -> Iterator[None]:
    """Set what the JVM reads from the environment, while it starts."""
    wanted: dict[str, str | None] = dict.fromkeys(_FOREIGN)
    wanted |= {"JAVA_HOME": str(make_java_home(state / "jre", java)), "SPARK_CONF_DIR": str(state)}
    if not os.environ.get("LC_ALL", "").upper().endswith(("UTF-8", "UTF8")):
        # Java takes the names of files in the encoding of the locale, and C has none for an umlaut in one.
        wanted["LC_ALL"] = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    if master.has_own_workers:
        wanted["SPARK_HOME"] = str(_linked_home(state / "home"))
    if master.is_here:
        # Python workers would be the PATH's `python3`, which lacks this environment's packages.
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        wanted |= {"PYSPARK_DRIVER_PYTHON": sys.executable}
    saved = {name: os.environ.get(name) for name in wanted}
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(saved)


def _linked_home(folder: Path) -> Path:
    """A home of Spark that is not where it is installed: workers write into their home."""
    import pyspark

    folder.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder


def _set_environment(values: dict[str, str | None]) -> None:
    """Set these variables; None removes one."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _end(state: Path) -> None:
    """Stop the session and its JVM, then remove the temporary folder; an interrupt meanwhile changes nothing."""
    on_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if on_main_thread else None
    try:
        _stop()
    finally:
        remove_scratch(state)
        if on_main_thread:
            signal.signal(signal.SIGINT, before)


def _stop() -> None:
    """Stop the session and its JVM."""
    from pyspark import SparkContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    process = getattr(gateway, "proc", None)
    with suppress(_java_error(), OSError):  # the JVM may have been killed
        if context is not None:
            context.stop()
    if gateway is not None and process is not None:
        with suppress(_java_error(), OSError):
            gateway.shutdown()
        process.stdin.close()  # the JVM ends when its standard input does
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        SparkContext._gateway = SparkContext._jvm = None  # a later session starts a JVM of its own
