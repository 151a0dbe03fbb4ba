"""Texts in columns, as wide as they are shown: a Chinese character takes two columns, and a line may end behind it.

The widths are those of Unicode (UAX #11). Where a line may end between two Chinese characters, and where a mark forbids
it, is a simple form of UAX #14: no closing mark begins a line, and no opening one ends it.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator

__all__ = ["cut", "pad", "pad_left", "width", "wrap"]

_CLOSING = frozenset("。，、；：？！）》」』】〕〉”’…—·,.;:?!)]}%")
_OPENING = frozenset("（《「『【〔〈“‘([{")


def width(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if _is_wide(letter) else 1


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def pad(text: str, columns: int) -> str:
    """The text with spaces behind it, up to so many columns."""
    return text + " " * (columns - width(text))


def pad_left(text: str, columns: int) -> str:
    """The text with spaces before it, up to so many columns."""
    return " " * (columns - width(text)) + text


def cut(text: str, columns: int) -> str:
    """What of a text fits into so many columns."""
    if width(text) <= columns:
        return text
    end = taken = 0
    while taken + _columns(text[end]) <= columns:
        taken += _columns(text[end])
        end += 1
    return text[:end]


def wrap(text: str, columns: int, first: str = "", then: str = "", *, breaks_hyphens: bool = False) -> list[str]:
    """The lines of a text, `first` before the first of them and `then` before the others; none of an empty text.

    Without wide characters they are what `textwrap` makes of it.
    """
    if not any(map(_is_wide, text + first + then)):
        return textwrap.wrap(
            text, columns, initial_indent=first, subsequent_indent=then, break_on_hyphens=breaks_hyphens
        )
    lines: list[str] = []
    line, begun = first, False
    for piece in _pieces(text, columns - max(width(first), width(then))):
        if begun and width(line) + width(piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line, begun = then, False
        if begun or piece.strip():  # no space begins a line
            line, begun = line + piece, True
    return [*lines, line.rstrip()] if begun else lines


def _pieces(text: str, most: int) -> Iterator[str]:
    """The text in pieces between which a line may end, none wider than `most` columns; a space is a piece."""
    for word in re.findall(r"\s+|\S+", text):
        if word.isspace():
            yield " " * len(word)
            continue
        begun = 0
        for at in range(1, len(word)):
            if _may_end(word[at - 1], word[at]):
                yield from _short(word[begun:at], most)
                begun = at
        yield from _short(word[begun:], most)


def _may_end(before: str, after: str) -> bool:
    """Whether a line may end between these two, which stand side by side."""
    return (_is_wide(before) or _is_wide(after)) and before not in _OPENING and after not in _CLOSING


def _short(piece: str, most: int) -> Iterator[str]:
    while width(piece) > most:
        yield (part := cut(piece, most) or piece[0])
        piece = piece[len(part) :]
    yield piece
