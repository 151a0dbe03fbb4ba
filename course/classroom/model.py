"""What the dashboard shows, as plain data: the page, the widget and the words are all made from this.

Rules of this file: a pure function of the roll and the time; what a learner sent is data and never markup.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from course.classroom.roll import Roll
from course.classroom.standing import CAUGHT_UP, NOT_STARTED, PASSED, Standing
from course.classroom.stuck import NEVER, is_here, where_stuck
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import titles
from course.curriculum.specimens import zoo

__all__ = ["FAILING", "class_model", "specimen_of"]

FAILING = frozenset({"failed", "error", "timeout"})

_SPECIMENS = Path(__file__).with_name("specimens.toml")


def class_model(roll: Roll, now: float, lessons: frozenset[int] = frozenset()) -> dict[str, Any]:
    """The class at one moment. `lessons` picks the exercises that are shown; none picks all."""
    shown = [each for each in EXERCISES.values() if not lessons or each.lesson in lessons]
    pupils = sorted(roll.pupils.values(), key=lambda pupil: pupil.row.handle.casefold())
    by_pupil = [(pupil, roll.standings(pupil)) for pupil in pupils]
    stuck = [found for pupil, each in by_pupil if (found := where_stuck(roll, pupil, each, now)) is not None]
    stuck_at = {(entry["handle"], entry["exercise"]) for entry in stuck}
    learners = [
        {
            "handle": pupil.row.handle,
            "here": is_here(pupil, now),
            "cells": [
                _cell(each.get(one.id, NEVER)) | {"stuck": (pupil.row.handle, one.id) in stuck_at} for one in shown
            ],
        }
        for pupil, each in by_pupil
    ]
    return {
        "title": roll.about.get("title", ""),
        "code": roll.about.get("code", ""),
        "address": roll.about.get("address", ""),
        "certificate": roll.about.get("certificate", ""),
        "num_here": sum(learner["here"] for learner in learners),
        "checkpoint": roll.orders.checkpoint,
        "catchup": roll.orders.catchup,
        "exercises": [
            _column(one.id, one.title, one.lesson, [each.get(one.id, NEVER) for _, each in by_pupil])
            | {"unlocked": roll.orders.hints.get(one.id, 0), "resets": roll.orders.num_resets.get(one.id, 0)}
            | {"stuck": sum(entry["exercise"] == one.id for entry in stuck)}
            for one in shown
        ],
        "learners": learners,
        "rules": _rules([one.id for one in shown], [each for _, each in by_pupil]),
        "stuck": sorted(stuck, key=lambda entry: (-entry["minutes"], entry["handle"])),
    }


def _cell(standing: Standing) -> dict[str, Any]:
    return {
        "status": standing.status,
        "rule": standing.rule,
        "attempts": standing.attempts,
        "minutes": standing.minutes,
    }


def _column(exercise: str, title: str, lesson: int, cells: list[Standing]) -> dict[str, Any]:
    worked = [cell.minutes for cell in cells if cell.attempts]
    return {
        "id": exercise,
        "title": title,
        "lesson": lesson,
        "passed": sum(cell.status == PASSED for cell in cells),
        "tried": sum(cell.status in FAILING for cell in cells),
        "caught_up": sum(cell.status == CAUGHT_UP for cell in cells),
        "not_started": sum(cell.status == NOT_STARTED for cell in cells),
        "minutes": round(median(worked)) if worked else 0,
    }


def _rules(exercises: list[str], found: list[dict[str, Standing]]) -> list[dict[str, Any]]:
    """Every rule of every exercise shown: how many learners it stops now, stopped ever, and asked hints for."""
    rows = []
    for exercise in exercises:
        cells = [each[exercise] for each in found if exercise in each]
        for rule, title in titles(exercise).items():
            row = {
                "exercise": exercise, "rule": rule, "title": title,
                "now": sum(cell.rule == rule for cell in cells),
                "ever": sum(rule in cell.failed_rules for cell in cells),
                "hints": sum(cell.hints[rule] for cell in cells),
            }  # fmt: skip
            name, belief = specimen_of(exercise, rule) if row["ever"] else ("", "")
            rows.append(row | {"specimen": name, "belief": belief})
    return rows


@cache
def _specimens() -> dict[str, dict[str, str]]:
    return tomllib.loads(_SPECIMENS.read_text(encoding="utf-8"))


def specimen_of(exercise: str, rule: str) -> tuple[str, str]:
    """A known-wrong part that this rule catches, and the belief behind it; two empty strings if there is none."""
    name = _specimens().get(exercise, {}).get(rule, "")
    beliefs = {each.name: each.belief for each in zoo(exercise)}
    return (name, " ".join(beliefs[name].split())) if name in beliefs else ("", "")
