"""No language that comes with the course lags behind the English, and the command says what does."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import course
from course.author.translation import MADE_OF, Finding, english, findings, main, report, stamp
from course.curriculum.languages import own_languages

INTERFACE = "curriculum/interface.toml"
LESSON = "lessons/01_segments.md"
SLUICE_RIGHT = "questions/right"


@pytest.mark.parametrize("language", own_languages())
def test_no_language_lags(language):
    lines = report(language)
    assert not lines, "\n".join(lines[-60:])


@pytest.fixture
def xx(tmp_path, monkeypatch) -> Path:
    """A language of one's own that says the same as the English."""
    folder = tmp_path / "xx"
    for file in (INTERFACE, "curriculum/questions.toml"):
        write(folder, file, (Path(course.__file__).parent / file).read_text(encoding="utf-8"))
    write(folder, LESSON, "".join(f"<!-- {name} -->\n{text}\n\n" for name, text in english()[LESSON].items()))
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    return folder


def write(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text, encoding="utf-8")


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    write(folder, file, text.replace(old, new))


def of(file: str) -> list[Finding]:
    return [each for each in findings("xx") if each.file == file]


def test_every_text_of_the_catalogues_and_every_cell_with_prose_can_be_translated():
    texts = english()
    files = {file for file in texts if file.endswith(".toml")}
    folder = Path(course.__file__).parent
    stubs = {f"exercises/{file.name}/stub.toml" for file in folder.glob("exercises/e*")}
    of_exercises = [f"exercises/*/{name}.toml" for name in ("messages", "exercise", "answers")]
    assert files == stubs | {
        file.relative_to(folder).as_posix()
        for kind in ("curriculum/*s.toml", INTERFACE, *of_exercises)
        for file in folder.glob(kind)
    }
    assert {file for file in texts if file.endswith(".md")} == {
        f"lessons/{file.stem}.md" for file in (folder.parent / "lessons").glob("[0-9]*.ipynb")
    }
    assert all("right" not in key.split("/") for key in texts["curriculum/questions.toml"])


def test_what_is_stamped_is_up_to_date_and_what_was_never_stamped_is_new(xx):
    assert {each.kind for each in of(INTERFACE)} == {each.kind for each in of(LESSON)} == {"new"}
    assert stamp("xx", [INTERFACE, LESSON]) == []
    assert of(INTERFACE) == of(LESSON) == []
    assert {each.kind for each in of("curriculum/questions.toml")} == {"new"}


def test_a_text_whose_english_has_changed_lags_until_it_is_stamped_again(xx):
    stamp("xx")
    file = xx / MADE_OF
    made_of = json.loads(file.read_text(encoding="utf-8"))
    made_of[INTERFACE][SLUICE_RIGHT] = made_of[LESSON]["why"] = "0" * 8  # of another English
    file.write_text(json.dumps(made_of), encoding="utf-8")
    assert [(each.kind, each.key) for each in [*of(INTERFACE), *of(LESSON)]] == [
        ("lags", SLUICE_RIGHT),
        ("lags", "why"),
    ]
    assert [each.key for each in stamp("xx", [LESSON])] == ["why"]
    assert (len(of(INTERFACE)), of(LESSON)) == (1, [])


def test_a_sentence_that_is_not_translated_is_missing_and_cannot_be_stamped(xx):
    change(xx, INTERFACE, 'not_that_one = "✗ not that one; think again, choose another."\n', "")
    change(xx, LESSON, "<!-- why -->", "<!-- whyever -->")
    stamp("xx")
    assert [(each.kind, each.key) for each in of(INTERFACE)] == [("missing", "questions/not_that_one")]
    assert [(each.kind, each.key) for each in of(LESSON)] == [("missing", "why"), ("surplus", "whyever")]


def test_a_sign_may_be_left_out_and_says_so_when_it_changes(xx):
    change(xx, INTERFACE, 'right = "✓ right. {because}"\n', "")
    assert ("new", SLUICE_RIGHT) in [(each.kind, each.key) for each in of(INTERFACE)]
    stamp("xx")
    assert of(INTERFACE) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (INTERFACE, "✓ right. {because}", "✓ right. {becaus}", "blanks: {because} missing, {becaus} too much"),
        (INTERFACE, "now on: checks and", "now on. Checks\\nand", "lines: 2 in English, 3 here"),
        (INTERFACE, "`make lab` or", "`make` or", "code: `make lab` missing, `make` too much"),
        (INTERFACE, "think again", "再想,", "a mark behind a Chinese character is full-width: 想,"),
        (LESSON, "## An incident", "# An incident", "headings: ##  missing, #  too much"),
        (LESSON, "Nobody had asked", "段落\n段落", "a paragraph is one line; this one is broken at '落\\n段'"),
        (LESSON, "`00` to `ff`", "`00`", "code: `ff` missing, none too much"),
    ],
)
def test_a_translation_has_what_its_english_has(xx, file, old, new, says):
    stamp("xx")
    assert of(file) == []
    change(xx, file, old, new)
    assert [(each.kind, each.what) for each in of(file)] == [("differs", says)]


