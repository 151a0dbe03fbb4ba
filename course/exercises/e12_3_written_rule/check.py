"""Exercise 12.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from course.checks.written_rule import WrittenRuleCheck

__all__ = ["CHECK"]

_WORTH_TRYING = ("asked", "victims", "several", "between", "calm", "queue", "elsewhere", "light")

CHECK = WrittenRuleCheck("12.3", "12.1", "find_bottleneck", _WORTH_TRYING)
