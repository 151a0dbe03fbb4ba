"""Make `.venv` hold exactly what this checkout needs; the first thing every `make` target runs.

Runs on the bare system Python (3.11 or newer, standard library only) as `python3 -I course/install.py`, because
nothing is installed yet. When nothing changed it says nothing and takes some hundredths of a second. It compares
*contents* with what `.venv/ready.json` recorded after the last complete run: touching a file costs nothing, and a
setup that was interrupted, moved to another folder or lost its Python is noticed and built again.

Exit status: 0 ready, 1 setup failed, 3 something is missing on this machine, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / "ready.json"
LOG = VENV / "setup.log"
STEPS = 4
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

GIB = 1 << 30
VENV_BYTES = int(1.6 * GIB)
"""Disk space of the finished `.venv`, measured 1.4 GiB."""
BUILD_BYTES = int(2.4 * GIB)
"""Temporary space while pip turns pyspark's source archive into a wheel, measured 2.2 GiB."""


class SetupError(Exception):
    """Setup cannot go on; the text says why and what to do. `status` is the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def say(step: int, text: str) -> None:
    """Print one numbered step."""
    print(f"[{step}/{STEPS}] {text}", flush=True)


def digest(*names: str) -> str:
    """SHA-256 of these files of the checkout, in order."""
    total = hashlib.sha256()
    for name in names:
        total.update((ROOT / name).read_bytes() + b"\0")
    return total.hexdigest()


def wanted() -> dict[str, str]:
    """Return what `ready.json` says when `.venv` is up to date."""
    # A virtual environment has its own absolute path in every script, so a moved checkout needs a new one.
    return {"location": str(ROOT), "requirements": digest("requirements.txt"), "project": digest("pyproject.toml")}


def recorded() -> dict[str, str]:
    """Return what the last complete setup recorded; empty if there is none or its Python is gone."""
    try:
        state = json.loads(READY.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(state, dict) or not PYTHON.exists():
        return {}
    # `python3` of the system may have become another version since, and the packages are in the folder of the old one.
    program = PYTHON.resolve().name
    has_packages = (VENV / "lib" / program).is_dir() or not re.fullmatch(r"python3\.\d+", program)
    return state if has_packages else {}


def free_bytes(folder: Path) -> int:
    """Free disk space, in bytes, of the file system that holds `folder`."""
    return shutil.disk_usage(folder).free


def temporary_folder() -> Path:
    """Choose the folder, not made yet, in which pip may build: on the disk of `.venv`, else the system's own place.

    Raises:
        SetupError: there is not enough space anywhere.
    """
    if free_bytes(ROOT) >= VENV_BYTES + BUILD_BYTES:
        return VENV / ".tmp"
    with contextlib.suppress(FileNotFoundError):  # there is no place for temporary files
        elsewhere = Path(tempfile.gettempdir())
        is_other = elsewhere.stat().st_dev != ROOT.stat().st_dev
        if is_other and free_bytes(ROOT) >= VENV_BYTES and free_bytes(elsewhere) >= BUILD_BYTES:
            return elsewhere / f"sluice-setup-{os.getpid()}"
    raise SetupError(
        f"Not enough disk space: installing needs {(VENV_BYTES + BUILD_BYTES) / GIB:.1f} GiB in {ROOT} "
        f"({VENV_BYTES / GIB:.1f} GiB to stay, the rest while Spark is unpacked), {free_bytes(ROOT) / GIB:.1f} GiB are "
        "free; make room, or set TMPDIR to a folder on a larger disk.",
        3,
    )


def run(command: list[str], temporary: Path | None = None) -> None:
    """Run a command of the setup and show that it moves; its whole output goes to `.venv/setup.log`.

    Raises:
        SetupError: the command failed; the text ends with the end of its output.
    """
    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PYTHONUNBUFFERED="1")
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"):
        env.pop(name, None)  # each of them would put packages somewhere else than into .venv
    if temporary:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        env["TMPDIR"] = str(temporary)
    go_on = hold_back_signals()  # one between the start and the `try` around it would leave the command running
    try:
        # In a group of its own, so that it and what it started can be ended whichever way we are.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=env,
            cwd=ROOT,
            process_group=0,
        )
        lines: list[str] = []
        reader = threading.Thread(target=follow, args=(process, lines), daemon=True)
        reader.start()
        try:
            go_on()
            show_progress(process, lines)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            reader.join()
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        go_on()
    if process.returncode:
        tail = "\n".join(f"    {line}" for line in lines[-15:])
        raise SetupError(f"This step failed. The end of its output (all of it: {LOG.relative_to(ROOT)}):\n{tail}")


def hold_back_signals() -> Callable[[], None]:
    """Keep signals that would end us until what is returned is called, which lets them do so."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _frame: came.append(number)) for each in ENDING}

    def go_on() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        while came:
            signal.raise_signal(came.pop())

    return go_on


