"""What a command of `sluice` ends with."""

from __future__ import annotations

__all__ = ["INTERRUPTED", "MISSING", "NOT_PASSED", "OUTPUT_LOST", "PASSED", "WRONG_USE"]

PASSED = 0
NOT_PASSED = 1
WRONG_USE = 2
"""No such exercise, no such file."""
MISSING = 3
"""Something is missing on this machine."""
OUTPUT_LOST = 4
"""Standard output was closed or full."""
INTERRUPTED = 130
