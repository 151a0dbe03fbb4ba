"""What tests read off a picture: where its words are, measured in the widest font a page may have, and its lines."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from operator import mul
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font, LoadFlags

from widgets.svg import static_text

SVG = "{http://www.w3.org/2000/svg}"
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"

Box = tuple[float, float, float, float]
"""Left, right, top and bottom."""


@cache
def font(is_bold: bool) -> FT2Font:
    return FT2Font(str(FONTS / ("DejaVuSans-Bold.ttf" if is_bold else "DejaVuSans.ttf")))


@cache
def looks() -> dict[str, tuple[float, bool]]:
    """What the style sheet says of the size and the weight of each class of words; of "" what holds for all."""
    rules = re.findall(r"#ID text(?:\.(\w+))?\{([^}]*)\}", static_text("picture.css"))
    said = {name: (re.search(r"font-size:(\d+)px", rule), "font-weight:650" in rule) for name, rule in rules}
    return {name: (float(size[1]) if size else 13.0, is_bold) for name, (size, is_bold) in said.items()}


@cache
def measured(words: str, class_: str = "") -> float:
    """How many pixels words of a class take."""
    plain = looks()[""]
    size, is_bold = next((looks()[name] for name in class_.split() if looks().get(name, plain) != plain), plain)
    face = font(is_bold)
    widths = [face.load_char(ord(letter), flags=LoadFlags.NO_SCALE).horiAdvance for letter in words]
    return sum(widths) / face.units_per_EM * size


def words_in(root: ET.Element, x: float = 0, y: float = 0) -> Iterator[tuple[str, Box]]:
    """All words that are seen, and where."""
    if root.get("data-state") == "absent" or root.tag in (f"{SVG}title", f"{SVG}desc"):
        return
    moved = re.findall(r"-?[\d.]+", root.get("transform", "")) or ["0", "0"]
    x, y = x + float(moved[0]), y + float(moved[1])
    if root.tag == f"{SVG}text":
        words, class_ = "".join([root.text or "", *(part.tail or "" for part in root)]), root.get("class", "")
        width = measured(words, class_)
        share = {"end": 1.0, "mid": 0.5}.get(next(iter({"end", "mid"} & set(class_.split())), ""), 0.0)
        left, base = x + float(root.get("x", 0)) - share * width, y + float(root.get("y", 0))
        if words.strip():
            yield words, (left, left + width, base - 9, base + 2)
    for part in root:
        yield from words_in(part, x, y)


def is_over(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def words_on_words(root: ET.Element) -> list[tuple[str, str]]:
    """Which words lie on which others."""
    return [(one, other) for (one, a), (other, b) in combinations(words_in(root), 2) if is_over(a, b)]


def box_of(rect: ET.Element) -> Box:
    left, top = float(rect.get("x", 0)), float(rect.get("y", 0))
    return left, left + float(rect.get("width", 0)), top, top + float(rect.get("height", 0))


def points_of(path: ET.Element, num_points: int = 24) -> list[tuple[float, float]]:
    """Points along a path of moves, horizontal lines and curves."""
    points: list[tuple[float, float]] = []
    for command, rest in re.findall(r"([MHC])([^MHC]*)", path.get("d", "")):
        numbers = [float(number) for number in rest.split()]
        if command == "M":
            points.append((numbers[0], numbers[1]))
            continue
        x, y = points[-1]
        xs, ys = ([x, *numbers[::2]], [y, *numbers[1::2]]) if command == "C" else ([x, x, *numbers * 2], [y] * 4)
        for n in range(1, num_points + 1):
            t = n / num_points
            shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            points.append((sum(map(mul, shares, xs)), sum(map(mul, shares, ys))))
    return points
