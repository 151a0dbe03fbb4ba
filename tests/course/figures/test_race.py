"""The race as a table, as JSON and as curves."""

from __future__ import annotations

import json
from pathlib import Path

from course.cli import main
from course.figures.race import race
from course.figures.race_page import RACE_FILES, write_race_page
from course.jobs import race_command
from refimpl.rivals import ENTRANTS, Phase, contests, wins

BRIEF = (Phase("free", 3, 100.0, 200.0), Phase("held", 4, 100.0, 50.0), Phase("free again", 3, 100.0, 200.0))

STORED = Path(__file__).parents[3] / "course" / "site"


def test_the_race_as_table_json_and_figure(tmp_path: Path) -> None:
    begun: list[str] = []
    found = race(["atm-link", "sluice-credit"], 3, BRIEF, begun.append)
    assert begun == ["atm-link", "sluice-credit"]
    assert "ATM, per link" in repr(found)
    assert "Sluice, with credit" in repr(found)
    systems = json.loads(json.dumps(found.as_json(), allow_nan=False))["systems"]
    assert systems["atm-link"]["phases"][1]["sustainable_per_s"] == 50
    assert "who wins at what" in repr(found)
    (back,) = [win for win in wins(found.measures) if win.what == "is back first"]
    assert f"{back.what:<32}{' · '.join(back.names)} ({back.words})" in repr(found)
    told = {win["what"]: win["names"] for win in found.as_json()["wins"]}
    assert told == {win.what: win.names for win in wins(found.measures)}
    assert "the source" in found.figure().alt
    found.figure().save(tmp_path / "race.svg")
    assert (tmp_path / "race.svg").stat().st_size > 1_000


def test_the_command_lists_all_and_refuses_before_it_runs(capsys: object) -> None:
    assert tuple(ENTRANTS) == race_command._NAMES
    refused = (
        "--only flink", "--seed -1", "--picture race.txt", "--picture nowhere/race.svg", "--page nowhere",
    )  # fmt: skip
    for wrong in map(str.split, refused):
        try:
            status = main(["race", *wrong])
        except SystemExit as error:
            status = int(error.code or 0)
        assert status == 2, wrong


def test_of_one_alone_nobody_says_that_it_wins() -> None:
    alone = race(["atm-link"], 3, BRIEF)
    assert "wins" not in repr(alone)
    assert alone.as_json()["wins"] == []


def test_the_page_has_the_curves_and_who_wins(tmp_path: Path) -> None:
    found = race(["atm-link", "bounded"], 3, BRIEF)
    page = write_race_page(found, tmp_path).read_text()
    for win in wins(found.measures):
        assert f"| {win.what} | {' · '.join(win.names) or 'nobody'} | {win.words} |" in page
    assert found.table() in page
    picture = (tmp_path / RACE_FILES[1]).read_text()
    assert f"]({RACE_FILES[1]})" in page
    assert picture.count('class="rate s0"') == 2 + 1  # and the key
    assert "ATM, per link" in picture


def test_the_stored_page_shows_all_systems_and_every_contest() -> None:
    page, picture = ((STORED / name).read_text() for name in RACE_FILES)
    assert [f"| {each.what} |" in page for each in contests()] == [True] * len(contests())
    assert picture.count('class="rate s0"') == len(ENTRANTS) + 1
    assert ": **no**" not in page
    assert page.count(": yes\n") > 10
