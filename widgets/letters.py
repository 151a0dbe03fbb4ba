"""How wide words are drawn, guessed from above, so that a name stays where it belongs.

Which font a page has is not known here. DejaVu Sans is the widest of those that `static/picture.css` asks for, so its
letters are counted; what stands in none of the lists is taken for as wide as the widest letter there is.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["fitting", "width_of"]

# From " " to "~", in hundredths of the size of the letters.
_REGULAR = (
    32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 42, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 90, 76, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
)  # fmt: skip
_BOLD = (
    35, 46, 53, 84, 70, 101, 88, 31, 46, 46, 53, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70,
    70, 70, 40, 40, 84, 84, 84, 59, 100, 78, 77, 74, 84, 69, 69, 83, 84, 38, 38, 78, 64, 100, 84, 86,
    74, 86, 78, 73, 69, 82, 78, 111, 78, 73, 73, 46, 37, 46, 84, 50, 50, 68, 72, 60, 72, 68, 44, 72,
    72, 35, 35, 67, 35, 105, 72, 69, 72, 72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72, 84,
)  # fmt: skip
_SIGNS = {"…": 100, "→": 100, "·": 38, "×": 84, "▶": 100, "○": 100, "▲": 100, "✓": 100, "✗": 100}
_SMALL_LETTER, _LETTER, _SQUARE, _PICTOGRAPH = 112, 135, 105, 140

# What `static/picture.css` says of each class: the size, and whether it is bold.
_LOOKS = {"big": (19, True), "name": (14, True), "failed": (13, True), "small": (12, False)}
_PLAIN = (13, False)

# What tells one of many from the others: the number of a subtask, the index of a channel.
_NUMBER = re.compile(r"(?:-\d{1,6})?(?:\[\d{1,6}\])?\Z")


def width_of(words: str, class_: str = "") -> float:
    """How many pixels words of a class take at most."""
    size, is_bold = next((_LOOKS[name] for name in class_.split() if name in _LOOKS), _PLAIN)
    letters = _BOLD if is_bold else _REGULAR
    return sum(_hundredths(letter, letters) for letter in words) * size / 100


def fitting(words: str, room: float, class_: str = "") -> str:
    """Words that take no more than `room` pixels; `…` stands for what is missing, a number at the end stays."""
    if width_of(words, class_) <= room:
        return words
    end = "…" + str(_NUMBER.findall(words)[0])
    left = room - width_of(end, class_)
    most = next(n for n in range(len(words), -1, -1) if n == 0 or width_of(words[:n], class_) <= left)
    return words[:most].rstrip() + end


def _hundredths(letter: str, letters: tuple[int, ...]) -> int:
    if " " <= letter <= "~":
        return letters[ord(letter) - 32]
    if letter in _SIGNS:
        return _SIGNS[letter]
    bare = unicodedata.normalize("NFD", letter)
    if len(bare) > 1 and " " <= bare[0] <= "~":  # a letter with an accent is as wide as without
        return letters[ord(bare[0]) - 32]
    if unicodedata.combining(letter):
        return 0
    if unicodedata.category(letter) == "So":
        return _PICTOGRAPH
    if unicodedata.east_asian_width(letter) in ("W", "F"):
        return _SQUARE
    return _SMALL_LETTER if letter.islower() else _LETTER