def follow(process: subprocess.Popen[str], lines: list[str]) -> None:
    """Copy the process's output into `lines` and the log file until it ends."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())
        with contextlib.suppress(OSError), LOG.open("a", encoding="utf-8") as log:  # on a full disk, do without
            log.write(line)


def show_progress(process: subprocess.Popen[str], lines: list[str]) -> None:
    """Show elapsed seconds and the newest line until the process ends: one line rewritten, or one every 5 s."""
    live, started = sys.stdout.isatty(), time.monotonic()
    while True:
        try:
            process.wait(0.2 if live else 5)
            break
        except subprocess.TimeoutExpired:
            newest = next((line for line in reversed(lines) if line and not line.startswith("WARNING")), "working")
            text = f"      {time.monotonic() - started:4.0f} s  {newest.strip()[:90]}"
            print(f"\r\x1b[K{text}" if live else text, end="" if live else "\n", flush=True)
    if live:
        print("\r\x1b[K", end="", flush=True)


def create_venv() -> None:
    """Create `.venv` afresh; whatever an interrupted setup left there goes first.

    Raises:
        SetupError: the folder cannot be written, or this Python cannot make virtual environments.
    """
    say(1, f"Creating .venv with Python {sys.version.split()[0]}")
    try:
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
    except OSError as error:
        raise SetupError(f"Cannot write to {ROOT}: {error.strerror}; use a folder that you may write to.", 3) from error
    try:
        import ensurepip  # noqa: F401  (Debian and Ubuntu leave it out of their python3 package)
    except ImportError as error:
        raise SetupError(
            "This Python has no `ensurepip`; on Debian and Ubuntu: apt install python3-venv (or set PYTHON=...).", 3
        ) from error
    run([sys.executable, "-I", "-m", "venv", str(VENV)])


def pinned(pins: str, name: str) -> str:
    """Cut one package's pin and hashes out of the text of requirements.txt."""
    _, start, rest = pins.partition(f"\n{name}==")
    lines = (start.lstrip() + rest).splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if i and not line.startswith(" ")), len(lines))
    return "".join(lines[:end])


def install(have: dict[str, str], want: dict[str, str]) -> None:
    """Install the pinned packages and this checkout, each only if its list changed."""
    pip = [str(PYTHON), "-I", "-m", "pip", "install", "--progress-bar", "off"]
    if have.get("requirements") != want["requirements"]:
        say(2, "Checking disk space")
        temporary = temporary_folder()
        pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
        build_backend = VENV / "build-backend.txt"
        build_backend.write_text(pinned(pins, "setuptools"), encoding="utf-8")
        say(3, f"Installing {pins.count('==')} packages; Spark (450 MB) takes longest, 1 to 5 minutes in all")
        run([*pip, "--require-hashes", "--no-deps", "-r", str(build_backend)])
        # Spark comes as a source archive only; it is built with the pinned setuptools instead of one fetched unchecked.
        run([*pip, "--require-hashes", "--no-build-isolation", "-r", "requirements.txt"], temporary)
    say(4, "Installing the sluice command")
    run([*pip, "--no-deps", "--no-build-isolation", "--editable", "."])


def refresh() -> None:
    """Bring `.venv` up to date.

    Raises:
        SetupError: it could not be done; the next run starts again.
    """
    want, have = wanted(), recorded()
    if have == want:
        return
    started = time.monotonic()
    if have.get("location") != want["location"]:
        have = {}
        create_venv()
    # Without this file the next run knows that this one did not finish.
    READY.unlink(missing_ok=True)
    install(have, want)
    unfinished = READY.with_suffix(".new")
    unfinished.write_text(json.dumps(want), encoding="utf-8")
    unfinished.replace(READY)
    print(f"Ready after {time.monotonic() - started:.0f} s.", flush=True)


def end_by_signal(number: int, frame: FrameType | None) -> None:
    """End like an ordinary exit, so that pip is stopped and its temporary files removed."""
    raise SystemExit(128 + number)


def main() -> int:
    """Refresh `.venv`, one process at a time; return the exit status."""
    signal.signal(signal.SIGTERM, end_by_signal)
    signal.signal(signal.SIGHUP, end_by_signal)
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another make installs in this folder; waiting for it.", flush=True)
            fcntl.flock(folder, fcntl.LOCK_EX)  # and then everything is ready
        refresh()
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return error.status
    except OSError as error:
        print(f"\nCannot set up {VENV}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSetup interrupted; run the same command again.", file=sys.stderr)
        return 130
    finally:
        os.close(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
