"""Finds a C compiler: the machine's own, or the one that the package `ziglang` brings."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from importlib import util
from pathlib import Path

__all__ = ["COMPILERS", "CCompiler", "CompileError", "find_c_compiler", "missing_parts"]

COMPILERS = ("cc", "zig")
_NAMES = ("cc", "gcc", "clang")


class CompileError(RuntimeError):
    """The engine cannot be compiled; the text is one sentence that says why and what to do. Nothing was left behind."""

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True)
class CCompiler:
    """A C compiler: what setuptools is told through the environment, and what people are told."""

    name: str
    environment: dict[str, str]


def find_c_compiler(wanted: str | None = None) -> CCompiler:
    """The compiler of that kind; without one, the machine's own if there is one, else zig's.

    Raises:
        CompileError: there is none.
    """
    if wanted != "zig" and (own := _own()) is not None:
        return own
    if wanted != "cc" and util.find_spec("ziglang") is not None:
        return _zig()
    zig = f"`{shlex.quote(sys.executable)} -m pip install ziglang` brings one in a wheel"
    if wanted == "zig":
        raise CompileError(f"the package ziglang is not installed: {zig}", is_missing=True)
    raise CompileError(f"there is no C compiler: on Debian `apt install gcc`, or {zig}", is_missing=True)


def missing_parts() -> str:
    """Which part of Python a build needs and does not find, as a sentence; empty if all are there."""
    absent = [name for name in ("mypyc", "setuptools") if util.find_spec(name) is None]
    if absent:
        packages = " ".join("mypy" if name == "mypyc" else name for name in absent)
        return f"{' and '.join(absent)} are not installed: `{shlex.quote(sys.executable)} -m pip install {packages}`"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        return f"Python's headers are missing ({header}): on Debian `apt install python3-dev`"
    return ""


def _own() -> CCompiler | None:
    """The machine's: CC, else the one Python was built with, or a usual name, whichever is there.

    Raises:
        CompileError: CC names none; another one is not what was asked for.
    """
    asked = os.environ.get("CC", "").strip()
    for words in (asked,) if asked else (str(sysconfig.get_config_var("CC") or ""), *_NAMES):
        command = shlex.split(words)
        if command and (program := shutil.which(command[0])) is not None:
            return _told(program, shlex.join([program, *command[1:]]))
    if asked:
        raise CompileError(f"CC is {asked!r}, and there is no such compiler", is_missing=True)
    return None


def _zig() -> CCompiler:
    return _told("zig cc, of the package ziglang", shlex.join([sys.executable, "-m", "ziglang", "cc"]))


def _told(name: str, command: str) -> CCompiler:
    shared = "-bundle -undefined dynamic_lookup" if sys.platform == "darwin" else "-shared"
    return CCompiler(name, {"CC": command, "LDSHARED": f"{command} {shared}"})
