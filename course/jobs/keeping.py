"""`--checkpoint DIR --every TIME --restore [SAVEPOINT]`: where a run keeps its state, how often, where it goes on."""

from __future__ import annotations

import argparse
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course.jobs.job_files import JobError
from refimpl.config import Config, FlinkVersion
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.spark import TrySummary
from refimpl.errors import ConfigError, RestoreRefusedError, StoreError
from refimpl.job import StreamEnvironment
from refimpl.state.layout import JobStore, manifest_key, savepoint_folder
from refimpl.state.recovery import manifest_keys

__all__ = ["Keeping", "Kept", "add_arguments", "came_to_on_spark", "check", "interval_ms", "keeping_of"]

_DEFAULT_EVERY_MS = 1000
_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_MOST_MS = 24 * 3_600_000
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min|h)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kept:
    """What came of the checkpoints of a run: how many are complete and how many failed, how often the job began again,
    and the checkpoint from which it went on at last."""

    completed: int
    failed: int
    restarts: int
    restored: int | None

    def __str__(self) -> str:
        said = f"{self.completed} checkpoint{'' if self.completed == 1 else 's'} taken"
        if self.failed:
            said += f", {self.failed} failed"
        if self.restarts:
            said += f", {self.restarts} restart{'' if self.restarts == 1 else 's'}"
        return said if self.restored is None else f"{said}; went on from checkpoint {self.restored}"


@dataclass(frozen=True, slots=True)
class Keeping:
    """The store of a run, the name of its job there, and that of the savepoint it begins with, if it does."""

    store: FileStore
    job: str
    trust_pickle: bool
    savepoint: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """For a driver; only one that can begin with a savepoint is told of it."""
        options = {"store": self.store, "job": self.job, "trust_pickle": self.trust_pickle}
        return options if self.savepoint is None else {**options, "savepoint": self.savepoint}

    def refused(self, error: RestoreRefusedError) -> JobError:
        """Why the job cannot go on from there, and what can be done where others could have written what is there."""
        more = "" if self.trust_pickle else f"; other users can write to {self.store.folder}: chmod o-w, if it is yours"
        return JobError(f"--restore: {error}{more}")

    def came_to(self, recovery: JobRecovery) -> Kept:
        """What came of it."""
        counts = recovery.checkpoints.stats.snapshot().counts
        manifest = None if recovery.checkpoints.recovered is None else recovery.checkpoints.recovered.manifest
        return Kept(
            counts.num_completed,
            counts.num_failed,
            recovery.graph.generation,
            None if manifest is None else manifest.checkpoint_id,
        )


def came_to_on_spark(summary: TrySummary) -> Kept:
    """What came of the checkpoints of a job on Spark."""
    return Kept(summary.completed, summary.failed, summary.number - 1, summary.restored)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The four options."""
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep checkpoints in this folder: a job that fails goes on from the newest (see `sluice checkpoints`); "
        "on Spark all executors must see it, and each try of a stage goes on from there",
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        help="how often: 500ms, 1s, 2min (default: as the job says, else 1s)",
    )
    parser.add_argument(
        "--unaligned-after",
        metavar="TIME",
        help="barriers that have waited so long overtake what waits before them, and it becomes part of the "
        "checkpoint; with the wire format of Flink 2.x, whose barriers say how long they wait",
    )
    parser.add_argument(
        "--restore",
        nargs="?",
        const="",
        metavar="SAVEPOINT",
        help="go on from the newest sound checkpoint in DIR, or from the savepoint of that name, with any number of "
        "TaskManagers; state may be pickled, so nobody else should be able to write there",
    )


def interval_ms(word: str, option: str = "--every") -> int:
    """A time such as `500ms`, in ms; `option` is what it was given for.

    Raises:
        JobError: it is none, or none that can be waited for.
    """
    found = _TIME.fullmatch(word.strip())
    if found is None:
        raise JobError(f"{option} {word!r} is no time; write a number and its unit: 500ms, 1s, 2min, 1h")
    value_ms = float(found[1]) * _MS[found[2]]
    if not 1 <= value_ms <= _MOST_MS:
        raise JobError(f"{option} {word!r} cannot work: from 1ms to 24h")
    return round(value_ms)


def check(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together, or with the driver, before anything is loaded.

    Raises:
        JobError: which, and why.
    """
    if arguments.checkpoint is None:
        for name in ("every", "unaligned_after", "restore"):
            if getattr(arguments, name) is not None:
                raise JobError(f"--{name.replace('_', '-')} is about checkpoints; say where they are: --checkpoint DIR")
        return
    if arguments.job == "flights":
        raise JobError("--checkpoint is for job files: the flights come from Spark, anew in each run")
    if arguments.trace is not None and arguments.on == "processes":
        raise JobError("--trace does not go with --checkpoint on processes: one that is replaced would begin it anew")
    if arguments.restore and arguments.on == "spark":
        raise JobError(f"--restore {arguments.restore} does not go with spark, whose tries take the newest checkpoint")
    if arguments.every is not None:
        interval_ms(arguments.every)
    if arguments.unaligned_after is not None:
        interval_ms(arguments.unaligned_after, "--unaligned-after")


