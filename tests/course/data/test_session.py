"""The Spark session: quiet, cancellable, gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from course.data.scratch import make_scratch, remove_scratch
from course.data.session import SparkUnavailable, cancels
from course.data.session import spark as start
from course.learner.lab import register_kernel
from tests.support.polling import until

pytestmark = pytest.mark.spark

QUERY = """
from course.data.session import spark
session = spark("child", quick=True)
print(session.range(10).repartition(2).count())
"""
ENDLESS = """
import threading, time
from course.data.session import cancels, spark
session = spark("child", quick=True)
session.range(1).count()
print(session.sparkContext._gateway.proc.pid, flush=True)
def tell():
    while not session.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.01)
    print("running", flush=True)
threading.Thread(target=tell, daemon=True).start()
with cancels(session):
    session.range(10**15).selectExpr("sum(id * id % 7)").collect()
"""


def child(code, scratch, **env):
    """Start a Python process with its own temporary folder."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=scratch,
        env=dict(os.environ, SLUICE_SCRATCH=str(scratch), **env),
        start_new_session=True,
    )


def is_alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_without_java_on_the_path_it_runs_and_prints_nothing_of_its_own(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname"):
        tools.joinpath(name).symlink_to(shutil.which(name))
    scratch = tmp_path / "with blanks [1]"
    scratch.mkdir()
    process = child(QUERY, scratch, PATH=str(tools), JAVA_HOME="", SPARK_HOME="/nowhere", SPARK_REMOTE="sc://nowhere")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "10\n", "")
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_process_leaves_no_jvm(tmp_path, number):
    process = child(ENDLESS, tmp_path)
    jvm = int(process.stdout.readline())
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    process.communicate(timeout=300)
    assert until(lambda: not is_alive(jvm))
    if number == signal.SIGINT:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupt_while_the_jvm_starts_leaves_no_jvm(tmp_path):
    process = child("from course.data.session import spark\nspark()", tmp_path)
    started = until(lambda: list(tmp_path.glob("*/jre/started")))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)  # ends when nobody holds its output open, a JVM neither
    assert started
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal
from course.data.scratch import make_scratch, remove_scratch
from course.data.session import SparkUnavailable, cancels, spark
session = spark("child", quick=True)
session.range(10).repartition(2).count()
jvm = session.sparkContext._gateway.proc
print(os.getsid(jvm.pid) == jvm.pid, session._jvm.System.getProperty("java.io.tmpdir"))
os.kill(jvm.pid, signal.SIGKILL)
try:
    with cancels(session):
        session.range(3).count()
except SparkUnavailable as error:
    print(error)
"""


@pytest.mark.slow
def test_a_killed_jvm_is_one_clear_sentence_and_leaves_nothing(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "scratch").mkdir()
    process = child(KILLED, tmp_path / "scratch", TMPDIR=str(tmp_path / "tmp"))
    out, err = process.communicate(timeout=300)
    where, said = out.splitlines()
    assert where.startswith(f"True {tmp_path}/scratch/sluice-")
    assert said.startswith("Spark ended in the middle of its work")
    assert (process.returncode, err) == (0, "")
    assert [list(folder.iterdir()) for folder in tmp_path.iterdir()] == [[], []]


@pytest.mark.slow
def test_a_notebook_that_used_spark_ends_without_a_trace(tmp_path, monkeypatch):
    """ipykernel ends the processes of its group first; the JVM must not be one of them."""
    monkeypatch.setenv("SLUICE_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "scratch").mkdir()
    specs = KernelSpecManager(kernel_dirs=[str(register_kernel(tmp_path / "kernels"))])
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs, shutdown_wait_time=12.0)
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=300)
    code = "from course.data import spark; assert spark('notebook', quick=True).range(3).count() == 3"
    answer = client.execute_interactive(code, timeout=120, allow_stdin=False)["content"]
    assert answer["status"] == "ok", answer
    assert list((tmp_path / "scratch").iterdir()) != []
    client.stop_channels()
    manager.shutdown_kernel()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_full_disk_is_one_clear_sentence(spark):
    with pytest.raises(SparkUnavailable, match=r"disk of .* is full; make room, or set TMPDIR"), cancels(spark):
        raise OSError(28, "No space left on device")
    assert spark.range(3).count() == 3


def test_a_folder_of_a_killed_process_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_SCRATCH", str(tmp_path))
    abandoned, foreign, young = (tmp_path / name for name in ("sluice-1-spark-x", "sluice-notes", "sluice-1-lab-x"))
    for folder in (abandoned, foreign, young):
        folder.mkdir()
    ours = make_scratch("spark")  # holds its lock
    for folder in (abandoned, foreign, ours):
        os.utime(folder, (0, 0))
    fresh = make_scratch("spark")
    assert sorted(tmp_path.iterdir()) == sorted([foreign, young, ours, fresh])
    remove_scratch(ours)
    remove_scratch(fresh)
    assert sorted(tmp_path.iterdir()) == sorted([foreign, young])


def test_an_unusable_java_is_one_clear_sentence(tmp_path):
    code = """
from course.data.scratch import make_scratch, remove_scratch
from course.data.session import SparkUnavailable, spark
try: spark()
except SparkUnavailable as error: print(error)
"""
    out, err = child(code, tmp_path, SLUICE_JAVA="/nowhere").communicate(timeout=300)
    assert out.startswith("Spark could not start: SLUICE_JAVA: /nowhere")
    assert err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_jvm_that_does_not_start_is_one_clear_sentence(tmp_path):
    code = """
from course.data.scratch import make_scratch, remove_scratch
from course.data.session import SparkUnavailable, spark
try: spark(spark_driver_memory="1k")
except SparkUnavailable as error: print(error)
"""
    out, _ = child(code, tmp_path).communicate(timeout=300)
    # The lines before it are the JVM's own, which names the cause.
    assert out.splitlines()[-1].startswith("Spark could not start on local[2] with Java ")
    assert "Traceback" not in out
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_course(spark):
    assert start("again") is spark
    wanted = {
        "spark.master": "local[2]",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
    }
    assert {key: spark.conf.get(key) for key in wanted} == wanted


def test_workers_run_this_python(spark):
    def where(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    assert {row.python for row in spark.range(2).mapInArrow(where, "python string").collect()} == {sys.executable}


def test_an_interrupt_cancels_the_jobs(spark):
    failed = []

    def endless():
        try:
            spark.range(10**15).selectExpr("sum(id % 7)").collect()  # days of work, and no sum that overflows
        except (PySparkException, Py4JError) as error:
            failed.append(error)

    thread = threading.Thread(target=endless, daemon=True)  # a failure here must not keep the test run alive
    tracker = spark.sparkContext.statusTracker()
    thread.start()
    assert until(tracker.getActiveJobsIds), "the job did not start"
    with pytest.raises(KeyboardInterrupt), cancels(spark):
        raise KeyboardInterrupt
    thread.join(300)
    assert not thread.is_alive()
    assert len(failed) == 1
    assert spark.range(3).count() == 3
