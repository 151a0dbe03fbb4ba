"""An answer of Spark's in words: rows for programs, and a table for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["as_json", "as_table"]


def as_json(answer: DataFrame) -> list[dict[str, Any]]:
    """The rows of an answer."""
    rows: list[dict[str, Any]] = json.loads(json.dumps(answer.toArrow().to_pylist()))
    return rows


def as_table(answer: DataFrame, limit: int = 20) -> str:
    """The first rows of an answer with its columns under each other; empty if there are none."""
    rows = answer.limit(limit + 1).toArrow()
    if not rows.num_rows:
        return ""
    cells = [rows.column_names, *(map(_cell, row.values()) for row in rows.to_pylist()[:limit])]
    columns = [list(column) for column in zip(*(list(line) for line in cells), strict=True)]
    is_number = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in zip(*columns, strict=True)
    ]
    return "\n".join(lines + [f"… and more; --json has all, or --limit more than {limit}"] * (rows.num_rows > limit))


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    return cell == "–" or cell.replace(".", "", 1).lstrip("-").isdecimal()
