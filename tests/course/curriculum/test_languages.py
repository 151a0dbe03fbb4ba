"""Which language the course speaks: where it is said, how long it holds, and who is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course.curriculum import languages
from course.curriculum.languages import NoSuchLanguageError, choose, language, name_of, wrong_choice
from course.curriculum.messages import common, phrase, said
from course.curriculum.questions import questions
from course.curriculum.wrapping import width
from course.grading.report import COLUMNS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder of somebody's own languages, with one named xx, and a learner who has not chosen yet."""
    (tmp_path / "own" / "xx" / "curriculum").mkdir(parents=True)
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path / "own"))
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))
    monkeypatch.delenv("SLUICE_LANGUAGE")
    return tmp_path


def say(places: Path, name: str, file: str, text: str) -> None:
    target = places / "own" / name / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def sluice(places: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course.cli", *words]
    env = {**os.environ, "SLUICE_WORK": str(places / "work"), **variables}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_the_languages_of_the_course_need_no_variable(monkeypatch):
    monkeypatch.delenv("SLUICE_LOCALES", raising=False)
    assert languages.languages() == ("en", *languages.own_languages())
    assert "zh" in languages.own_languages()
    assert name_of("zh") == "中文"


def test_a_folder_of_ones_own_adds_languages(places):
    assert set(languages.languages()) == {"en", "xx", *languages.own_languages()}
    assert name_of("xx") == "xx"


def test_a_text_of_ones_own_goes_before_ours_and_ours_before_english(places, monkeypatch):
    say(places, "zh", "curriculum/interface.toml", '[questions]\nright = "mine"\n')
    monkeypatch.setenv("SLUICE_LANGUAGE", "zh")
    assert said("questions.right", because="") == "mine"
    assert said("questions.not_that_one") not in ("", "✗ not that one; think again, choose another.")


def test_a_choice_holds_for_the_learner_and_a_variable_goes_before_it(places, monkeypatch):
    say(places, "xx", "curriculum/messages.toml", '[titles]\nS = "Anders"\n')
    assert language() == "en"
    choose("xx")
    assert (language(), common("titles")["S"]) == ("xx", "Anders")
    assert json.loads((places / ".course" / "language.json").read_text()) == {"language": "xx"}
    monkeypatch.setenv("SLUICE_LANGUAGE", "en")
    assert language() == "en"
    monkeypatch.setenv("SLUICE_LANGUAGE", "")
    assert language() == "xx"


def test_another_learner_has_another_choice(places, monkeypatch):
    choose("xx")
    monkeypatch.setenv("SLUICE_WORK", str(places / "other" / "work"))
    assert language() == "en"


def test_questions_follow_the_language(places):
    say(places, "xx", "curriculum/questions.toml", '["0.a"]\nask = "Wie viele?"\n')
    english = questions(0)["0.a"].ask
    choose("xx")
    assert questions(0)["0.a"].ask == "Wie viele?" != english
    assert questions(0)["0.a"].choices["a"] == "ten, one for each flight"
    choose("en")
    assert questions(0)["0.a"].ask == english


@pytest.mark.parametrize("name", ["yy", "../en", "", "zh/..", "EN"])
def test_a_name_that_is_no_language_is_refused_with_those_there_are(name, places):
    with pytest.raises(NoSuchLanguageError, match=r"there is no language .*; there are en, (\w+, )*xx"):
        choose(name)
    assert not (places / ".course").exists()


@pytest.mark.parametrize("kept", ["", "[]", '{"language": 3}', '{"language": "yy"}', "{" * 100_000])
def test_what_is_kept_and_makes_no_sense_is_english(kept, places):
    (places / ".course").mkdir()
    (places / ".course" / "language.json").write_text(kept)
    languages._kept.cache_clear()
    assert language() == "en"
    assert (wrong_choice() is not None) == ("yy" in kept)


def test_the_command_lists_and_chooses(places):
    assert "▸ en" in sluice(places, "language").stdout
    done = sluice(places, "language", "zh")
    assert (done.returncode, done.stderr) == (0, "")
    assert "▸ zh  中文" in sluice(places, "language").stdout
    done = sluice(places, "language", "zz")
    assert done.returncode == 2
    assert done.stderr == "there is no language 'zz'; there are en, xx, zh\n"


def test_the_command_says_when_a_variable_goes_before_the_choice(places):
    done = sluice(places, "language", "zh", SLUICE_LANGUAGE="xx")
    assert (done.returncode, "SLUICE_LANGUAGE" in done.stderr) == (0, True)


def test_a_wrong_variable_ends_a_command_and_not_the_list(places):
    done = sluice(places, "progress", SLUICE_LANGUAGE="zz")
    assert done.returncode == 2
    assert done.stderr == "there is no language 'zz' (SLUICE_LANGUAGE); there are en, xx, zh\n"
    done = sluice(places, "language", SLUICE_LANGUAGE="zz")
    assert (done.returncode, "zz" in done.stderr) == (0, True)


def test_a_choice_that_cannot_be_kept_says_why(places):
    (places / ".course").write_text("a file in the way")
    done = sluice(places, "language", "zh")
    assert done.returncode == 3
    assert "cannot be kept" in done.stderr


def test_a_check_in_a_process_of_its_own_speaks_the_language_of_who_asked(places):
    """The judge of a notebook, and the child that runs the code for it; another language is another judge."""
    say(places, "xx", "curriculum/messages.toml", '[report]\nnext = "Weiter"\n[titles]\nS = "Läuft"\n')
    code = (
        "from course.curriculum.languages import choose\n"
        "from course.grading.remote import judge_apart\n"
        "for name in ('en', 'xx', 'en'):\n"
        "    choose(name)\n"
        "    report = judge_apart('1.1', ['1 / 0'], 7)[0]\n"
        "    print(report.rules[0].title, '|', report.rules[0].message.splitlines()[-1].split()[0])\n"
    )
    env = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "The code runs by itself | Next", "Läuft | Weiter", "The code runs by itself | Next"
    ], done.stderr  # fmt: skip


