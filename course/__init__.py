"""Sluice: the course around the engine. Its rooms, each of which imports only those above it:

    places, files, output …   at the top of the folder: what every room needs
    compiled                  the engine compiled, and the switch between it and the source
    curriculum                lessons and exercises, their seams, stubs, answers, questions, texts
    grading                   the judge, children and boundaries
    spark                     Java and the cluster
    flink, peer               the real Flink, and conversations with it
    data                      tables, flights, ways in and out of Spark
    checks, exercises         the kinds of checks; a folder for each exercise
    figures, swap             runs behind a lesson's figures; a learner's part in the running job
    jobs, engine              any job on any driver, the demo; clusters of our own
    learner                   the notebook, the terminal's hints and progress, this machine, membership in a class
    classroom                 the class itself: server, dashboard, grades
    cli                       the command `sluice`
    author                    notebooks made from their sources, graders measured, plans for instructors
    site                      the lessons as pages

This module is the door for notebooks: `from course import lesson, check, hint`. What it offers is loaded when it is
first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from course.version import __version__

__all__ = ["__version__"]

# `swap` is a room; as a verb it is L.swap(...). `progress` is L.progress().
_VERBS = frozenset({"check", "hint", "lesson", "predict", "quiz", "receipt", "reset", "reveal", "show", "zoo"})


if "pyodide_kernel" in sys.modules:  # a notebook in a browser: what there is none of is said before it is missed
    import_module("course.site.lite.kernel").begin()


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        from course.learner import notebook

        return getattr(notebook, name)
    if name == "start":
        return import_module("course.learner.start")
    raise AttributeError(f"module 'course' has no attribute {name!r}")
