"""The race as a table, as JSON and as curves."""

from __future__ import annotations

import json
from pathlib import Path

from course.cli import main
from course.figures.race import race
from course.jobs import race_command
from refimpl.rivals import ENTRANTS, Phase

BRIEF = (Phase("free", 3, 100.0, 200.0), Phase("held", 4, 100.0, 50.0), Phase("free again", 3, 100.0, 200.0))


def test_the_race_as_table_json_and_figure(tmp_path: Path) -> None:
    begun: list[str] = []
    found = race(["atm-link", "sluice-credit"], 3, BRIEF, begun.append)
    assert begun == ["atm-link", "sluice-credit"]
    assert "ATM, per link" in repr(found)
    assert "Sluice, with credit" in repr(found)
    systems = json.loads(json.dumps(found.as_json(), allow_nan=False))["systems"]
    assert systems["atm-link"]["phases"][1]["sustainable_per_s"] == 50
    assert "the source" in found.figure().alt
    found.figure().save(tmp_path / "race.svg")
    assert (tmp_path / "race.svg").stat().st_size > 1_000


def test_the_command_lists_all_and_refuses_before_it_runs(capsys: object) -> None:
    assert tuple(ENTRANTS) == race_command._NAMES
    for wrong in (["--only", "flink"], ["--seed", "-1"], ["--picture", "race.txt"], ["--picture", "nowhere/race.svg"]):
        try:
            status = main(["race", *wrong])
        except SystemExit as error:
            status = int(error.code or 0)
        assert status == 2, wrong