def test_the_lab_chooses_too_and_hands_the_lessons_out_in_that_language(places):
    done = sluice(places, "lab", "--copy-only", "--language", "zh", JUPYTER_DATA_DIR=str(places / "jupyter"))
    assert done.returncode == 0, done.stderr
    assert "▸ zh" in sluice(places, "language").stdout
    lesson = json.loads((places / "work" / "01_segments.ipynb").read_text(encoding="utf-8"))
    assert "".join(lesson["cells"][0]["source"]).splitlines()[0] == "# 内存段"
    done = sluice(places, "lab", "--copy-only", "--language", "zz")
    assert (done.returncode, done.stderr) == (2, "there is no language 'zz'; there are en, xx, zh\n")


@pytest.mark.parametrize("name", ["en", *languages.own_languages()])
def test_what_stands_in_columns_has_room_there(name, monkeypatch):
    """Labels before a report's lines, and its last line, which a terminal says in other words, unbroken."""
    monkeypatch.setenv("SLUICE_LANGUAGE", name)
    words = common("report")
    for label in (words["ran"], words["job"], words["ask"], words["next"], phrase("your_line")):
        assert width(label) < 14, label
    for who in (phrase("yours"), phrase("flink"), phrase("right")):
        assert width(who) < 7, who
    for text in (words["next_failed"], words["next_source"]):
        assert width(text.format(exercise="18.2", seed=7)) <= COLUMNS - 16, text


def test_a_wrong_answer_is_told_in_chinese(places):
    (places / "mine.py").write_text("x = (\n", encoding="utf-8")
    done = sluice(places, "check", "3.1", "--file", str(places / "mine.py"), SLUICE_LANGUAGE="zh")
    assert done.returncode == 1
    assert all(width(line) <= COLUMNS for line in done.stdout.splitlines() if "mine.py" not in line)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  ") and line.strip()]
    told = {word for line in lines if ">" not in line for word in re.findall(r"[A-Za-z]{3,}", line)}
    assert "下一步" in done.stdout
    assert told & {"We", "your", "Next", "the", "and"} == set()
