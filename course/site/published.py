"""What a published site needs: a card for links to it, a map of its pages, and a page for wrong addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape as escape_xml

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from course.curriculum.languages import ENGLISH
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import LESSONS, START
from course.curriculum.messages import read_catalogue

__all__ = ["CARD", "MISSING", "draw_card", "for_keys_and_readers", "sitemap", "tags", "url_of"]

CARD = "card.png"
"""The picture that is shown where somebody links to a page, beside the pages."""

MISSING = "404"
"""The page that a server gives for an address that is not there."""

_WIDE, _TALL, _DPI = 1_200, 630, 100  # what Open Graph's readers cut nothing of
_FILLS = (0.35, 1.0, 1.0, 1.0, 1.0)  # of the buffers on the card; the one that is still written is on the left


def url_of(words: str) -> str:
    """An address under which pages are published, with a slash at its end.

    Raises:
        ValueError: it is no address of the web, or has more than a path.
    """
    parts = urlsplit(words)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{words!r} is no address; write one such as https://example.org/sluice/")
    return words.rstrip("/") + "/"


def describe(page: str, language: str = ENGLISH) -> str:
    """One sentence about a page in a language, for those who see only that."""
    said: Mapping[str, str] = read_catalogue("curriculum/interface.toml", language)["site"]
    for lesson in LESSONS.values():
        if lesson.name == page:
            count = len(lesson.exercises)
            exercises = said["one_exercise" if count == 1 else "exercises"].format(count=count)
            title = lesson_title(lesson, language)
            return said["a_lesson"].format(
                title=title, number=lesson.number, minutes=lesson.minutes, exercises=exercises
            )
    return said["start" if page == START else "sentence"]


def tags(page: str, title: str, url: str, language: str = ENGLISH) -> str:
    """What the head of a page says of it to those who link to it (Open Graph); addresses only if `url` is one.

    `title` may have marks of HTML in it.
    """
    title = unescape(re.sub("<[^>]*>", "", title))
    said = {
        "og:type": "website",
        "og:site_name": "Sluice",
        "og:title": title,
        "og:description": describe(page, language),
    }
    if url:
        said |= {"og:url": f"{url}{page}.html", "og:image": f"{url}{CARD}", "og:image:alt": "Buffers on their way"}
    own = (
        "" if page == "index" else f'<meta name="description" content="{escape(describe(page, language))}">'
    )  # it has one
    lines = [own, *(f'<meta property="{name}" content="{escape(words)}">' for name, words in said.items())]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    if page == MISSING and url:  # a server gives it for addresses of any depth
        lines.append(f'<base href="{escape(url)}">')
    return "\n".join(lines)


def for_keys_and_readers(page: str) -> str:
    """The text of a page with what Sphinx leaves out for keys and screen readers.

    Code and outputs, which may be wider than a page, can be scrolled by keys; a caption says which heading it is.
    """
    page = page.replace('class="caption" role="heading">', 'class="caption" role="heading" aria-level="2">')
    return page.replace("<pre>", '<pre tabindex="0">')


def sitemap(pages: Iterable[str], url: str) -> str:
    """The addresses of all pages, as search engines read them."""
    found = sorted(page for page in pages if page.rpartition("/")[2] not in {MISSING, "search", "genindex"})
    places = [f"  <url><loc>{escape_xml(f'{url}{page}.html')}</loc></url>" for page in found]
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', f'<urlset xmlns="{space}">', *places, "</urlset>", ""])


def draw_card(file: Path) -> None:
    """Write the card: the name, what it is, and a queue of buffers before a reader."""
    figure = Figure(figsize=(_WIDE / _DPI, _TALL / _DPI), dpi=_DPI, facecolor="#12212e")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDE), ylim=(0, _TALL))
    axes.axis("off")
    axes.text(80, 470, "Sluice", color="white", fontsize=72, fontweight="bold")
    first, second = describe("index").split(" by ")
    for y, words in ((385, first), (335, f"by {second}")):
        axes.text(80, y, words, color="#c9d8e4", fontsize=24)
    for place, fill in enumerate(_FILLS):
        x = 80 + place * 165
        axes.add_patch(Rectangle((x + 6, 106), 128, 138 * fill, color="#56b4e9"))
        outline = FancyBboxPatch(
            (x, 100), 140, 150, boxstyle="round,rounding_size=16", fill=False, edgecolor="white", linewidth=4
        )
        axes.add_patch(outline)
    arrow = {"arrowstyle": "-|>", "color": "#e69f00", "linewidth": 8, "mutation_scale": 50}
    axes.annotate("", xy=(1_120, 175), xytext=(915, 175), arrowprops=arrow)
    figure.savefig(file, metadata={"Software": None})
