"""The page of the race: the curves of all systems, who wins at what, and which expectations held."""

from __future__ import annotations

from pathlib import Path

from course.figures.race import Race
from refimpl.rivals import ENTRANTS, signs, wins
from widgets import RaceView

__all__ = ["RACE_FILES", "write_race_page"]

RACE_FILES = ("race.md", "race.svg")

_PAGE = """# How others push back

What a system does when its consumer is slower than its source is a matter of design. Here one workload goes through
eight designs, on a clock of its own: two branches, of which one has a slow consumer for a while and the other is
innocent. The two rows of the engine are the engine itself; the others are machines that follow the rules and constants
of their primary sources, which their files in `refimpl/rivals` name.

![For each system the rate of the slow branch's source and of the innocent branch, second by second](race.svg)

A row is a system. The dashed line is what can pass the slow branch; the nearer the source keeps to it, the better. The
second line is the innocent branch, which has nothing to do with all this and should not be touched.

## Who wins at what

| at what | who | how much |
|---|---|---|
{wins}

Those in one line are less apart than can be told. `refimpl/rivals/wins.py` says what is contested.

## What is expected

These hold in each of 50 races with other service times: `make race` runs them. In this one:

{signs}

## All numbers

```text
{numbers}
```

This page is written by `sluice race --page {folder}`. `RaceView(race())` is the same picture with a slider.
"""


def write_race_page(race: Race, folder: Path) -> Path:
    """Write the page of a race and its picture into a folder; which file the page is."""
    page, picture = (folder / name for name in RACE_FILES)
    found = wins(race.measures)
    rows = [f"| {win.what} | {' · '.join(win.names) or 'nobody'} | {win.words} |" for win in found]
    is_whole = set(race.measures) == set(ENTRANTS)
    told = [f"- {sign}: {'yes' if holds else '**no**'}" for sign, holds in signs(race.measures)] if is_whole else []
    view = RaceView(race.runs.values(), title=f"How others push back, seed {race.seed}")
    picture.write_text(view.svg() + "\n", encoding="utf-8")
    view.close()
    text = _PAGE.format(
        wins="\n".join(rows),
        signs="\n".join(told) or "Not all systems took part, so nothing is expected.",
        numbers=race.table(),
        folder="course/site",
    )
    page.write_text(text, encoding="utf-8")
    return page
