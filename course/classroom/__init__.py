"""Workshops: a class that learners join, what it shows its instructor, and what it says back.

Read in this order: `events` (what travels, and nothing else does), `class_file` (one SQLite file that loses nothing),
`roll` (the file as it stands in memory), `standing` and `model` (who stands where; what the dashboard shows), `words`
(the same as text), `limits`, `sessions`, `server`, and on the learner's side `membership`, `outbox`, `courier`.

A learner's machine never waits for the class: it appends to its own progress file as always, and a process of its own
brings what is new to the class when there is one.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ClassView"]


def __getattr__(name: str) -> Any:
    if name == "ClassView":  # brings anywidget, which a learner's check does not need
        from course.classroom.view import ClassView

        return ClassView
    raise AttributeError(f"module 'course.classroom' has no attribute {name!r}")
