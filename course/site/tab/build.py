"""`try/`: a folder with the course for a tab of a browser, to be served by any server for files.

Python for browsers is Pyodide, whose core comes from npm. Ours are two archives: for the page the engine with views,
checks and messages, and for the workers that run a learner's code the engine alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from course.site.tab.pages import pages

__all__ = [
    "PYODIDE", "UnmadeError", "build_tab", "npm", "pack_course", "put_checks", "put_pyodide", "source_files",
]  # fmt: skip

PYODIDE = "314.0.7"
_SHA512 = (
    "d18bd7c4485f11da4b7dbfd790cd8114078c44eab488c517d9bcf31fda4eb6dc"
    "8c716930abe1db139bb2b860fcd8b37bcb6abe48dbe2ffa579244b0e943d91d4"
)
_CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_SECONDS = 300

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_KINDS = frozenset({".py", ".js", ".css", ".json", ".toml", ".md", ".txt"})
_ENGINE = ("refimpl",)
_COURSE = (
    "refimpl", "widgets", "course/checks", "course/curriculum", "course/exercises", "course/grading", "course/learner",
    "course/locales", "course/site/tab", "course/vectors",
)  # fmt: skip
_LEFT_OUT = ("course/learner/labextension", "course/site/tab/static")
_FOR_AUTHORS = "made_of.json"
_SINGLE = (
    "course/__init__.py",
    "course/files.py",
    "course/places.py",
    "course/site/__init__.py",
    "course/version.py",
    "course/output.py",
    "course/data/flights.py",
    "course/data/scratch.py",
)
_GATHERING = ("widgets/__init__.py", "course/data/__init__.py")
"""Packages that import all that they have, also what a browser has not: without these each module stands by itself."""


class UnmadeError(Exception):
    """The folder cannot be made; the text says why."""


def npm() -> str | None:
    """The program that brings packages from npm, or `None`."""
    return shutil.which("npm")


def build_tab(target: Path, *, has_lite: bool = False) -> None:
    """Make the folder `target`, which is not there yet; with `has_lite` its pages link to the notebooks beside it.

    Raises:
        UnmadeError: there is no npm, it could not bring the package, or the package is another one than it was.
    """
    target.mkdir(parents=True)
    put_pyodide(target / "pyodide")
    for file in sorted((_HERE / "static").iterdir()):
        if file.name not in ("sw.js", "index.html"):
            shutil.copy(file, target)
    for name, content in pages(has_lite=has_lite):
        (target / name).write_text(content, encoding="utf-8")
    put_checks(target)
    pack_course(target / "course.zip")
    _put_service_worker(target)


def put_checks(folder: Path) -> None:
    """What the runs of a check need beside `pyodide/`: the workers' script, and what they load."""
    for file in (_HERE / "static/checker.js", _HERE / "static/check_worker.js", _HERE / "at_work.py",
                 _ROOT / "course/grading/child.py", _ROOT / "course/grading/rounds.py"):  # fmt: skip
        shutil.copy(file, folder)
    _pack(folder / "engine.zip", _ENGINE)


def put_pyodide(folder: Path) -> None:
    """Make `folder` of Pyodide's core, which npm brings.

    Raises:
        UnmadeError: there is no npm, it could not bring the package, or the package is another one than it was.
    """
    program = npm()
    if program is None:
        raise UnmadeError("there is no npm, which brings Python for browsers")
    with tempfile.TemporaryDirectory(prefix="sluice-npm-") as made:
        command = [program, "pack", f"pyodide@{PYODIDE}", "--silent", "--prefer-offline", "--pack-destination", made]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=made, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise UnmadeError(f"npm did not bring pyodide@{PYODIDE} in {_SECONDS} seconds") from error
        packed = next(Path(made).glob("*.tgz"), None)
        if done.returncode or packed is None:
            raise UnmadeError(f"npm could not bring pyodide@{PYODIDE}: {done.stderr.strip()[-500:]}")
        found = hashlib.sha512(packed.read_bytes()).hexdigest()
        if found != _SHA512:
            raise UnmadeError(f"pyodide@{PYODIDE} is not what it was when it was chosen: its SHA-512 is {found}")
        folder.mkdir()
        with tarfile.open(packed) as opened:
            for name in _CORE:
                member = opened.extractfile(f"package/{name}")
                assert member is not None, f"its digest is known, and so is {name}"
                (folder / name).write_bytes(member.read())


def pack_course(archive: Path) -> None:
    """Make the archive of all that the page asks: it needs Python's standard library and nothing else."""
    _pack(archive, _COURSE, _SINGLE)


def _pack(archive: Path, folders: Iterable[str], files: Iterable[str] = ()) -> None:
    """The same sources make the same archive."""
    names = sorted({*source_files(folders), *files})
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name in names:
            if name not in _GATHERING:
                opened.writestr(zipfile.ZipInfo(name), (_ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED)


def source_files(folders: Iterable[str]) -> list[str]:
    """What the folders have to be read or run, by its place in the project."""
    found = [file for folder in folders for file in (_ROOT / folder).rglob("*") if file.suffix in _KINDS]
    names = [file.relative_to(_ROOT).as_posix() for file in found if file.is_file()]
    return sorted(
        name
        for name in names
        if "__pycache__" not in name and not name.startswith(_LEFT_OUT) and not name.endswith(_FOR_AUTHORS)
    )


def _put_service_worker(folder: Path) -> None:
    """What keeps the folder for a time without a network; it has another name when anything in it is another."""
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for name in files:
        digest.update(f"{name}\n".encode() + (folder / name).read_bytes())
    named = json.dumps(["./", *(f"./{name}" for name in files)])
    own = (_HERE / "static" / "sw.js").read_text(encoding="utf-8")
    head = f'const NAME = "sluice-{digest.hexdigest()[:16]}", FILES = {named};\n'
    (folder / "sw.js").write_text(head + own, encoding="utf-8")
