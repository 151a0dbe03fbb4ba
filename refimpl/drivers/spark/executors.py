"""The executors of a Spark session: the code they need, how many tasks fit on them, and why they failed.

A Spark that waits says nothing. A barrier stage that is too wide for the cluster is tried for ten minutes, and
an executor without our code fails with an error of its own; so both are seen to before the stage starts.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import pickletools
import re
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from refimpl.errors import InsufficientSlotsError, LocalUsageError, RemoteTransportError, SluiceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explain_failure", "needed_by", "ship", "wait_for_slots"]

_PAUSE_S = 0.1
_UNTIL_THE_FIRST_S = 60.0  # a machine needs some seconds to start an executor; more if it has much to do
_UNTIL_ANOTHER_S = 10.0
_CAUSES = (
    re.compile(r"ExecutorLostFailure \((?P<what>.+?)\) Reason: (?P<why>.+)"),
    re.compile(r"(?:RemoteTransportError|ConnectionFailedError): (?P<what>.+)"),
    re.compile(r"(?P<what>Python worker exited unexpectedly.*)"),
)
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_JAVA_CLASS = re.compile(r"^:? ?(?:[a-z][\w$]*\.)+[A-Z]\w*: ")


def ship(session: SparkSession, packages: Sequence[str]) -> None:
    """Give the executors these packages as they are here, for as long as the session lasts.

    An executor that takes the place of a lost one asks for them at any later time.
    """
    from pyspark import SparkFiles

    root = Path(SparkFiles.getRootDirectory())  # goes with the session
    folder = root / "packages"
    folder.mkdir(exist_ok=True)
    for package in packages:
        archive = _zipped(package, folder)
        session.sparkContext.addPyFile(str(archive))
        # Spark has made it the place to import from here too; here the package itself is that.
        sys.path[:] = [entry for entry in sys.path if entry != str(root / archive.name)]


def needed_by(order: bytes, packages: Sequence[str]) -> list[str]:
    """Packages and modules that an executor needs to read `order`, besides those that are installed.

    Each name in the pickle may be a module, and the imports of such a module are needed too.
    """
    words = {str(word) for operation, word, _ in pickletools.genops(order) if "UNICODE" in operation.name}
    unseen = {"refimpl", *packages} | {name for name in {word.partition(".")[0] for word in words} if _is_local(name)}
    found: set[str] = set()
    while unseen:
        name = unseen.pop()
        found.add(name)
        for content in _files_of(name).values():
            unseen |= {other for other in _imported_by(content) - found if _is_local(other)}
    return sorted(found)


def _imported_by(source: bytes) -> set[str]:
    """The packages that a file imports, all by their first name."""
    with suppress(SyntaxError, ValueError):  # a file that cannot be imported, or a template
        nodes = list(ast.walk(ast.parse(source)))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
        return {name.partition(".")[0] for name in names}
    return set()


def _is_local(name: str) -> bool:
    """Whether it is a module in Python's own language that has been imported here, and comes from no installation."""
    module = sys.modules.get(name)
    if module is None or name == "__main__" or name in sys.stdlib_module_names:
        return False
    place = next(iter(getattr(module, "__path__", [])), None) or getattr(module, "__file__", None)
    if place is None or not (place.endswith(".py") or Path(place).is_dir()):
        return False
    installed = {Path(sysconfig.get_path(each)).resolve() for each in ("purelib", "platlib", "stdlib")}
    return not installed & {*Path(place).resolve().parents}


def _files_of(name: str) -> dict[str, bytes]:
    """The Python files of a package, or the one of a module, by the names they have where packages lie."""
    spec = importlib.util.find_spec(name)
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        raise LocalUsageError(f"there is no package {name!r} that could be sent to the executors")
    if not spec.submodule_search_locations:
        return {f"{name}.py": Path(str(spec.origin)).read_bytes()}
    root = Path(spec.submodule_search_locations[0])
    files = {f"{name}/{file.relative_to(root)}": file.read_bytes() for file in sorted(root.rglob("*.py"))}
    folders = {str(folder) for file in files for folder in PurePosixPath(file).parents if folder.name}
    return {f"{folder}/__init__.py": b"" for folder in sorted(folders)} | files  # in an archive each one needs it


def _zipped(name: str, folder: Path) -> Path:
    """A package's Python files in one, named by its content, so that Spark takes each version once."""
    files = _files_of(name)
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file} {len(content)} ".encode() + content)
    path = folder / f"{name}-{digest.hexdigest()[:12]}.zip"
    if not path.exists():
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in files.items():
                archive.writestr(file, content)
    return path


def wait_for_slots(session: SparkSession, num_required: int, is_cancelled: Callable[[], bool]) -> None:
    """Wait until `num_required` tasks fit on the executors at one time, as long as more executors may come.

    Raises:
        InsufficientSlotsError: they do not.
    """
    context = session.sparkContext._jsc.sc()
    profile = context.resourceProfileManager().defaultResourceProfile()
    most = _slots_in_all(str(context.master()))
    num_slots, changed_s = -1, time.monotonic()
    while (now := int(context.maxNumConcurrentTasks(profile))) < num_required and not is_cancelled():
        if now != num_slots:
            num_slots, changed_s = now, time.monotonic()
        if context.isLocal() or (most is not None and most < num_required):
            raise InsufficientSlotsError(num_required, most or num_slots)
        if time.monotonic() - changed_s > (_UNTIL_ANOTHER_S if num_slots and most is None else _UNTIL_THE_FIRST_S):
            raise InsufficientSlotsError(num_required, num_slots)
        time.sleep(_PAUSE_S)


def _slots_in_all(master: str) -> int | None:
    """How many slots a cluster that Spark brings itself will have; `None` if only the cluster knows."""
    found = re.match(r"local-cluster\[ *(\d+) *, *(\d+)", master)
    return int(found[1]) * int(found[2]) if found else None


def explain_failure(error: Exception, num_tries: str) -> SluiceError:
    """The meaning of Spark's error, in a sentence."""
    text = str(error)
    if (missing := _MISSING.search(text)) is not None:
        return LocalUsageError(
            f"the executors have no module {missing[1]!r}; install it for their Python, or name it in `packages`"
        )
    cause = next(filter(None, (each.search(text) for each in _CAUSES)), None)
    if cause is not None:
        last = ": ".join(cause.groupdict().values())
        return RemoteTransportError(
            f"a TaskManager was lost in each of the {num_tries} tries that Spark makes "
            f"(spark.stage.maxConsecutiveAttempts); the last time: {last}"
        )
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("An error occurred while")]
    said = _JAVA_CLASS.sub("", lines[0]) if lines else type(error).__name__
    return RemoteTransportError(f"Spark could not run the job: {said}")
