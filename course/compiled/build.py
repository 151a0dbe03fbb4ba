"""Builds the compiled engine: whole, or not at all.

A build is made in a folder aside and moved when it is complete and has been tried. If it is interrupted, what is aside
goes with it; if it is killed, the next one removes it. Of two builds at the same time, one waits for the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from course.compiled import worker
from course.compiled.compilers import CCompiler, CompileError, find_c_compiler, missing_parts
from course.compiled.prepare import prepared
from course.compiled.recipe import modules
from course.compiled.standing import RECORD, compiled_folder, engine_source, ingredients, standing

__all__ = ["build", "remove"]

_ASIDE = "compiling-"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_S = 0.25
_NUM_TOLD = 15


def build(compiler: str | None, say: Callable[[str], None], *, again: bool = False) -> Path | None:
    """Compile the engine unless what is there is fresh; return its folder, or `None` if there was nothing to do.

    `compiler` is one of `COMPILERS`; `say` is told a few times a second how far it is.

    Raises:
        CompileError: something is missing, or the compiler failed; what was there before is there still.
    """
    if missing := missing_parts():
        raise CompileError(f"cannot compile the engine: {missing}", is_missing=True)
    chosen = find_c_compiler(compiler)
    folder = compiled_folder()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder.parent, say):
            if standing().is_fresh and not again:
                return None
            with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder.parent, ignore_cleanup_errors=True) as aside:
                _take_the_place(_made(Path(aside) / "new", chosen, say), folder, Path(aside) / "old")
    except OSError as error:
        raise CompileError(f"cannot write to {folder.parent}: {error.strerror or error}") from error
    return folder


def remove() -> bool:
    """Remove the compiled engine; return whether there was one."""
    is_there = compiled_folder().exists()
    shutil.rmtree(compiled_folder(), ignore_errors=True)
    return is_there


def _take_the_place(made: Path, folder: Path, old: Path) -> None:
    """Move the build to where it is used, and what was there to `old`; with all signals, both or neither."""
    with _held_signals():
        if folder.exists():
            folder.replace(old)
        try:
            made.replace(folder)
        except OSError:
            if old.exists():
                old.replace(folder)
            raise


@contextlib.contextmanager
def _held_signals() -> Iterator[None]:
    """Let a signal that ends us wait, to be heard at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _made(root: Path, compiler: CCompiler, say: Callable[[str], None]) -> Path:
    """A folder with the source, its compiled modules beside it, and the record of what they were made of."""
    say("copying the source")
    record = ingredients()
    source, engine = engine_source(), root / "refimpl"
    shutil.copytree(source, engine, ignore=shutil.ignore_patterns("__pycache__"))
    compiled = modules(source)
    texts = {path: (source / path).read_text(encoding="utf-8") for path in compiled}
    for path, text in prepared(texts).items():
        (engine / path).write_text(text, encoding="utf-8")
    _compile([f"refimpl/{path.as_posix()}" for path in compiled], root, compiler, say)
    for path, text in texts.items():  # for tracebacks, and for whoever needs the text
        (engine / path).write_text(text, encoding="utf-8")
    for left in (root / "build", root / ".mypy_cache"):
        shutil.rmtree(left, ignore_errors=True)
    say("trying it")
    _try(root, compiled[0])
    record |= {"compiler": compiler.name, "modules": str(len(compiled))}
    (root / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return root


def _compile(files: list[str], root: Path, compiler: CCompiler, say: Callable[[str], None]) -> None:
    package_root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, **compiler.environment, "PYTHONPATH": str(package_root), "PYTHONUNBUFFERED": "1"}
    environment["TMPDIR"] = str(root.parent)  # so that what a killed compiler leaves goes too
    command = [sys.executable, "-m", worker.__name__, *files]
    status, lines = _run(command, root, environment, f"mypyc translates {len(files)} modules to C", say)
    if status:
        told = "\n".join(f"    {line[:200]}" for line in _worth_telling(lines))
        raise CompileError(f"compiling the engine failed ({compiler.name}):\n{told}")


def _run(
    command: list[str], folder: Path, environment: dict[str, str], first: str, say: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run the worker in a group of its own, which is ended whichever way we end; its status and its lines."""
    process: subprocess.Popen[str] | None = None
    lines: list[str] = []
    started_s = time.monotonic()
    try:
        with _held_signals():  # so that none comes when there is a process and nobody knows it
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0,
            )
        reader = threading.Thread(target=_follow, args=(process, lines), daemon=True)
        reader.start()
        while True:
            say(f"{_how_far(lines) or first}, {time.monotonic() - started_s:.0f} s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_TICK_S)
                break
    finally:
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    reader.join()
    return process.returncode, lines


def _follow(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stdout is not None
    lines.extend(line.rstrip() for line in process.stdout)


def _how_far(lines: list[str]) -> str:
    seen = list(lines)
    total = next((line.removeprefix(worker.TOTAL).strip() for line in seen if line.startswith(worker.TOTAL)), None)
    if total is None:
        return ""
    return f"compiling file {sum(worker.COMPILES in line for line in seen)} of {total}"


def _worth_telling(lines: list[str]) -> list[str]:
    errors = [line for line in lines if "error" in line.lower() and worker.COMPILES not in line]
    return (errors or lines)[:_NUM_TOLD]


def _try(root: Path, path: Path) -> None:
    """Import the engine from there, in a process of its own.

    Raises:
        CompileError: it cannot be, or it is not compiled.
    """
    name = ".".join(("refimpl", *path.with_suffix("").parts))
    code = f"import {name} as module, refimpl.drivers, refimpl.shortcuts; print(module.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or done.stdout.strip().endswith(".py"):
        why = done.stderr.strip().rpartition("\n")[2] or f"{name} is not compiled"
        raise CompileError(f"the compiled engine cannot be imported: {why}")


@contextlib.contextmanager
def _alone_in(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let nobody else build there meanwhile, and remove what killed builds left."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process compiles; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in folder.glob(f"{_ASIDE}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)
