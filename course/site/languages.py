"""The pages in other languages: `zh/` has those of the lessons again, with their prose and their stubs in Chinese.

Other code, outputs and pictures are those of the English pages; what was recorded of a view is recorded once.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

from course.curriculum.languages import ENGLISH, folders_of, name_of, own_languages
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import EXERCISES, LESSONS, START
from course.curriculum.messages import read_catalogue
from course.learner.prose import in_language

__all__ = [
    "folds", "front_page", "language_of", "links", "put_in_language", "site_languages", "sphinx_settings",
]  # fmt: skip

FRONT = "site/front.txt"
_HERE = Path(__file__).parent
_SHARED = frozenset({"index", "glossary", START, *(lesson.name for lesson in LESSONS.values())})
"""The pages that there are in every language."""


def site_languages() -> tuple[str, ...]:
    """The languages, without English, in which there are pages: those of the course that have a first one."""
    return tuple(each for each in own_languages() if (folders_of(each)[0] / FRONT).is_file())


def sphinx_settings(language: str, url: str) -> list[str]:
    """What Sphinx is told of a language, and of the address of its pages."""
    table = tomllib.loads((folders_of(language)[0] / "language.toml").read_text(encoding="utf-8"))
    settings = {"language": table["sphinx"], "html_baseurl": url and f"{url}{language}/", **folds(language)}
    return [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]


def folds(language: str) -> dict[str, str]:
    """What stands on a fold, as settings of Sphinx."""
    said = read_catalogue("curriculum/interface.toml", language)["site"]
    return {"nb_code_prompt_show": said["fold_show"], "nb_code_prompt_hide": said["fold_hide"]}


def language_of(sphinx_language: str, languages: Sequence[str]) -> str:
    """The language of pages that Sphinx makes in this one of its own; English if it is none of these."""
    return next((each for each in languages if sphinx_language.startswith(each)), ENGLISH)


def front_page(language: str, picture: str, *, has_tab: bool, has_lite: bool) -> str:
    """The first page, with the picture in its frame, and with what there is to be opened in a browser."""
    file = _HERE / "front.txt" if language == ENGLISH else folders_of(language)[0] / FRONT
    said = read_catalogue("curriculum/interface.toml", language)["site"]
    opened = ["in_a_tab" if has_tab else "no_tab", *(["as_notebooks"] if has_lite else [])]
    minutes = [lesson.minutes for lesson in LESSONS.values()]
    return file.read_text(encoding="utf-8").format(
        picture=picture,
        tab=" ".join(said[each].strip() for each in opened),
        num_lessons=len(LESSONS),
        num_exercises=len(EXERCISES),
        least=min(minutes),
        most=max(minutes),
        start=START,
        lessons="\n".join(lesson.name for lesson in LESSONS.values()),
        rows="\n".join(
            f"| {each.number} | [{lesson_title(each, language)}]({each.name}.ipynb) | {each.minutes} "
            f"| {len(each.exercises)} |"
            for each in LESSONS.values()
        ),
    )


def put_in_language(source: Path, target: Path, language: str, front: str) -> None:
    """Make the folder `target` for Sphinx from that of the English pages."""
    shutil.copytree(source, target)
    for page in target.glob("*.md"):
        if page.stem not in _SHARED:
            page.unlink()
    for page in target.glob("*.ipynb"):
        page.write_bytes(in_language(page.read_bytes(), page.stem, language))
    (target / "index.md").write_text(front, encoding="utf-8")


def links(page: str, sphinx_language: str, languages: Sequence[str]) -> str:
    """What leads from a page to the same one in other languages, as HTML; "" of a page that is in one only."""
    if page not in _SHARED:
        return ""
    here = language_of(sphinx_language, languages)
    places = {ENGLISH: f"{page}.html", **{each: f"{each}/{page}.html" for each in languages}}
    up = "" if here == ENGLISH else "../"
    found = [
        f'<a href="{up}{place}" hreflang="{each}" lang="{each}">{name_of(each)}</a>'
        for each, place in places.items()
        if each != here
    ]
    return " · ".join(found)
