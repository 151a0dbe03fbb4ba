"""What of the engine is compiled, and what is not and why.

The modules of `PACKAGES` are compiled, those of `INTERPRETED` are not. `prepare` says how the copy differs from the
source, which is the book and stays as it is.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["INTERPRETED", "PACKAGES", "modules"]

PACKAGES = ("memory", "records", "producer", "consumer", "exchange", "shortcuts")
"""Packages of `refimpl` of which modules are compiled: those that touch each record or each buffer."""

FURTHER = (
    "task/chain.py", "task/collectors.py", "task/operators.py", "task/outputs.py", "task/task.py", "task/times.py",
    "drivers/threads/connection_io.py", "drivers/threads/handoff.py", "drivers/threads/leader_followers.py",
    "drivers/threads/task_manager.py", "drivers/threads/turns.py", "drivers/threads/wakeup.py",
    "drivers/transport/tls_stream.py", "drivers/flush_clock.py",
)  # fmt: skip
"""Modules of other packages that are compiled: most of those packages sees no record."""

_REASONS = {
    "members of an enum get attributes of their own in `__init__`, which mypyc does not know": (
        "memory/data_type", "producer/partition_type", "records/serialization_result"),
    "a flag that may also be a number would become a number": ("records/events", "records/event_serializer"),
    "a whole number that is given where a float may be would become one": ("memory/segment",),
    "it reads whatever a peer sends, as deep as the peer likes; its depth is counted, and the stack is Python's": (
        "records/any_type",),
    "an attribute that a call has set meanwhile is still taken for None": ("producer/blocking_subpartition",),
    "classes with two bases of ours, each with attributes, which a compiled class cannot have": (
        "shortcuts/channels", "shortcuts/frames"),
    "its classes inherit from some that are not compiled": (
        "shortcuts/chain", "shortcuts/task", "shortcuts/turns"),
    "only names classes, which are asked for of the class itself": ("shortcuts/makers",),
    "works on whole columns in numpy, where there is nothing to win": (
        "records/vectorized", "shortcuts/forms", "shortcuts/operators", "shortcuts/tables", "shortcuts/windows"),
    "no record and hardly a buffer comes by": (
        "consumer/alignment", "consumer/barrier_handler", "consumer/channel_capture", "consumer/recovered_channel",
        "consumer/unaligned", "memory/pool_snapshots", "memory/promises", "producer/blocking_partition",
        "producer/bounded_blocking", "producer/bounded_data", "producer/overtaking",
        "producer/subpartition_snapshot", "records/compression", "records/spill_file"),
}  # fmt: skip

INTERPRETED = {f"{module}.py": reason for reason, modules in _REASONS.items() for module in modules}
"""Modules of these packages that stay as they are, with the reason."""


def modules(engine: Path) -> list[Path]:
    """The modules to compile, relative to the folder of `refimpl`, in an order that does not change."""
    found = [path.relative_to(engine) for package in PACKAGES for path in sorted((engine / package).rglob("*.py"))]
    found = [path for path in found if path.name != "__init__.py" and path.as_posix() not in INTERPRETED]
    return [*found, *map(Path, FURTHER)]
