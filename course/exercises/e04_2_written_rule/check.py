"""Exercise 4.2: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

from course.checks.written_rule import WrittenRuleCheck

__all__ = ["CHECK"]


_WORTH_TRYING = ("asked", "cut", "rest", "length", "twice", "empty")

CHECK = WrittenRuleCheck("4.2", "4.1", "get_next_record", _WORTH_TRYING)
