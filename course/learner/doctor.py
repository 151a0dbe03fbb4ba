"""`sluice doctor`: what this machine has, what is missing, and the one next step for each problem.

Each finding is one line with a mark and a word, so that nothing depends on colour.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

from course.compiled.standing import standing
from course.data import FlightsUnavailable, SparkUnavailable
from course.data.flights import NUM_FLIGHTS, verified_path
from course.data.scratch import runs_programs, scratch
from course.flink.command import FlinkUnavailable, find_compiler, flink_folder, jar_path
from course.grading import boundary as system_boundary
from course.learner.lab import FIRST_PORT, is_free, register_kernel
from course.places import home, is_checkout, lessons_folder, work_folder
from course.spark.java import JavaUnavailable, candidates, find_java

__all__ = ["Finding", "Status", "add_arguments", "examine", "run"]

GIB = 1 << 30
DISK_BYTES = 1 * GIB
"""What lessons, traces and Spark's temporary files may take beside the installation."""
MEMORY_BYTES = 4 * GIB
"""Spark's JVM, two Python workers, JupyterLab and one kernel, measured 2 GiB, and a browser."""


REPAIR = (
    "run `make clean lab`: it builds .venv again" if is_checkout() else "run `pip install --force-reinstall sluice`"
)


class Status(Enum):
    """How a finding matters; only `MISSING` makes the exit status 3."""

    FINE = "fine"
    NOTE = "note"
    MISSING = "missing"


