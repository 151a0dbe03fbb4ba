"""Exercise 8.3: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from course.checks.written_rule import WrittenRuleCheck

__all__ = ["CHECK"]


_WORTH_TRYING = ("written", "read", "several", "second", "early", "turns")

CHECK = WrittenRuleCheck("8.3", "8.1", "create_view", _WORTH_TRYING)
