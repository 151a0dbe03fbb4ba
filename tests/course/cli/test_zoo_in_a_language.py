"""`sluice zoo` says what the author of a wrong part believed, in the learner's language."""

from __future__ import annotations

import pytest

from course.cli import main
from course.curriculum.specimens import zoo


@pytest.mark.parametrize(("language", "label"), [("en", "belief"), ("zh", "想法")])
def test_beliefs_are_said_in_the_language(language, label, monkeypatch, capsys):
    monkeypatch.setenv("SLUICE_LANGUAGE", language)
    assert main(["zoo", "0.1"]) == 0
    said = capsys.readouterr().out
    lines = [line.split(maxsplit=1)[1] for line in said.splitlines() if line.split()[0] == label]
    beliefs = [each.belief for each in zoo("0.1")]
    assert len(lines) == len(beliefs)
    assert (lines == beliefs) == (language == "en")
    assert not {*lines} & {*beliefs} or language == "en"


def test_a_belief_that_a_language_has_not_is_said_in_english(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "xx" / "exercises" / "e00_1_departure"
    folder.mkdir(parents=True)
    (folder / "answers.toml").write_text('[wrong]\nw09_text.belief = "Nur Text."\n', encoding="utf-8")
    monkeypatch.setenv("SLUICE_LOCALES", str(tmp_path))
    monkeypatch.setenv("SLUICE_LANGUAGE", "xx")
    assert main(["zoo", "0.1"]) == 0
    beliefs = [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines() if "    belief" in line]
    assert beliefs == ["Nur Text." if each.name == "w09_text" else each.belief for each in zoo("0.1")]