_MARKS = {Status.FINE: "✓", Status.NOTE: "•", Status.MISSING: "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `next_step` is empty when there is nothing to do."""

    name: str
    status: Status
    text: str
    next_step: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice doctor`."""
    parser.add_argument("--deep", action="store_true", help="also start Spark and a kernel (about 15 s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 0 if nothing is missing, else 3."""
    findings = []
    for finding in examine(deep=arguments.deep):
        findings.append(finding)
        if not arguments.json:
            print(f"{_MARKS[finding.status]} {finding.status.value:<8}{finding.name:<12}{finding.text}", flush=True)
            if finding.next_step:
                print(f"{'':22}→ {finding.next_step}", flush=True)
    missing = [finding for finding in findings if finding.status is Status.MISSING]
    if arguments.json:
        rows = [asdict(finding) | {"status": finding.status.value} for finding in findings]
        print(json.dumps({"ready": not missing, "findings": rows}, indent=1))
    else:
        names = ", ".join(finding.name for finding in missing)
        print(f"\n{len(missing)} missing: {names}." if missing else "\nThis machine is ready.")
    return 3 if missing else 0


def examine(*, deep: bool = False) -> Iterator[Finding]:
    """Look at one thing after the other and yield what was found; `deep` starts Spark and a kernel too."""
    looks: list[Callable[[], Finding]] = [python, packages, java, spark_scripts, data, lessons, work, disk, memory]
    looks += [port, kernel, browser, flink, compiler, engine, boundary]
    looks += [spark_starts, kernel_starts] if deep else []
    for look in looks:
        yield look()


def python() -> Finding:
    """Which Python runs this."""
    version = sys.version.split()[0]
    if not (3, 11) <= sys.version_info < (3, 14):
        return Finding("Python", Status.NOTE, f"{version}; Sluice is tested with 3.11 to 3.13")
    return Finding("Python", Status.FINE, f"{version} at {sys.executable}")


def packages() -> Finding:
    """Whether the installed packages are those that Sluice asks for, and in a checkout the pinned ones."""
    installed = {_canonical(dist.name): dist.version for dist in metadata.distributions() if dist.name}
    needed = [_canonical(line) for line in metadata.requires("sluice") or () if "extra ==" not in line]
    pins = _pins(home() / "requirements.txt")
    absent = [name for name in needed if name not in installed]
    other = [f"{name} {installed[name]} (pinned {pins[name]})" for name in needed if name in installed and name in pins]
    other = [text for text in other if text.split()[1] != text.split()[-1].rstrip(")")]
    if absent or other:
        text = "; ".join(filter(None, ("not installed: " + ", ".join(absent) if absent else "", ", ".join(other))))
        return Finding("packages", Status.MISSING if absent else Status.NOTE, text, REPAIR)
    return Finding("packages", Status.FINE, f"{len(needed)} installed" + (", as pinned" if pins else ""))


def boundary() -> Finding:
    """What of the system keeps code that is checked to its own folder."""
    found = system_boundary.available()
    if found is None:
        text = "none: checks run in a fence of Python's alone; receipts of others are run only with --trust"
        return Finding("boundary", Status.NOTE, text)
    if refused := _refused_boundary():
        text = f"{found} are here and were refused ({refused}), so nothing can be checked"
        return Finding("boundary", Status.MISSING, text, "often a container refuses them: allow both, or go outside it")
    return Finding("boundary", Status.FINE, f"{found} keep code that is checked to its own folder")


def _refused_boundary() -> str:
    """Why the boundary cannot be put up, tried in a process that ends at once; empty if it can."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['raise_boundary'](sys.argv[2], [], [], [])"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-I", "-c", code, system_boundary.__file__, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2].rpartition("Error: ")[2]


def java() -> Finding:
    """Which Java Spark will use, and which ones are passed over."""
    try:
        chosen = find_java()
    except JavaUnavailable as error:
        return Finding("Java", Status.MISSING, str(error), f"{REPAIR}, and with it a Java")
    passed_over = [java.verdict for java in candidates() if not java.is_usable]
    text = chosen.verdict + (f"; passed over: {'; '.join(passed_over)}" if passed_over else "")
    return Finding("Java", Status.NOTE if passed_over else Status.FINE, text)


def spark_scripts() -> Finding:
    """Whether the programs that Spark's start scripts call are there."""
    absent = [name for name in ("bash", "dirname") if shutil.which(name) is None]
    if absent:
        step = f"install {', '.join(absent)} (Debian: apt install bash coreutils)"
        return Finding("Spark", Status.MISSING, f"its start scripts need {', '.join(absent)}", step)
    return Finding("Spark", Status.FINE, f"{_version('pyspark')}; `--deep` starts it")


def data() -> Finding:
    """Whether the flights are there and undamaged."""
    try:
        path = verified_path()
    except FlightsUnavailable as error:
        text, _, step = str(error).partition(" Run ")
        return Finding("flights", Status.MISSING, text, f"run {step}" if step else "")
    megabytes = path.stat().st_size / 1e6
    return Finding("flights", Status.FINE, f"{NUM_FLIGHTS} departures, {megabytes:.1f} MB, checksum right")


def lessons() -> Finding:
    """Whether the lessons are there."""
    found = len(list(lessons_folder().glob("[0-9][0-9]_*.ipynb")))
    if not found:
        step = "unset SLUICE_LESSONS" if "SLUICE_LESSONS" in os.environ else REPAIR
        return Finding("lessons", Status.MISSING, f"none in {lessons_folder()}", step)
    return Finding("lessons", Status.FINE, f"{found} in {lessons_folder()}")


def work() -> Finding:
    """Whether the learner's folder and the temporary folder can be written."""
    folders = [work_folder(), Path(os.environ.get("SLUICE_SCRATCH") or tempfile.gettempdir())]
    for folder in folders:
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not os.access(existing, os.W_OK | os.X_OK):
            step = "set SLUICE_WORK (lessons) or TMPDIR (temporary files) to another folder"
            return Finding("folders", Status.MISSING, f"cannot write to {folder}", step)
    text = f"{folders[0]} and {folders[1]} can be written"
    if (wanted := os.environ.get("TMPDIR")) and not os.access(wanted, os.W_OK | os.X_OK):
        return Finding("folders", Status.NOTE, f"{text}; TMPDIR cannot: {wanted}")
    return Finding("folders", Status.FINE, text)


def disk() -> Finding:
    """Free disk space for lessons and for temporary files."""
    temporary = Path(os.environ.get("SLUICE_SCRATCH") or tempfile.gettempdir())
    if not runs_programs(temporary):
        text = f"no file of {temporary} may be run (it is mounted with noexec), so Java cannot start there"
        return Finding("disk", Status.MISSING, text, "set SLUICE_SCRATCH to a folder on another disk")
    folders = (home(), temporary)
    least, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
    text = f"{least / GIB:.1f} GiB free in {folder}"
    if least < DISK_BYTES:
        return Finding("disk", Status.MISSING, f"{text}, {DISK_BYTES / GIB:.0f} GiB needed", "make room, or set TMPDIR")
    return Finding("disk", Status.FINE, text)


def memory() -> Finding:
    """Memory that new programs can have; on macOS all that is installed."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        available = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text(encoding="ascii"))
        size, word = int(available.group(1)) * 1024 if available else 0, "available"
    else:
        size, word = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "installed"
    text = f"{size / GIB:.1f} GiB {word}"
    if size < MEMORY_BYTES:
        text = f"{text}, {MEMORY_BYTES / GIB:.0f} GiB are comfortable"
        return Finding("memory", Status.NOTE, text, "close other programs")
    return Finding("memory", Status.FINE, text)


def port() -> Finding:
    """Whether JupyterLab's usual port is free."""
    if is_free(FIRST_PORT):
        return Finding("port", Status.FINE, f"127.0.0.1:{FIRST_PORT} is free")
    return Finding("port", Status.NOTE, f"127.0.0.1:{FIRST_PORT} is in use; `sluice lab` takes the next free one")


def kernel() -> Finding:
    """Whether the notebooks' kernel is installed beside this Python."""
    version = _version("ipykernel")
    if not version:
        return Finding("kernel", Status.MISSING, "ipykernel is not installed", REPAIR)
    return Finding("kernel", Status.FINE, f"ipykernel {version} runs {sys.executable}")


def browser() -> Finding:
    """Whether the tests of the live views can run; learners do not need it."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        return Finding("Chromium", Status.NOTE, "not found; only the browser tests of `make test` need it")
    return Finding("Chromium", Status.FINE, f"{program}, for the browser tests")


def flink() -> Finding:
    """Whether the real Flink is there; learners do not need it."""
    try:
        return Finding("Flink", Status.FINE, f"{jar_path(flink_folder())}, for the tests against the real Flink")
    except FlinkUnavailable:
        text = f"not in {flink_folder()}; only the tests against it need it (`sluice flink fetch`)"
        return Finding("Flink", Status.NOTE, text)


def compiler() -> Finding:
    """Whether these tests can compile the Java part of theirs."""
    try:
        return Finding("compiler", Status.FINE, f"{find_compiler(flink_folder()).verdict}, for the same tests")
    except FlinkUnavailable:
        text = "no javac; only the same tests need one (`sluice flink fetch` brings another)"
        return Finding("compiler", Status.NOTE, text)


def engine() -> Finding:
    """Which engine jobs run that `sluice demo`, `run` and `engine` start; lessons always run the source."""
    found = standing()
    if found.is_fresh:
        text = f"compiled, for demo, run and engine: {found.made.get('modules')} modules"
        return Finding("engine", Status.FINE, text)
    if found.is_there:
        text = f"the source; the compiled one is not used: {found.stale}"
        return Finding("engine", Status.NOTE, text, "run `make fast`, or `sluice compile --remove`")
    return Finding("engine", Status.FINE, "the source; `make fast` compiles it for larger jobs, and nothing needs that")


def spark_starts() -> Finding:
    """Start Spark and run one small job."""
    from course.data import spark

    started = time.monotonic()
    try:
        session = spark("doctor", quick=True)
        total = session.range(1000).count()
    except SparkUnavailable as error:
        return Finding("Spark job", Status.MISSING, str(error), "see the lines above on Java and Spark")
    jvm = session.sparkContext._jvm
    assert jvm is not None, "the session has run a job"
    version = jvm.System.getProperty("java.version")
    text = f"started on Java {version} and counted {total} rows in {time.monotonic() - started:.1f} s"
    return Finding("Spark job", Status.FINE, text)


def kernel_starts() -> Finding:
    """Start a kernel as JupyterLab would and let it import the engine."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

    started = time.monotonic()
    with scratch("doctor") as folder:
        specs = KernelSpecManager(kernel_dirs=[str(register_kernel(folder))])
        manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
        # A kernel on TCP warns that local programs could listen; JupyterLab starts it the same way.
        manager.start_kernel(stderr=subprocess.DEVNULL, env=dict(os.environ, IPYTHONDIR=str(folder / "ipython")))
        client = manager.client()
        try:
            client.start_channels()
            client.wait_for_ready(timeout=60)
            content = client.execute_interactive("import refimpl", timeout=60, allow_stdin=False)["content"]
        except (RuntimeError, TimeoutError) as error:
            content = {"status": "error", "ename": "no answer from the kernel", "evalue": error}
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    if content["status"] != "ok":
        return Finding("kernel run", Status.MISSING, f"{content.get('ename')}: {content.get('evalue')}", REPAIR)
    return Finding("kernel run", Status.FINE, f"answered and imported the engine in {time.monotonic() - started:.1f} s")


def _version(name: str) -> str:
    """Version of an installed package, empty if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _canonical(requirement: str) -> str:
    """Return the name of a requirement as package indexes spell it: `Jinja_2>=3` is `jinja-2`."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name.group()).lower() if name else ""


def _pins(requirements: Path) -> dict[str, str]:
    """Read name and version of each pin that has no condition; empty without the file."""
    if not requirements.is_file():
        return {}
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+) \\$", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    return {_canonical(name): version for name, version in found}
