"""`sluice new lesson`: a lesson of one's own passes what the course's lessons pass, and is handed out with them."""

from __future__ import annotations

import json
import tomllib

import pytest

from course.author import build as builder
from course.author.new_lesson import new_lesson
from course.cli import main
from course.curriculum.manifest import LESSONS
from course.curriculum.own_lessons import OwnLessonError, own_lesson, own_lessons, own_questions
from course.learner.lessons import hand_out
from course.learner.next_exercise import listing

TITLE = 'Our "TITLE" of NUMBER, für uns'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a teacher's own, empty."""
    for name, place in (("OWN_LESSONS", "own-lessons"), ("WORK", "work")):
        monkeypatch.setenv(f"SLUICE_{name}", str(tmp_path / place))
    return tmp_path


def write(folder, name, text='title = "T"\nminutes = 5\n'):
    file = folder / "own-lessons" / "src" / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.slow
def test_a_new_lesson_passes_every_check_and_is_handed_out(folder, capsys):
    assert main(["new", "lesson", TITLE, "--minutes", "20"]) == 0
    said = capsys.readouterr().out.splitlines()
    name = "40_our_title_of_number_fur_uns"
    assert said[:5] == [
        f"✓ own-lessons/src/{name}.py",
        f"✓ own-lessons/src/{name}.toml",
        "✓ .github/workflows/own-lessons.yml",
        "✓ sluice-requirements.txt",
        f"✓ own-lessons/{name}.ipynb",
    ]
    assert main(["build", "40", "--check"]) == 0
    assert main(["verify", str(folder / "own-lessons" / f"{name}.ipynb")]) == 0
    assert own_lesson(40).title == TITLE
    assert next(each for each in listing()["lessons"] if each["number"] == "L40")["title"] == TITLE
    assert f"{name}.ipynb: copied" in hand_out(folder / "own-lessons", folder / "work")
    shown = json.loads((folder / "work" / f"{name}.ipynb").read_text())["cells"]
    assert "".join(shown[0]["source"]).startswith(f"# {TITLE}\n")
    assert "40 · 20 minutes" in shown[1]["outputs"][0]["text"][0]

    source = folder / "own-lessons" / "src" / f"{name}.py"
    source.write_text(source.read_text().replace("range(6)", "range(7)"))
    capsys.readouterr()
    assert main(["build", "40", "--check"]) == 1
    assert capsys.readouterr().out == f"own-lessons/{name}.ipynb: different\n"


def test_numbers_go_up_and_what_is_there_stays(folder):
    _, first = new_lesson("One")
    (folder / "sluice-requirements.txt").write_text("mine")
    number, second = new_lesson("Two", name="zwei")
    assert [file.name for file in first if file.suffix == ".py"] == ["40_one.py"]
    assert number == 41
    assert [file.name for file in second] == ["41_zwei.py", "41_zwei.toml"]
    assert (folder / "sluice-requirements.txt").read_text() == "mine"
    assert {number: lesson.name for number, lesson in own_lessons().items()} == {40: "40_one", 41: "41_zwei"}
    with pytest.raises(OwnLessonError, match="lesson 41 is 41_zwei already"):
        new_lesson("Three", number=41)
    for number in range(42, 100):
        write(folder, f"{number}_x")
    with pytest.raises(OwnLessonError, match="all taken"):
        new_lesson("Too many")


@pytest.mark.parametrize("title", ["流", "—", "!"])
def test_a_title_without_a_letter_for_a_file_makes_a_name_all_the_same(folder, title):
    _, (source, table, *_) = new_lesson(title)
    assert source.name == "40_lesson.py"
    assert tomllib.loads(table.read_text())["title"] == title


@pytest.mark.parametrize(
    "words", [["--number", "9"], ["--number", "100"], ["--name", "A b"], ["--minutes", "0"], ["--minutes", "x"]]
)
def test_what_cannot_be_is_wrong_use(folder, words):
    with pytest.raises(SystemExit) as ended:
        main(["new", "lesson", "T", *words])
    assert ended.value.code == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = 3\nminutes = 5\n", "needs title"),
        ('title = "T"\nminutes = true\n', "needs title"),
        ("title = \n", "cannot be read"),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_damaged_table_is_named(folder, capsys, text, why):
    write(folder, "40_x", "")
    (folder / "own-lessons" / "src" / "40_x.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(OwnLessonError, match=rf"40_x\.toml.*{why}"):
        own_lessons()
    assert main(["build", "40"]) == 2
    assert "40_x.toml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["39_x", "100_x", "x", "40_X"])
def test_a_name_that_is_no_lessons_is_refused(folder, name):
    write(folder, name)
    with pytest.raises(OwnLessonError, match=r"from 40 to 99|is a number"):
        own_lessons()


def test_two_lessons_of_one_number_are_refused(folder):
    write(folder, "40_a")
    write(folder, "40_b")
    with pytest.raises(OwnLessonError, match="lesson 40 is 40_a already"):
        own_lessons()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ('["41.a"]\nkind = "quiz"\n', "called like"),
        ('["40.a"]\nkind = "quiz"\nask = "?"\nchoices = { a = "1" }\n', "two choices"),
        ('["40.a"]\nkind = "poll"\nask = "?"\nchoices = { a = "1", b = "2" }\n', "needs kind"),
        ('["40.a"]\nkind = "quiz"\nask = "?"\nchoices = { a = "1", b = "2" }\nright = "c"\nbecause = "x"\n', "right ="),
        (
            '["40.a"]\nkind = "predict"\nask = "?"\nchoices = { a = "1", b = "2" }\nanswers = { a = "x" }\n',
            "each choice",
        ),
    ],
)
def test_a_question_that_lacks_something_is_named(folder, row, why):
    write(folder, "40_x", f'title = "T"\nminutes = 5\n{row}')
    with pytest.raises(OwnLessonError, match=why):
        own_questions(40)


def test_without_such_a_folder_there_are_none(folder):
    assert own_lessons() == {}
    assert own_lesson(40) is None
    assert own_lesson(3) is None
    assert {each["number"] for each in listing()["lessons"]} == {f"L{number:02d}" for number in LESSONS}


def test_an_installed_package_builds_a_teachers_own_lessons_alone(folder, monkeypatch, capsys):
    monkeypatch.setattr(builder, "is_checkout", lambda: False)
    assert builder.build_all() == []
    assert main(["build", "3"]) == 2
    assert "there is no lesson 3; there are none: `sluice new lesson TITLE` makes one" in capsys.readouterr().err


def test_where_nothing_can_be_written_another_folder_is_asked_for(folder, capsys):
    (folder / "own-lessons").write_text("in the way")
    assert main(["new", "lesson", "One"]) == 2
    assert "cannot be written: Not a directory; name another folder in SLUICE_OWN_LESSONS" in capsys.readouterr().err
