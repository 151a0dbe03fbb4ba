"""The table of Flink's scenarios: each number has tests that name it, or a reason why there is none.

python -m tests.peer.test_table     writes which tests name a number, and leaves the reasons as they are
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.flink_scenarios import TESTS, labelled

pytestmark = pytest.mark.peer

TABLE = Path(__file__).parent / "README.md"
ROW = re.compile(r"^\| P(?P<number>\d+) \| (?P<flink>[^|]+) \| (?P<said>[^|]*) \|$", re.MULTILINE)
ENOUGH = 80


class Row(NamedTuple):
    """A scenario: the tests of Flink it comes from, and ours or the reason why it has none."""

    flink: str
    said: str


def rows() -> dict[int, Row]:
    return {int(row["number"]): Row(row["flink"], row["said"]) for row in ROW.finditer(TABLE.read_text("utf-8"))}


def in_words(tests: list[tuple[str, str]]) -> str:
    """The files of some tests, each with its tests in the order in which they stand there."""
    files = dict.fromkeys(file for file, _ in tests)
    return "; ".join(f"`{file}`: " + ", ".join(f"`{name}`" for each, name in tests if each == file) for file in files)


def test_every_scenario_has_its_row() -> None:
    assert list(rows()) == list(range(1, 115))


def test_a_row_names_the_tests_that_name_its_number() -> None:
    said = {number: row.said for number, row in rows().items() if "`" in row.said}
    assert said == {number: in_words(tests) for number, tests in sorted(labelled().items())}


def test_a_scenario_without_a_test_has_a_reason() -> None:
    assert [number for number, row in rows().items() if "`test_" not in row.said and len(row.said.split()) < 3] == []


def test_most_scenarios_have_a_test() -> None:
    assert len(labelled()) >= ENOUGH


def test_a_label_stands_behind_the_name_of_a_test_that_the_row_names() -> None:
    table = {number: set(re.findall(r"`([^`]+)`", row.flink)) for number, row in rows().items()}
    wrong = []
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, numbers in re.findall(r"`(\w+(?:#\w+…?)?)` \((P\d+(?:, P\d+)*)\)", path.read_text("utf-8")):
            wrong += [(path.name, name, each) for each in numbers.split(", ") if name not in table[int(each[1:])]]
    assert wrong == []


@pytest.mark.slow
def test_asked_for_this_folder_and_a_number_pytest_finds_its_tests_and_no_other() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:nbval", "--collect-only", "-q"]
    command += ["-m", "peer(number=7)", str(TABLE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent)
    found = [tuple(line.split("::")) for line in done.stdout.splitlines() if "::" in line]
    assert found == [(f"tests/{file}", name) for file, name in labelled()[7]]


if __name__ == "__main__":
    known = labelled()
    TABLE.write_text(
        ROW.sub(
            lambda row: (
                f"| P{row['number']} | {row['flink']} | {in_words(known.get(int(row['number']), [])) or row['said']} |"
            ),
            TABLE.read_text("utf-8"),
        ),
        encoding="utf-8",
    )
