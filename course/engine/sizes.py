"""How large a cluster is: TaskManagers that are always there, or those that come on demand."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from course.jobs.keeping import interval_ms
from refimpl.errors import LocalUsageError

__all__ = ["NUM_TASK_MANAGERS", "add_on_demand", "add_size", "number_of", "size_line", "size_of"]

NUM_TASK_MANAGERS = 3
"""If nobody says."""


def number_of(least: int, most: int) -> Callable[[str], int]:
    """Reads an argument that is a whole number within these."""

    def read(word: str) -> int:
        if word.isdecimal() and least <= int(word) <= most:
            return int(word)
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {least} to {most}")

    return read


def add_size(parser: argparse.ArgumentParser) -> None:
    """How many TaskManagers are always there, and of what size."""
    parser.add_argument(
        "--task-managers", type=number_of(1, 64), metavar="N", help=f"how many, a process each ({NUM_TASK_MANAGERS})"
    )
    parser.add_argument("--slots", type=number_of(1, 256), default=2, metavar="N", help="of each (%(default)s)")


def add_on_demand(parser: argparse.ArgumentParser) -> None:
    """TaskManagers that come and go."""
    parser.add_argument(
        "--on-demand",
        type=number_of(1, 64),
        metavar="N",
        help="instead of --task-managers: they come when jobs need slots, up to N, and are replaced",
    )
    parser.add_argument(
        "--idle", metavar="TIME", help="after which one that came on demand and that no job uses is ended (30s)"
    )


def size_of(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """How many TaskManagers there are always, and the options for those on demand.

    Raises:
        JobError, LocalUsageError: the options do not go together, or the time is none.
    """
    if arguments.on_demand is None:
        if arguments.idle is not None:
            raise LocalUsageError("--idle is for TaskManagers that come --on-demand N")
        return arguments.task_managers or NUM_TASK_MANAGERS, {}
    if arguments.task_managers is not None:
        raise LocalUsageError("--task-managers are always there, those --on-demand are not; give one of both")
    on_demand: dict[str, Any] = {"max_workers": arguments.on_demand}
    if arguments.idle is not None:
        on_demand["idle_timeout_ms"] = interval_ms(arguments.idle, "--idle")
    return 0, on_demand


def size_line(names: list[str]) -> str:
    """How many TaskManagers are there, and which."""
    said = f"{len(names)} TaskManager{'' if len(names) == 1 else 's'}"
    return f"{said}: {', '.join(names)}" if names else f"{said}; those on demand come with a job"
