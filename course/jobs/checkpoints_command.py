"""`sluice checkpoints`: what lies in a folder of checkpoints, what one consists of, and whether all of it is sound."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refimpl.checkpoint.words import LIST_HEAD, duration_words, list_row, size_words
from refimpl.drivers.file_store import FileStore
from refimpl.errors import CorruptFileError, StoreError
from refimpl.state.layout import checkpoint_id_of, manifest_key
from refimpl.state.manifest import Manifest
from refimpl.state.recovery import manifest_keys
from refimpl.state.soundness import problems_of, read_manifest

__all__ = ["add_arguments", "run"]

PASSED, NOT_PASSED, WRONG_USE = 0, 1, 2


class NoCheckpointsError(Exception):
    """The folder is none, or has no checkpoints; the text says what was looked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint or savepoint in the folder of its job: its manifest, or what is wrong with that."""

    job_folder: Path
    key: str
    manifest: Manifest | None
    problem: CorruptFileError | None

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.key.split("/")[0]

    @property
    def order(self) -> tuple[str, int, str]:
        """By job, then by number."""
        number = self.manifest.checkpoint_id if self.manifest else checkpoint_id_of(self.key) or 0
        return str(self.job_folder), number, self.key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice checkpoints`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser("list", help="a line for each checkpoint and savepoint")
    shown = actions.add_parser("show", help="what one of them consists of")
    checked = actions.add_parser("verify", help="read every file of each, and compare every checksum")
    for each in (listed, shown, checked):
        each.add_argument(
            "folder", type=Path, metavar="DIR", help="the store, the folder of one job in it, or of one checkpoint"
        )
        each.add_argument("--json", action="store_true", help="the same for a program")
    shown.add_argument("--id", type=int, metavar="N", help="the number of the checkpoint (default: the newest)")


def run(arguments: argparse.Namespace) -> int:
    """Run `sluice checkpoints`; the exit status is 0 good, 1 damaged or none there, 2 no such folder."""
    folder: Path = arguments.folder
    if not folder.is_dir():
        print(f"{folder} is {'no folder' if folder.exists() else 'not there'}", file=sys.stderr)
        return WRONG_USE
    try:
        found = sorted(_found(folder.absolute()), key=lambda each: each.order)
        return {"list": _list, "show": _show, "verify": _verify}[arguments.action](found, arguments)
    except (NoCheckpointsError, StoreError) as error:
        print(error, file=sys.stderr)
        return NOT_PASSED


def _found(folder: Path) -> list[Found]:
    """What is in the folder of one checkpoint, of a job, or of several jobs.

    Raises:
        NoCheckpointsError: nothing is.
    """
    if re.fullmatch(r"chk-\d+|sp-.+", folder.name):
        return [_read(folder.parent, manifest_key(f"{folder.name}/"))]
    jobs = [folder, *sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))]
    found = [_read(job, key) for job in jobs for key in _manifests_in(job)]
    if not found:
        unfinished = sorted(path.name for path in folder.glob("chk-*"))
        more = f"; {', '.join(unfinished)} never got a manifest, so none of them is a checkpoint" if unfinished else ""
        raise NoCheckpointsError(f"there is no checkpoint in {folder}: no chk-N/_metadata, no sp-NAME/_metadata{more}")
    return found


def _manifests_in(job: Path) -> list[str]:
    return manifest_keys(sorted(path.relative_to(job).as_posix() for path in job.glob("*/_metadata")))


def _read(job: Path, key: str) -> Found:
    try:
        return Found(job, key, read_manifest(FileStore(job), key), None)
    except CorruptFileError as error:
        return Found(job, key, None, error)


# -- list ------------------------------------------------------------------------------------------


def _list(found: list[Found], arguments: argparse.Namespace) -> int:
    rows = [_row(each) for each in found]
    if arguments.json:
        print(json.dumps({"checkpoints": rows}, indent=2))
        return PASSED
    print(f"{LIST_HEAD}  {'job':<16}  operators")
    for row in rows:
        if "problem" in row:
            print(f"{row['name']:>6}  damaged: {row['problem']}")
            continue
        operators = ", ".join(row["operators"]) or "none with state"
        begun = list_row(row["id"], row["kind"], row["bytes"], row["duration_ms"])
        print(f"{begun}  {row['job']:<16}  {operators}")
    return PASSED


def _row(each: Found) -> dict[str, Any]:
    manifest = each.manifest
    if manifest is None:
        return {"name": each.name, "folder": str(each.job_folder / each.name), "problem": str(each.problem)}
    return {
        "name": each.name,
        "folder": str(each.job_folder / each.name),
        "id": manifest.checkpoint_id,
        "kind": manifest.kind.value,
        "job": manifest.job,
        "bytes": sum(file.size for file in manifest.files().values()),
        "channel_state": manifest.channel_state,
        "duration_ms": manifest.completed_ms - manifest.started_ms,
        "operators": [operator.uid for operator in manifest.operators],
    }


# -- show ------------------------------------------------------------------------------------------


def _show(found: list[Found], arguments: argparse.Namespace) -> int:
    wanted = arguments.id
    several = [each for each in found if wanted is None or (each.manifest and each.manifest.checkpoint_id == wanted)]
    if not several:
        there = ", ".join(str(each.manifest.checkpoint_id) for each in found if each.manifest)
        raise NoCheckpointsError(f"there is no checkpoint {wanted}; there are: {there}")
    shown = several[-1]
    if shown.manifest is None:
        raise NoCheckpointsError(str(shown.problem))
    if arguments.json:
        print(json.dumps(json.loads(shown.manifest.to_bytes().splitlines()[0]), indent=2))
    else:
        print("\n".join(_lines(shown.manifest)))
    return PASSED


def _lines(manifest: Manifest) -> Iterator[str]:
    yield f"{manifest.kind.value} {manifest.checkpoint_id} of job {manifest.job}"
    yield f"  written by {manifest.engine}, leader of epoch {manifest.epoch}, run {manifest.run}"
    took = duration_words(manifest.completed_ms - manifest.started_ms)
    yield f"  took {took}, from {manifest.started_ms} ms since 1970"
    if manifest.channel_state:
        yield f"  of its bytes {size_words(manifest.channel_state)} were in flight: the checkpoint was unaligned"
    if not manifest.fsync:
        yield "  nobody waited for the disk: a power failure may have taken parts of it"
    for operator in manifest.operators:
        subtasks = f"{operator.parallelism} of at most {operator.max_parallelism} subtasks"
        yield f"operator {operator.uid} ({operator.type_name}), {subtasks}"
        for state in operator.states:
            pickled = ", PICKLED: restored only by who trusts the store" if state.pickled else ""
            yield f"  state {state.name}: {state.kind}, written as {state.serializer}{pickled}"
        for number, file in enumerate(operator.subtasks):
            where = "nothing" if file is None else f"{file.key}, {size_words(file.size)}, SHA-256 {file.sha256[:12]}…"
            in_flight = (
                f", {size_words(file.channel_state)} in flight" if file is not None and file.channel_state else ""
            )
            yield f"  subtask {number}: {where}{in_flight}"


# -- verify ----------------------------------------------------------------------------------------


def _verify(found: list[Found], arguments: argparse.Namespace) -> int:
    problems = []
    files = in_flight = 0
    for each in found:
        bad = [each.problem] if each.problem else []
        if each.manifest is not None:
            files += len(each.manifest.files())
            in_flight += each.manifest.channel_state
            bad += problems_of(FileStore(each.job_folder), each.manifest)
        problems += [{"file": str(each.job_folder / one.file), "why": one.why} for one in bad]
    unique = [problem for number, problem in enumerate(problems) if problem not in problems[:number]]
    if arguments.json:
        counts = {"checkpoints": len(found), "files": files, "channel_state": in_flight}
        print(json.dumps({**counts, "problems": unique}, indent=2))
    else:
        for problem in unique:
            print(f"{problem['file']}: {problem['why']}")
        if not unique:
            more = f", {size_words(in_flight)} of them in flight" if in_flight else ""
            print(f"{len(found)} checkpoints with {files} state files{more}: all as they were written")
    return NOT_PASSED if unique else PASSED