STUB = "exercises/e03_1_serializer/stub.toml"


@pytest.fixture
def stub_of_xx(xx) -> Path:
    """The same language, which says the docstrings of a stub as the English does."""
    lines = [f"{name} = {json.dumps(text)}\n" for name, text in english()[STUB].items()]
    write(xx, STUB, "".join(lines))
    stamp("xx")
    assert of(STUB) == []
    return xx


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("`commit()`", "`put()`", "code: `commit()` missing, `put()` too much"),
        ("5 MiB", "5 MB", "names: MiB missing, none too much"),
        ("append(data", "add(data", "names: append missing, add too much"),
        ("Keep the record", "记录" * 40 + "Keep the record", "width: a line takes 237 columns, and may take 112"),
    ],
)
def test_a_docstring_calls_things_by_their_names_in_lines_that_fit(stub_of_xx, old, new, says):
    change(stub_of_xx, STUB, old, new)
    assert says in [each.what for each in of(STUB)]


def test_a_docstring_that_is_missing_or_whose_english_has_changed_is_found(stub_of_xx):
    file = stub_of_xx / MADE_OF
    made_of = json.loads(file.read_text(encoding="utf-8"))
    made_of[STUB]["reset"] = "0" * 8
    file.write_text(json.dumps(made_of), encoding="utf-8")
    lines = (stub_of_xx / STUB).read_text(encoding="utf-8").splitlines(keepends=True)
    write(stub_of_xx, STUB, "".join(line for line in lines if not line.startswith("prune")))
    assert [(each.kind, each.key) for each in of(STUB)] == [("lags", "reset"), ("missing", "prune")]


def test_a_belief_that_is_missing_is_found(xx):
    file = "exercises/e03_1_serializer/answers.toml"
    rows = {key.split("/")[1]: text for key, text in english()[file].items()}
    write(xx, file, "[wrong]\n" + "".join(f"{name}.belief = {json.dumps(text)}\n" for name, text in rows.items()))
    stamp("xx")
    assert of(file) == []
    change(xx, file, f"w09_no_length.belief = {json.dumps(rows['w09_no_length'])}\n", "")
    assert [(each.kind, each.key) for each in of(file)] == [("missing", "wrong/w09_no_length/belief")]


def test_cells_keep_their_order_and_nothing_stands_before_the_first(xx):
    stamp("xx")
    text = (xx / LESSON).read_text(encoding="utf-8")
    write(xx, LESSON, text.replace("<!-- why -->", "<!-- x -->").replace("<!-- meet -->", "<!-- why -->"))
    assert "differs" not in {each.kind for each in of(LESSON) if "order" in each.what}
    cells = text.split("<!-- ")
    write(xx, LESSON, "A word first.\n" + "<!-- ".join([cells[0], *reversed(cells[1:])]))
    assert {(each.kind, each.key) for each in of(LESSON)} == {("differs", ""), ("surplus", "before the first cell")}


def test_a_file_and_a_key_that_the_course_has_not_are_surplus(xx):
    write(xx, "lessons/77_nowhere.md", "<!-- a -->\ntext\n")
    change(xx, INTERFACE, "[questions]", '[questions]\nleft = "✓"')
    stamp("xx")
    assert [(each.kind, each.key) for each in of("lessons/77_nowhere.md")] == [("surplus", "a")]
    assert [(each.kind, each.key) for each in of(INTERFACE)] == [("surplus", "questions/left")]


def test_the_command_says_what_there_is_to_do(xx, capsys):
    assert main(["xx", "--stamp", LESSON]) == 1
    said = capsys.readouterr().out
    assert f"new      {INTERFACE}  {SLUICE_RIGHT}: ✓ right. {{because}}" in said
    assert "missing  lessons/02_pools.md  why:" in said
    assert "lessons/01" not in said
    assert said.endswith("Then: python -m course.author.translation xx --stamp [FILE …]\n")
    assert main(["yy"]) == 2
    assert "there is no language 'yy'; there are en, " in capsys.readouterr().err
    assert main(["en"]) == 2
    with pytest.raises(SystemExit):
        main(["xx", "--stamp", "lessons/99.md"])
    assert "no such file: lessons/99.md" in capsys.readouterr().err


def test_a_catalogue_that_is_no_toml_is_named(xx):
    write(xx, INTERFACE, "[questions\n")
    with pytest.raises(SystemExit, match=r"interface\.toml: "):
        findings("xx")
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads((xx / INTERFACE).read_text())
