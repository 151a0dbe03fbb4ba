"""How the report of a swap begins, whatever the part was put into."""

from __future__ import annotations

from typing import Protocol

__all__ = ["AFTER_A_RESTART", "first_lines"]


class _Report(Protocol):
    @property
    def is_learners(self) -> bool: ...

    @property
    def part_name(self) -> str: ...

    @property
    def taken_out(self) -> tuple[str, ...]: ...

    @property
    def num_calls(self) -> int: ...


AFTER_A_RESTART = "its task failed, and ours went on from the newest checkpoint"
"""What comes then, where a part cannot be left in the middle of its task."""


def first_lines(report: _Report, where: str, then: str = "ours went on where it stopped") -> list[str]:
    """Whose part went `where`; if it was taken out again, in which call and why, and what came `then`."""
    whose = "your part" if report.is_learners else "our part (yours goes in when it passes its check)"
    lines = [f"{whose}: {report.part_name}, {where}"]
    if report.taken_out:
        lines.append(f"✗ taken out again in its call number {report.num_calls:,}: {report.taken_out[0]}")
        lines += [f"    {line}" for line in report.taken_out[1:]]
        lines.append(f"  {then}")
    return lines
