"""Exercise 16.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from course.checks.written_rule import WrittenRuleCheck

__all__ = ["CHECK"]

_WORTH_TRYING = ("asked", "waits", "order", "release", "again", "late", "before", "gone")

CHECK = WrittenRuleCheck("16.2", "16.1", "request", _WORTH_TRYING)
