"""The runner itself: what it starts is gone afterwards, and what goes wrong is told with its cause."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from course.flink.command import COMPILER, JAR, find_compiler, flink_folder
from course.peer.process import MAIN, PROGRAM, Peer, PeerError
from course.spark.java import find_java

pytestmark = [pytest.mark.flink, pytest.mark.slow]


def test_a_test_that_fails_leaves_no_process():
    producer = Peer("flink", "serve")

    def failing_test():
        with producer:
            producer.wait_for("listening")
            assert producer.is_running
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_test()
    assert not psutil.pid_exists(producer.pid)


def test_an_end_that_dies_is_told_with_its_status_and_stderr(peer):
    producer = peer("flink", "serve")
    producer.wait_for("listening")
    producer.kill()
    with pytest.raises(PeerError, match=r"flink serve ended with status -9 and did not say 'done'(?s:.*)SLF4J"):
        producer.wait_for("done")
    with pytest.raises(PeerError, match="status -9"):
        producer.done()


def test_an_error_of_the_peer_is_an_error_of_the_test(peer):
    with pytest.raises(PeerError, match=r"reported an error before 'listening'(?s:.*)NumberFormatException"):
        peer("flink", "serve", records="x").wait_for("listening")


def test_another_exit_status_is_an_error(peer):
    producer = peer("flink", "serve", records=10)
    peer("flink", "consume", **producer.offer()).done()
    with pytest.raises(PeerError, match="ended with status 0 instead of 4"):
        producer.done(exit_code=4)


def test_no_wait_is_longer_than_the_limit(peer):
    producer = peer("flink", "serve", seconds=1, max_seconds=60)
    with pytest.raises(PeerError, match="did not say 'done' within 1 s"):
        producer.wait_for("done")
    with pytest.raises(PeerError, match="did not end within 1 s"):
        producer.exit_code()


@pytest.fixture
def folder(tmp_path):
    """A folder with what was fetched, in which nothing was compiled."""
    for path in flink_folder().glob("*.jar"):
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def test_two_may_compile_at_once(folder):
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(PROGRAM.compiled, [folder, folder])
    assert first == second == PROGRAM.classes(folder)
    assert [path.name for path in folder.iterdir() if path.suffix != ".jar"] == [first.name]
    assert list(first.rglob("FlinkPeer.class"))


def test_without_a_jdk_the_fetched_compiler_does_it(folder, monkeypatch, lacking):
    if not COMPILER.is_in(folder):
        lacking("no Java compiler was fetched; `sluice flink fetch --compiler` brings it")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_compiler(folder).verdict.startswith("Eclipse's compiler on Java ")
    class_path = f"{PROGRAM.compiled(folder)}:{folder / JAR.name}"
    command = [find_java().program, "-cp", class_path, MAIN, "serve", "--records", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "NumberFormatException" in done.stdout) == (1, True), done.stderr
