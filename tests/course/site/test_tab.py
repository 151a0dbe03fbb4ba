"""What goes into a browser's tab, without a browser: it needs the standard library alone, and npm only to be made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from course.curriculum.languages import own_languages
from course.curriculum.lesson_texts import lesson_title
from course.curriculum.manifest import EXERCISES, LESSONS
from course.curriculum.messages import read_catalogue
from course.curriculum.stubs import solution, stub
from course.site.tab.build import pack_course
from course.site.tab.pages import pages

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.slow

ASK = """
import json, sys

sys.path.insert(0, sys.argv[1])
from course.site.tab import page, stand_in

said = []
stand_in.post.append(lambda view, content: said.append(json.loads(content)))
for name, given in json.load(sys.stdin):
    print(json.dumps({**json.loads(page.answer(name, json.dumps(given))), "said": said}))
    said = []
    stand_in.post[:] = [lambda view, content: said.append(json.loads(content))]
"""

JOB = "job = StreamEnvironment(Config(segment_size_bytes=16))\njob.from_collection(range(9)).rebalance().sink(print)\n"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tab")
    pack_course(folder / "course.zip")
    with zipfile.ZipFile(folder / "course.zip") as archive:
        archive.extractall(folder / "course")
    return folder


def ask(packed: Path, home: Path, *questions: tuple[str, list[Any]], language: str = "en") -> list[dict[str, Any]]:
    # Isolated and without `site`: what this Python has installed is not to be found, and a browser has not got it.
    command = [sys.executable, "-I", "-S", "-c", ASK, str(packed / "course")]
    environment = {"SLUICE_WORK": str(home / "work"), "HOME": str(home), "SLUICE_LANGUAGE": language}
    given = json.dumps(questions)
    done = subprocess.run(
        command, input=given, env=environment, cwd=home, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def test_every_exercise_can_be_begun_and_asks_for_its_first_run(packed: Path, tmp_path: Path) -> None:
    questions = [(name, [each]) for each in EXERCISES for name in ("part", "job")]
    questions += [("check", [each, solution(each)]) for each in ("0.1", "12.2", "18.2")]
    answers = [each["answer"] for each in ask(packed, tmp_path, *questions)]
    for number, exercise in enumerate(EXERCISES):
        part, job = answers[2 * number : 2 * number + 2]
        assert (part["stub"], part["why_not"]) == (stub(exercise), "")
        assert job["exercise"] == exercise
    assert all(json.loads(each["order"])["cases"] for each in answers[-3:])


def test_a_view_is_stepped_and_a_job_that_fails_says_why(packed: Path, tmp_path: Path) -> None:
    shown, _, moved, failed = ask(
        packed, tmp_path, ("show", [JOB]), ("hear", [1, {"type": "hello"}]), ("hear", [1, {"type": "step", "n": 2}]),
        ("show", ["job = 1 / 0"]),
    )  # fmt: skip
    assert "answer" in shown, shown["error"]
    assert shown["answer"]["view"] == 1
    assert shown["answer"]["traits"]["_mode"] == "stepped"
    assert [each["type"] for each in moved["said"]] == ["frames", "frames"]
    assert failed["error"] == "ZeroDivisionError: division by zero"


def test_progress_is_taken_in_once_and_what_is_none_is_refused(packed: Path, tmp_path: Path) -> None:
    event = {"event": "check", "exercise": "1.1", "lesson": 1, "status": "passed", "time": 5.0}
    line = json.dumps(event) + "\n"
    first, again, refused = ask(packed, tmp_path, ("take_in", [line]), ("take_in", [line]), ("take_in", ["no event"]))
    assert first["answer"]["standings"]["1.1"] == "passed"
    assert first["answer"]["progress"] == again["answer"]["progress"]
    assert "no line of this file is an event" in refused["error"]


@pytest.mark.parametrize("language", own_languages())
def test_what_is_asked_is_answered_in_the_language_of_the_page(language: str, packed: Path, tmp_path: Path) -> None:
    questions = [("lessons", []), ("take_in", ["no event"]), *(("part", [each]) for each in EXERCISES)]
    told, refused, *parts = ask(packed, tmp_path, *questions, language=language)
    titles = {each["number"]: each["title"] for each in told["answer"]["lessons"]}
    assert titles == {number: lesson_title(LESSONS[number], language) for number in titles}
    said = read_catalogue("curriculum/interface.toml", language)["tab_says"]
    assert told["answer"]["words"] == said["num_passed"].format(passed=0, count=len(EXERCISES))
    assert said["no_progress"] in refused["error"]
    for exercise, part in zip(EXERCISES, parts, strict=True):
        assert part["answer"]["stub"] == stub(exercise, language)
        assert part["answer"]["title"] != EXERCISES[exercise].title


def test_what_only_authors_need_is_not_in_the_archive(packed: Path) -> None:
    assert [*(packed / "course/course/locales").rglob("stub.toml")]
    assert not [*packed.rglob("made_of.json")]


def test_there_is_a_page_in_each_language_that_leads_to_the_others() -> None:
    made = dict(pages(has_lite=False))
    assert [*made] == ["index.html", *(f"{each}.html" for each in own_languages())]
    for name, content in made.items():
        assert {f'href="./{other}"' in content for other in made if other != name} == {True}
        assert f'href="./{name}"' not in content
        assert "lite/" not in content
    assert '<html lang="zh">' in made["zh.html"]
    seen = re.sub("<code>.*?</code>|<script.*?</script>|<[^>]*>", " ", made["zh.html"], flags=re.DOTALL)
    assert not re.search("[a-z]{2,} [a-z]{2,}", seen)
    assert all("lite/index.html" in content for _, content in pages(has_lite=True))


def test_the_page_says_what_there_is_to_be_said_and_leads_to_pages_in_its_language() -> None:
    script = (ROOT / "course/site/tab/static/page.js").read_text(encoding="utf-8")
    stands = {"passed", "not_started", "caught_up", "failed"}
    asked = {*re.findall(r'say\("(\w+)"', script), *stands, "from_disk"}
    for name, content in pages(has_lite=False):
        (found,) = re.findall('<script id="says" type="application/json">(.*?)</script>', content)
        says = json.loads(found)
        place = says.pop("pages")
        assert place == ("../" if name == "index.html" else f"../{says['language']}/")
        assert says.keys() == asked | {"language", "num_passed", "not_here", "no_progress"}


def test_without_npm_the_pages_say_so_and_a_tab_that_is_asked_for_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "course.site", str(tmp_path / "pages"), "--moving", "none"]
    for more, status, words in ((["--try"], 1, "there is no npm"), ([], 0, "try/ is left out: npm")):
        done = subprocess.run(
            [*command, *more], env={"PATH": str(tmp_path)}, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert words in done.stderr
    assert "you need the project" in (tmp_path / "pages" / "index.html").read_text()
    assert not (tmp_path / "pages" / "try").exists()
