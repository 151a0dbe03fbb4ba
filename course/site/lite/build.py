"""`lite/`: a folder with JupyterLab for a browser and some of the notebooks, to be served by any server for files.

JupyterLite is JupyterLab whose kernel is Pyodide, Python for browsers. What it is made of comes from the Python package
index and from npm; a kernel loads nothing from anywhere else than this folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from course.curriculum.manifest import LESSONS
from course.data.sample import FIRST_FLIGHTS, sample_flights
from course.places import lessons_folder
from course.site.lite.wheels import bring, named
from course.site.tab.build import UnmadeError, put_checks, put_pyodide, source_files
from course.version import __version__

__all__ = ["NOTEBOOKS", "build_lite", "pack_wheel"]

NOTEBOOKS = tuple(LESSONS[number].name for number in (0, 3, 7, 11))

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_SECONDS = 300
_COURSE = (
    "refimpl", "widgets", "course/checks", "course/compiled", "course/curriculum", "course/data", "course/exercises",
    "course/figures", "course/grading", "course/learner", "course/site/lite", "course/spark", "course/swap",
    "course/vectors",
)  # fmt: skip
_NUM_FLIGHTS = 2_000
_FEDERATED = ("anywidget", "jupyterlab_widgets", "jupyterlite_pyodide_kernel")
_KERNEL_OWN = "labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi/"
_SETTINGS = "@jupyterlite/pyodide-kernel-extension:kernel"
_KERNELSPEC = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}


def build_lite(target: Path) -> None:
    """Make the folder `target`, which is not there yet.

    Raises:
        UnmadeError: pip or npm could not bring what it is made of, or JupyterLite could not be made of it.
    """
    lists = named()
    making, kernel = bring(lists["making"]), bring(lists["kernel"])
    with tempfile.TemporaryDirectory(prefix="sluice-lite-") as folder:
        source, tools = Path(folder, "source"), Path(folder, "tools")
        (source / "static").mkdir(parents=True)
        put_pyodide(source / "static/pyodide")
        packages = _put_packages(source / "static/pyodide", kernel, making)
        _put_notebooks(source / "files")
        for wheel in making:
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(tools)
        federated = [str(wheel) for wheel in (*making, *kernel) if wheel.name.split("-")[0] in _FEDERATED]
        _configure(source, packages, federated)
        _make(source, tools, Path(folder, "made"))
        _name_pages(Path(folder, "made"))
        put_checks(Path(folder, "made/static"))
        _put_offline(Path(folder, "made"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(folder, "made"), target)


def _put_packages(folder: Path, wheels: Iterable[Path], making: Iterable[Path]) -> list[str]:
    """Put the wheels that a kernel loads beside Pyodide, and make its list of packages one of these alone."""
    for wheel in wheels:
        shutil.copy(wheel, folder)
    for wheel in making:
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                if _KERNEL_OWN in name and name.endswith(".whl") and "widgetsnbextension" not in name:
                    (folder / Path(name).name).write_bytes(opened.read(name))
    pack_wheel(folder / f"sluice-{__version__}-py3-none-any.whl")
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    lock["packages"] = {}
    for wheel in sorted(folder.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        lock["packages"][name.replace("_", "-")] = {
            "name": name.replace("_", "-"), "version": version, "file_name": wheel.name,
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "install_dir": "site", "package_type": "package",
            "imports": [], "depends": [], "unvendored_tests": False,
        }  # fmt: skip
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return sorted(lock["packages"])


def pack_wheel(file: Path) -> None:
    """Make the wheel of the engine, the views and what of the course a notebook asks."""
    top = [path.relative_to(_ROOT).as_posix() for path in (_ROOT / "course").glob("*.py")]
    names = sorted({*source_files(_COURSE), *top, "course/site/__init__.py"})
    about = f"sluice-{__version__}.dist-info"
    made = {
        FIRST_FLIGHTS.relative_to(_ROOT).as_posix(): json.dumps(sample_flights(_NUM_FLIGHTS)).encode(),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: sluice\nVersion: {__version__}\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    made |= {name: (_ROOT / name).read_bytes() for name in names}
    made[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*made, f"{about}/RECORD"]).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in made.items():
            opened.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _put_notebooks(folder: Path) -> None:
    folder.mkdir()
    for name in NOTEBOOKS:
        notebook = nbformat.read(lessons_folder() / f"{name}.ipynb", as_version=4)
        notebook.metadata["kernelspec"] = dict(_KERNELSPEC)
        # JupyterLite takes texts whole, not as lists of lines.
        text = nbformat.v4.writes_json(notebook, split_lines=False)
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
    shutil.copy(lessons_folder() / "glossary.md", folder)


def _configure(source: Path, packages: list[str], federated: list[str]) -> None:
    kernel = {"loadPyodideOptions": {"packages": packages}, "disablePyPIFallback": True}
    page: dict[str, Any] = {"appName": "Sluice", "litePluginSettings": {_SETTINGS: kernel}}
    told = {"jupyter-lite-schema-version": 0, "jupyter-config-data": page}
    (source / "jupyter-lite.json").write_text(json.dumps(told), encoding="utf-8")
    how = {
        "apps": ["lab"], "contents": ["files"], "federated_extensions": federated, "no_sourcemaps": True,
        "ignore_sys_prefix": True, "output_dir": str(source.parent / "made"), "cache_dir": str(source.parent / "cache"),
    }  # fmt: skip
    (source / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": how}), encoding="utf-8")


def _make(source: Path, tools: Path, made: Path) -> None:
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(source)]
    environment = {**os.environ, "PYTHONPATH": str(tools), "JUPYTER_NO_CONFIG": "1"}
    try:
        done = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise UnmadeError(f"JupyterLite was not made in {_SECONDS} seconds") from error
    if done.returncode or not (made / "lab/index.html").is_file():
        raise UnmadeError(f"JupyterLite was not made: {(done.stderr or done.stdout).strip()[-500:]}")


def _name_pages(folder: Path) -> None:
    """Each page says where its icon is, and the application says what it is called.

    A page without that is asked for `favicon.ico` at the root of its server, where nothing of ours may be.
    """
    for page in folder.rglob("*.html"):
        up = "../" * (len(page.relative_to(folder).parts) - 1)
        before, head, after = page.read_text(encoding="utf-8").partition("<head>")
        page.write_text(f'{before}{head}<link rel="icon" href="{up}lab/favicon.ico">{after}', encoding="utf-8")
    file = folder / "manifest.webmanifest"
    about = json.loads(file.read_text(encoding="utf-8"))
    del about["shortcuts"]  # to pages that are not here
    about |= {"name": "Sluice", "short_name": "Sluice", "description": "Lessons of Sluice as notebooks, in a browser"}
    file.write_text(json.dumps(about), encoding="utf-8")


def _put_offline(folder: Path) -> None:
    """What keeps the folder for a time without a network goes before JupyterLite's own worker."""
    worker = folder / "service-worker.js"
    found = (file for file in folder.rglob("*") if file.is_file() and file != worker)
    files = sorted(file.relative_to(folder).as_posix() for file in found)
    digest = hashlib.sha256()
    for name in files:
        digest.update(f"{name}\n".encode() + (folder / name).read_bytes())
    head = f'const SLUICE_NAME = "sluice-lite-{digest.hexdigest()[:16]}", SLUICE_FILES = {json.dumps(files)};\n'
    own = (_HERE / "static/offline.js").read_text(encoding="utf-8")
    worker.write_text(head + own + worker.read_text(encoding="utf-8"), encoding="utf-8")
