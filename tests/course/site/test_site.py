"""The site: a page for every lesson, with its pictures, that asks no other server for anything."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course.curriculum.glossary import glossary
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import EXERCISES, LESSONS, START
from course.curriculum.messages import read_catalogue
from course.curriculum.questions import questions
from course.curriculum.stub_texts import docstrings
from course.curriculum.stubs import stub
from course.site.__main__ import main

ROOT = Path(__file__).resolve().parents[3]

MOVING = (3, 7)
"""Whose pictures move here: all lessons' are a matter of minutes."""

URL = "https://example.org/a&b/"

pytestmark = pytest.mark.slow


def make(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course.site", str(folder), "--no-try", "--no-lite", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=850)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    done = make(folder, "--moving", ",".join(map(str, MOVING)))
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = [f"recording {LESSONS[number].name}" for number in MOVING]
    assert done.stderr.splitlines() == [*recorded, "making the pages"]
    assert done.stdout.endswith("index.html\n")
    return folder


@pytest.fixture(scope="module")
def published(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for an address, and without moving pictures: made in the place of pages that were there."""
    folder = tmp_path_factory.mktemp("published") / "pages"
    shutil.copytree(site, folder)
    (folder / "left.html").touch()
    done = make(folder, "--moving", "none", "--url", URL.rstrip("/"))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, str]:
    """The status and the words with which a command line is turned down; it has not come to the pages."""
    try:
        status = main([str(folder), "--no-try", *more])
    except SystemExit as left:
        status = int(str(left))
    return status, capsys.readouterr().err


def test_every_lesson_has_a_page_with_all_its_pictures(site: Path) -> None:
    front = (site / "index.html").read_text()
    for name in (START, *(lesson.name for lesson in LESSONS.values())):
        page = (site / f"{name}.html").read_text()
        assert f'href="{name}.html"' in front
        cells = json.loads((ROOT / "lessons" / f"{name}.ipynb").read_text())["cells"]
        outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
        pictures = re.findall(r'<img src="(_static/pictures/[^"]+\.svg)" alt="[^"]{10,}"', page)
        assert len(pictures) == sum("image/svg+xml" in data for data in outputs)
        assert all((site / picture).is_file() for picture in pictures)


def test_every_lesson_has_a_page_in_chinese_and_each_leads_to_the_other(site: Path) -> None:
    for name in ("index", "glossary", START, *(lesson.name for lesson in LESSONS.values())):
        ours, other = ((site / folder / f"{name}.html").read_text() for folder in ("", "zh"))
        assert f'<a href="zh/{name}.html" hreflang="zh" lang="zh">中文</a>' in ours
        assert f'<a href="../{name}.html" hreflang="en" lang="en">English</a>' in other
        assert 'lang="zh-CN"' in other
    for lesson in LESSONS.values():
        page = (site / "zh" / f"{lesson.name}.html").read_text()
        title = lesson_title(lesson, "zh")
        assert title != lesson.title
        assert f">{html.escape(title)}<" in page
        said = read_catalogue("curriculum/interface.toml", "zh")["site"]
        assert page.count(said["fold_show"]) == page.count('<details class="admonition hide')
        assert "see what happens" not in page
        assert f'content="{title}：Sluice 第 {lesson.number} 课' in html.unescape(page)
        for exercise in lesson.exercises:
            asked = next(iter(docstrings(stub(exercise.id, "zh")).values())).splitlines()[0]
            assert asked in html.unescape(re.sub("<[^>]*>", "", page))
        pictures = re.findall(r'<img src="(_static/pictures/[^"]+\.svg)"', page)
        assert len(pictures) == (site / f"{lesson.name}.html").read_text().count('<img src="_static/pictures/')
        assert all((site / "zh" / picture).is_file() for picture in pictures)
    assert said["lead"] in html.unescape((site / "zh" / "index.html").read_text())
    assert "announcement-content" not in (site / "cluster.html").read_text()


def test_the_front_page_says_what_there_is(site: Path) -> None:
    front = html.unescape((site / "index.html").read_text())
    assert all(f">{lesson.title}<" in front for lesson in LESSONS.values())
    assert f"{len(LESSONS)} lessons with {len(EXERCISES)} exercises" in front
    assert '<meta content="Learn how Apache Flink' in front


def test_what_was_recorded_is_beside_its_page_and_a_job_at_work_says_so(site: Path) -> None:
    loaded = {file.stem for file in (site / "_static" / "views").iterdir()}
    assert loaded == {"index", *(LESSONS[number].name for number in MOVING)}
    for name in loaded:
        page = (site / f"{name}.html").read_text()
        assert page.index(f"_static/views/{name}.js") < page.index("_static/moving.js")
    assert "_static/moving.js" not in (site / f"{LESSONS[11].name}.html").read_text()
    assert (site / f"{LESSONS[7].name}.html").read_text().count("<figcaption>A job at work") == 1


def test_what_answers_a_prediction_is_folded_on_its_page(site: Path) -> None:
    for lesson in LESSONS.values():
        page = (site / f"{lesson.name}.html").read_text()
        assert not re.search(r"<details[^>]*\bopen\b", page)
        seen = re.sub(r"<details.*?</details>", "", re.sub(r"<details name=.*?</details>", "", page), flags=re.DOTALL)
        predictions = [each for each in questions(lesson.number).values() if each.kind == "predict"]
        for asked in predictions:
            assert html.escape(asked.ask, quote=False) in html.unescape(page).replace("&", "&amp;") or asked.ask in page
            assert all(html.escape(words) in page for words in asked.answers.values())
            assert not any(html.escape(words) in seen for words in asked.answers.values())
        cells = json.loads((ROOT / "lessons" / f"{lesson.name}.ipynb").read_text())["cells"]
        folded = [cell for cell in cells if "hide-output" in cell["metadata"]["tags"]]
        assert page.count('<details class="admonition hide') == len(folded) > 0
        assert not any(f">{asked.id}  {html.escape(asked.ask[:20])}" in seen for asked in predictions)


@pytest.mark.parametrize(("name", "num_pictures"), [("race", 1), ("cluster", 4)])
def test_the_pages_beside_the_lessons_have_their_pictures(site: Path, name: str, num_pictures: int) -> None:
    assert f'href="{name}.html"' in (site / "index.html").read_text()
    pictures = re.findall(r'src="(_images/[^"]+\.svg)"', (site / f"{name}.html").read_text())
    assert len(pictures) == num_pictures
    assert all((site / picture).is_file() for picture in pictures)


def test_no_page_asks_another_server(site: Path) -> None:
    asked = re.compile(r"""(?:src=|<link[^>]+href=|url\(|@import\s+)\s*["']?(?:https?:)?//[^"')\s]+""")
    files = [file for kind in ("*.html", "*.css") for file in site.rglob(kind)]
    assert {found for file in files for found in asked.findall(file.read_text())} == set()


def test_a_word_of_a_lesson_leads_to_its_place_in_the_glossary(site: Path) -> None:
    words = (site / "glossary.html").read_text()
    for term in glossary():
        place = term.link.partition("#")[2]
        assert f'id="{place}"' in words
        page = (site / f"{LESSONS[term.lesson].name}.html").read_text()
        assert f'href="glossary.html#{place}"'.casefold() in page.casefold()


def test_who_links_to_a_page_gets_its_title_a_sentence_and_a_card(site: Path) -> None:
    for lesson in LESSONS.values():
        page = html.unescape((site / f"{lesson.name}.html").read_text())
        assert f"lesson {lesson.number} of Sluice, {lesson.minutes} minutes" in page
        (title,) = re.findall(r'<meta property="og:title" content="([^"]+)">', page)
        assert f">{title}<" in re.sub(r"</?(code|span|em)[^>]*>", "", page), "as its heading, without marks"
    for file in site.glob("*.html"):
        assert len(re.findall(r'<meta[^>]+name="description"', file.read_text())) == 1, file
    assert (site / "card.png").read_bytes()[16:24] == (1200).to_bytes(4, "big") + (630).to_bytes(4, "big")
    assert not (site / "sitemap.xml").exists()
    assert "og:url" not in (site / "index.html").read_text()


def test_a_published_site_has_a_map_and_a_page_for_wrong_addresses(published: Path) -> None:
    places = [each.text for each in ElementTree.parse(published / "sitemap.xml").findall(".//{*}loc")]
    assert {f"{URL}{each.name}.html" for each in LESSONS.values()} <= set(places)
    assert all((published / place.removeprefix(URL)).is_file() for place in places if place)
    assert not any("404" in str(place) for place in places)
    missing = html.unescape((published / "404.html").read_text())
    assert missing.index(f'<base href="{URL}">') < missing.index('href="_static')
    assert f'<meta property="og:image" content="{URL}card.png">' in missing
    lesson = html.unescape((published / f"{LESSONS[3].name}.html").read_text())
    assert f'<link rel="canonical" href="{URL}{LESSONS[3].name}.html">' in lesson
    assert "<base" not in lesson


def test_it_is_made_anew(published: Path) -> None:
    assert not (published / "left.html").exists()
    assert list((published / "_static" / "views").iterdir()) == []


def test_it_never_takes_the_place_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").touch()
    status, said = refused(capsys, tmp_path, "--moving", "none")
    assert status == 1
    assert "name another one" in said
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "https://", "https://example.org/?a"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    status, said = refused(capsys, tmp_path / "pages", "--url", url)
    assert status == 2
    assert "is no address" in said
    assert not (tmp_path / "pages").exists()


@pytest.mark.parametrize("words", ["99", "some", "3,", "-1"])
def test_lessons_that_are_not_there_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    status, said = refused(capsys, tmp_path / "pages", f"--moving={words}")
    assert status == 2
    assert f"{words!r} names no lessons; write all, none, or numbers such as 3,11" in said
