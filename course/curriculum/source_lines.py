"""The lines of a program as Python counts them.

`str.splitlines` ends a line at a form feed, at U+001C, U+0085, U+2028 and more, which may stand in a comment or a text.
"""

from __future__ import annotations

import re

__all__ = ["source_lines"]

_END = re.compile(r"\r\n|\r|\n")


def source_lines(source: str) -> list[str]:
    """The lines without their ends; there is none behind the last end."""
    lines = _END.split(source)
    return lines if lines[-1] else lines[:-1]
