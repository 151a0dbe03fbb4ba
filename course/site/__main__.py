"""`make site`: pages of all lessons, whose pictures move, without a server, a kernel, or a network."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import nbformat

from course.author.build import BuildError
from course.curriculum.languages import ENGLISH
from course.curriculum.manifest import LESSONS, START
from course.curriculum.messages import read_catalogue
from course.figures.cluster_page import CLUSTER_FILES
from course.figures.race_page import RACE_FILES
from course.places import home, lessons_folder
from course.site.languages import front_page, put_in_language, site_languages, sphinx_settings
from course.site.lite.build import NOTEBOOKS, build_lite
from course.site.pictures import State, frame, frame_pictures, states_of_views, views_script
from course.site.published import CARD, MISSING, draw_card, sitemap, url_of
from course.site.tab.build import UnmadeError, build_tab, npm

__all__ = ["build_site", "main"]

_HERE = Path(__file__).parent
_LEAD = "07_local_channels-queue-0"
"""The picture of the first page."""
_EVERY = frozenset(LESSONS)
TRY = "try"
LITE = "lite"
_AS_NOTEBOOK = """<p><a href="lite/lab/index.html?path={name}.ipynb">Open this lesson as a notebook</a> in your
 browser, with nothing installed: some 40 MB the first time.</p>"""


class SiteError(Exception):
    """The pages cannot be made; the text says why."""


def build_site(
    target: Path,
    moving: Collection[int] = _EVERY,
    url: str = "",
    *,
    has_tab: bool = False,
    has_lite: bool | None = False,
) -> Path:
    """Make all pages in `target`, which is replaced; return the first one. Pictures of the lessons `moving` move.

    `url` is where they will be found: then they say so, and there is a map of them for search engines. With `has_tab`
    there is the course for a tab of a browser in `try/`, too, and with `has_lite` notebooks for one in `lite/`; `None`
    is where they can be made.

    Raises:
        SiteError: there are no lessons, a cell of one failed, Sphinx is not installed, or it found something wrong; the
            text says what. Or pip or npm could not bring what `try/` or `lite/` needs.
    """
    try:
        from sphinx.cmd.build import main as sphinx
    except ImportError as error:
        raise SiteError(f"{error}; `make site` installs what the pages are made with") from error
    if target.exists() and not (target / ".buildinfo").exists() and any(target.iterdir()):
        raise SiteError(f"{target} is a folder with other things in it; name another one")
    with tempfile.TemporaryDirectory(prefix="sluice-site-") as folder:
        source, made, tab, lite = (Path(folder, name) for name in ("source", "made", "tab", "lite"))
        has_lite = _lite(lite, has_lite)
        if has_tab:
            try:
                build_tab(tab, has_lite=has_lite)
            except UnmadeError as error:
                raise SiteError(f"{TRY}/ was not made: {error}; --no-try does without") from error
        _gather(source, moving, has_tab, has_lite)
        print("making the pages", file=sys.stderr)
        settings = ["-q", "-W", "--keep-going", "-b", "html", "-d"]
        if sphinx([*settings, str(Path(folder, "trees")), "-D", f"html_baseurl={url}", str(source), str(made)]):
            raise SiteError("the pages were not made; what is wrong stands above")
        for language in site_languages():
            own, trees = Path(folder, language), Path(folder, f"trees-{language}")
            front = front_page(language, frame(_LEAD, _lead_words(language)), has_tab=has_tab, has_lite=has_lite)
            put_in_language(source, own, language, front)
            of_it = sphinx_settings(language, url)
            if sphinx([*settings, str(trees), *of_it, str(own), str(made / language)]):
                raise SiteError(f"the pages in {language} were not made; what is wrong stands above")
        if has_tab:
            shutil.move(tab, made / TRY)
        if has_lite:
            shutil.move(lite, made / LITE)
        draw_card(made / CARD)
        for language in site_languages():
            shutil.copy(made / CARD, made / language)
        if url:
            pages = [page.relative_to(made).with_suffix("") for page in made.rglob("*.html")]
            pages = [page for page in pages if page.parts[0] not in (TRY, LITE)]
            found = sitemap((page.as_posix() for page in pages), url)
            (made / "sitemap.xml").write_text(found, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
    return target / "index.html"


def _lite(folder: Path, wanted: bool | None) -> bool:
    """Make the notebooks for a browser, if they are `wanted`; where that is open, without them it says why."""
    if wanted is False:
        return False
    print(f"making {LITE}/", file=sys.stderr)
    try:
        build_lite(folder)
    except UnmadeError as error:
        if wanted:
            raise SiteError(f"{LITE}/ was not made: {error}; --no-lite does without") from error
        print(f"{LITE}/ is left out: {error}", file=sys.stderr)
        return False
    return True


def _gather(source: Path, moving: Collection[int], has_tab: bool, has_lite: bool) -> None:
    """Put everything into one folder, as Sphinx wants it."""
    source.mkdir()
    shutil.copy(_HERE / "conf.py", source)
    shutil.copytree(_HERE / "static", source / "static")
    for folder in ("pictures", "views"):
        (source / "static" / folder).mkdir()
    for name in (*CLUSTER_FILES, *RACE_FILES):
        shutil.copy(_HERE / name, source)
    shutil.copy(_HERE / "missing.txt", source / f"{MISSING}.md")
    for page in (lessons_folder() / "glossary.md", _HERE.parent / "GRADERS.md"):
        shutil.copy(_there(page), source)
    _page(START, source, moves=False)
    recordings: dict[str, State] = {}
    for lesson in LESSONS.values():
        opens = has_lite and lesson.name in NOTEBOOKS
        recordings |= _page(lesson.name, source, moves=lesson.number in moving, opens=opens)
    _front_page(source, recordings, has_tab, has_lite)


def _there(page: Path) -> Path:
    if not page.is_file():
        raise SiteError(f"there is no {page}; `sluice build` makes the lessons")
    return page


def _page(name: str, source: Path, *, moves: bool, opens: bool = False) -> dict[str, State]:
    """One notebook with its pictures in frames, and a link if it `opens`; the recordings of those that move."""
    notebook = nbformat.read(_there(lessons_folder() / f"{name}.ipynb"), as_version=4)
    states = {}
    if moves:
        print(f"recording {name}", file=sys.stderr)
        try:
            states = states_of_views(notebook, name)
        except BuildError as error:
            raise SiteError(str(error)) from error
    found = frame_pictures(notebook, name, states, source / "static" / "pictures")
    _put_views(source, name, found)
    if opens:
        notebook.cells[0].source += f"\n\n{_AS_NOTEBOOK.format(name=name)}"
    nbformat.write(notebook, source / f"{name}.ipynb")
    return found


def _put_views(source: Path, page: str, found: Mapping[str, State]) -> None:
    if found:
        (source / "static" / "views" / f"{page}.js").write_text(views_script(found), encoding="utf-8")


def _front_page(source: Path, recordings: Mapping[str, State], has_tab: bool, has_lite: bool) -> None:
    _put_views(source, "index", {each: state for each, state in recordings.items() if each == _LEAD})
    front = front_page(ENGLISH, frame(_LEAD, _lead_words(ENGLISH)), has_tab=has_tab, has_lite=has_lite)
    (source / "index.md").write_text(front, encoding="utf-8")


def _lead_words(language: str) -> str:
    return str(read_catalogue("curriculum/interface.toml", language)["site"]["lead"])


def _lessons(words: str) -> frozenset[int]:
    """What `--moving` names: `all`, `none`, or numbers with commas between them."""
    named = {"all": _EVERY, "none": frozenset[int]()}
    if words in named:
        return named[words]
    numbers = frozenset(int(each) if each.isdecimal() else -1 for each in words.split(","))
    if not numbers <= _EVERY:
        raise argparse.ArgumentTypeError(f"{words!r} names no lessons; write all, none, or numbers such as 3,11")
    return numbers


def _url(words: str) -> str:
    try:
        return url_of(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pages; return 0, or 1 if they could not be made."""
    parser = argparse.ArgumentParser("make site", description="Pages of all lessons, to read; their pictures move.")
    usual = home() / "build" / "site"
    parser.add_argument("folder", nargs="?", type=Path, default=usual, help="where to put them (build/site)")
    parser.add_argument(
        "--moving", type=_lessons, default=_EVERY, metavar="LESSONS",
        help="whose pictures move: all, none (made in seconds), or numbers such as 3,11 (all)",
    )  # fmt: skip
    parser.add_argument("--url", type=_url, help="where they will be published, for links and search engines")
    parser.add_argument(
        "--try", dest="has_tab", action=argparse.BooleanOptionalAction,
        help=f"whether {TRY}/ is made, which has the engine and the checks for a browser (where npm is)",
    )  # fmt: skip
    parser.add_argument(
        "--lite", dest="has_lite", action=argparse.BooleanOptionalAction,
        help=f"whether {LITE}/ is made, which has notebooks for a browser (where pip and npm bring what it needs)",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    has_tab = npm() is not None if given.has_tab is None else given.has_tab
    if given.has_tab is None and not has_tab:
        print(f"{TRY}/ is left out: npm, which brings Python for browsers, is not here", file=sys.stderr)
    try:
        first = build_site(
            given.folder.resolve(), given.moving, given.url or "", has_tab=has_tab, has_lite=given.has_lite
        )
    except (SiteError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The first page is {first}")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
