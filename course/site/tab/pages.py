"""The page in each language: `index.html` in English, `zh.html` in Chinese, from one file and the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from string import Template

from course.curriculum.languages import ENGLISH, folders_of, name_of, own_languages
from course.curriculum.messages import read_catalogue

__all__ = ["page_of", "pages"]

_PAGE = Path(__file__).parent / "static" / "index.html"


def page_of(language: str) -> str:
    """The name of the page in a language."""
    return "index.html" if language == ENGLISH else f"{language}.html"


def pages(*, has_lite: bool) -> Iterator[tuple[str, str]]:
    """Each page's name and content; with `has_lite` they link to the notebooks beside them."""
    template = Template(_PAGE.read_text(encoding="utf-8"))
    languages = (ENGLISH, *own_languages())
    for language in languages:
        catalogue = read_catalogue("curriculum/interface.toml", language)
        says = {"language": language, "pages": _pages_beside(language), **catalogue["tab_says"]}
        texts = {
            **catalogue["tab"],
            "language": language,
            "others": " · ".join(
                f'<a href="./{page_of(each)}" hreflang="{each}" lang="{each}">{name_of(each)}</a>'
                for each in languages
                if each != language
            ),
            "notebooks": f"<p>{catalogue['tab']['notebooks']}</p>" if has_lite else "",
            "says": json.dumps(says, ensure_ascii=False).replace("<", "\\u003c"),  # no end of the element in it
        }
        yield page_of(language), template.substitute(texts)


def _pages_beside(language: str) -> str:
    """Where the lessons are that a page of this language leads to."""
    has_pages = language != ENGLISH and (folders_of(language)[0] / "site" / "front.txt").is_file()
    return f"../{language}/" if has_pages else "../"