def _unaligned_after(wait_ms: int, config: Config) -> Config:
    """The options of a job whose barriers overtake after a wait.

    Raises:
        JobError: the job has an option that does not go with it.
    """
    version = FlinkVersion.V2_2
    try:
        return replace(config, unaligned=True, aligned_checkpoint_timeout_ms=wait_ms, flink_version=version)
    except ConfigError as error:
        raise JobError(f"--unaligned-after does not go with this job: {error}") from error


def keeping_of(arguments: argparse.Namespace, environment: StreamEnvironment) -> Keeping | None:
    """What the options ask for, if anything; they have passed `check`. `environment` is told how often.

    Raises:
        JobError: the folder cannot be written, or has what was not asked for, or has not what was.
    """
    folder: Path | None = arguments.checkpoint
    if folder is None:
        return None
    every_ms = environment.config.checkpoint_interval_ms or _DEFAULT_EVERY_MS
    if arguments.every is not None:
        every_ms = interval_ms(arguments.every)
    environment.config = replace(environment.config, checkpoint_interval_ms=every_ms)
    if arguments.unaligned_after is not None:
        wait_ms = interval_ms(arguments.unaligned_after, "--unaligned-after")
        environment.config = _unaligned_after(wait_ms, environment.config)
    job = _name_of(arguments.job)
    restores = arguments.restore is not None
    if restores and not folder.is_dir():
        raise JobError(f"--restore: {folder} is {'no folder' if folder.exists() else 'not there'}")
    try:
        store = FileStore(folder)
        there = JobStore(store, job).list("")
    except StoreError as error:
        raise JobError(f"no checkpoint can be kept in {folder}: {error}") from error
    if restores and not there:
        raise JobError(f"--restore: {folder} has nothing of {job}; it has {_jobs_in(folder)}")
    if not restores and (manifests := manifest_keys(there)):
        raise JobError(
            f"{folder} has {len(manifests)} checkpoint{'' if len(manifests) == 1 else 's'} of {job}: "
            f"say --restore to go on from there, or name another folder"
        )
    savepoint: str | None = arguments.restore or None
    if savepoint is not None and manifest_key(savepoint_folder(savepoint)) not in there:
        raise JobError(f"--restore: {folder} has no savepoint {savepoint!r} of {job}; it has {_savepoints_in(there)}")
    return Keeping(store, job, restores and _is_ours_alone(folder), savepoint)


def _savepoints_in(keys: Sequence[str]) -> str:
    """The names of those that are complete; their folders are named `sp-`, the name, and a slash."""
    known = (key.removeprefix("sp-").removesuffix("/_metadata") for key in keys if key.startswith("sp-"))
    return ", ".join(sorted({name for name in known if "/" not in name})) or "none"


def _name_of(job: str) -> str:
    """The name by which a store knows a job: of its file or module, and of its function if that is not `job`."""
    place, colon, function = job.rpartition(":")
    if not colon or job.endswith(".py"):
        place, function = job, ""
    stem = Path(place).stem if place.endswith(".py") else place
    return stem if function in ("", "job") else f"{stem}:{function}"


def _jobs_in(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return ", ".join(names) or "nothing at all"


def _is_ours_alone(folder: Path) -> bool:
    """Whether only this user, and who he trusts, can write there."""
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & stat.S_IWOTH
