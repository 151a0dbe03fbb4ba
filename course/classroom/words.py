"""The dashboard in words, for a terminal and a stored notebook: the text twin of `static/class_view.js`."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from course.classroom.model import FAILING

__all__ = ["class_text", "summary"]

_SYMBOLS = {"passed": "✓", "caught_up": "◧", "not_started": "○"}
_TOTALS = (("passed", "passed"), ("tried", "failing"), ("stuck", "stuck"))
_WIDEST, _CELL = 96, 8
_MOST_RULES = 6


def summary(model: dict[str, Any]) -> str:
    """The class in one sentence."""
    learners = _count(len(model["learners"]), "learner")
    parts = [f"{learners}, {model['num_here']} here now"]
    at = next((each for each in model["exercises"] if each["id"] == model["checkpoint"]), None)
    if at is not None:
        parts.append(f"checkpoint {at['id']}: {at['passed']} of {len(model['learners'])} passed")
    if model["stuck"]:
        parts.append(f"{len(model['stuck'])} stuck")
    return " · ".join(parts)


def class_text(model: dict[str, Any]) -> str:
    """The grid, the rules that stop most, and who is stuck."""
    lines = [f"Class {model['title']}: {summary(model)}"]
    if not model["learners"]:
        how = f"sluice join {model['code']}@{model['address'] or 'HOST:PORT'} --handle NAME"
        how += f" --tls {model['certificate']}" if model["certificate"] else ""
        return "\n".join([*lines, f"  Nobody has joined yet. Learners type: {how}"])
    lines += ["", *_grid(model)]
    worst = sorted((row for row in model["rules"] if row["now"]), key=lambda row: -row["now"])[:_MOST_RULES]
    lines += ["", "What stops most learners now" if worst else "No rule stops anybody now."]
    for row in worst:
        lines.append(
            f"  {row['now']:>3}  {row['exercise']} rule {row['rule']}: {row['title']} (hints asked: {row['hints']})"
        )
        if row["specimen"]:
            shown = shorten(f"{row['specimen']}: {row['belief']}", _WIDEST - 13, placeholder=" …")
            lines.append(f"{'':7}show  {shown}")
    if model["stuck"]:
        lines += ["", "Stuck: no new attempt for 8 minutes"]
        lines += [f"  {_stuck(entry)}" for entry in model["stuck"]]
    return "\n".join(lines)


def _grid(model: dict[str, Any]) -> list[str]:
    """Learners by the exercises that anybody has begun with, as many beside each other as a line holds."""
    width = max(8, *(len(each["handle"]) for each in model["learners"]))
    ids = [each["id"] for each in model["exercises"]]
    begun = [at for at, id_ in enumerate(ids) if id_ == model["checkpoint"] or _is_begun(at, model["learners"])]
    if not begun:
        handles = shorten(", ".join(each["handle"] for each in model["learners"]), _WIDEST - 24, placeholder=" …")
        return [f"  Nobody has begun yet: {handles}"]
    lines = []
    per_line = max(1, (_WIDEST - width - len("      away")) // _CELL)
    for block in (begun[start : start + per_line] for start in range(0, len(begun), per_line)):
        lines.append(f"  {'':<{width}}  {' '.join(f'{ids[at]:>7}' for at in block)}")
        for learner in model["learners"]:
            cells = " ".join(f"{_cell(learner['cells'][at]):>7}" for at in block)
            lines.append(f"  {learner['handle']:<{width}}  {cells}{'' if learner['here'] else '  away'}")
        for name, words in _TOTALS:
            numbers = " ".join(f"{model['exercises'][at][name] or '':>7}" for at in block)
            lines.append(f"  {words:<{width}}  {numbers}".rstrip())
    if num_left := len(ids) - len(begun):
        lines.append(f"  nobody has begun with the other {_count(num_left, 'exercise')}")
    lines.append("  ✓ passed   ✗ fails, by which rule   ◧ caught up   ○ not started   a number: attempts   ! stuck")
    return lines


def _is_begun(at: int, learners: list[dict[str, Any]]) -> bool:
    return any(each["cells"][at]["status"] != "not_started" or each["cells"][at]["attempts"] for each in learners)


def _cell(cell: dict[str, Any]) -> str:
    symbol = f"✗{cell['rule']}" if cell["status"] in FAILING else _SYMBOLS.get(cell["status"], "○")
    return f"{'!' if cell['stuck'] else ''}{symbol} {cell['attempts'] or ''}".rstrip()


def _stuck(entry: dict[str, Any]) -> str:
    where = f"rule {entry['rule']}: {entry['title']}" if entry["rule"] else "no attempt yet"
    hint = f"hint {entry['hint']} of 5" if entry["hint"] else "no hint"
    tried = _count(entry["attempts"], "attempt")
    return f"{entry['handle']}  {entry['exercise']}  {entry['minutes']} min  {where} ({tried}, {hint})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
