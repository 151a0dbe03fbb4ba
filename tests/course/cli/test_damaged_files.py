"""Every file that a command is given may be damaged, or no file at all: a sentence that names it, and no waiting."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import nbformat
import pytest

from course.classroom.class_file import ClassFile
from course.cli import main
from course.curriculum.specimens import right_answers
from course.grading.judge import judge
from course.learner import progress
from course.learner.receipts import make_receipt
from tests.support.class_ends import T0, checked
from tests.support.damage import damaged, damaged_json, no_files

pytestmark = pytest.mark.usefixtures("own_state")

SOURCE = right_answers("0.1")[0].source
CANVAS = b'Student,ID,SIS User ID,SIS Login ID,Section\r\n    Points Possible,,,,\r\n"Lovelace, Ada",1,u1,ada,S1\r\n'
MOODLE = b"First name,Last name,ID number,Email address,Username\nAda,Lovelace,1,ada@example.org,ada\n"
PATIENCE_S = 60
"""So long no command takes here that does not wait for ever."""
COMMANDS = {
    "import": (".json", ("class", "import", "--db", "{db}", "--handle", "ada", "{file}")),
    "roster": (".csv", ("class", "export", "--db", "{db}", "--roster", "{file}")),
    "verify": (".json", ("verify", "{file}")),
    "verify a notebook": (".ipynb", ("verify", "{file}")),
    "check": (".py", ("check", "0.1", "--file", "{file}")),
    "check a notebook": (".ipynb", ("check", "0.1", "--file", "{file}")),
    "hint": (".py", ("hint", "0.1", "--file", "{file}")),
    "watch": (".py", ("watch", "0.1", "--file", "{file}")),
    "run": (".py", ("run", "{file}")),
}
WRITING = {
    "reset": (".py", ("reset", "0.1", "--file", "{file}"), {"gone"}),
    "out": (".csv", ("class", "export", "--db", "{db}", "--out", "{file}"), {"gone", "endless", "huge"}),
    "export": ("", ("export", "--out", "{file}"), {"gone", "folder"}),
    "trace": ("", ("run", "course/example_job.py", "--trace", "{file}"), {"gone", "folder"}),
    "keys": ("", ("cluster", "keys", "{file}"), {"gone", "folder"}),
}
"""Commands that write, and the kinds that they may write to."""


def waits_for_ever(*_: object) -> None:
    raise TimeoutError("it waits for ever")


@pytest.fixture
def sluice(capsys, monkeypatch):
    """Run a command with a time limit: status, what it said, what it complained of."""
    monkeypatch.setattr("course.learner.progress.nudge", lambda: None)

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        before = signal.signal(signal.SIGALRM, waits_for_ever)
        signal.alarm(PATIENCE_S)
        try:
            status = main([str(word) for word in words])
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def db(tmp_path) -> Path:
    path = tmp_path / "class.sqlite"
    with ClassFile(path, create=True, title="Tuesday") as file, file.transaction():
        file.add_events(file.admit("ada", T0), [checked(n=n) for n in range(3)], T0)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_no_file_is_not_read(sluice, tmp_path, db, name):
    ending, words = COMMANDS[name]
    with no_files(tmp_path, ending) as odd:
        for kind, file in odd.items():
            status, out, err = sluice(*(word.format(file=file, db=db) for word in words))
            assert (status, out, len(err.splitlines())) == (1 if name == "import" else 2, "", 1), (kind, err)
            assert f"{file} cannot be read: " in err
            assert kind != "endless" or "it is a device or a pipe" in err
            assert kind != "huge" or "it is larger than 16 MiB" in err


@pytest.mark.parametrize("name", WRITING)
def test_what_is_no_file_is_not_written(sluice, tmp_path, db, name):
    ending, words, fine = WRITING[name]
    with no_files(tmp_path, ending) as odd:
        for kind in [each for each in odd if each not in fine]:
            status, out, err = sluice(*(word.format(file=odd[kind], db=db) for word in words))
            assert status in {1, 2}, (kind, err)
            assert (out, len(err.splitlines())) == ("", 1), (kind, err)
            assert str(odd[kind]) in err


@pytest.fixture
def receipt() -> dict[str, Any]:
    report = judge("0.1", SOURCE)
    progress.record_check(report, SOURCE)
    return make_receipt()


@pytest.mark.parametrize("seed", [1, 20, 300])
def test_one_damaged_receipt_stops_no_other(sluice, tmp_path, receipt, seed):
    chance = random.Random(f"receipts {seed}")
    print(f"seed {seed}")
    (tmp_path / "good.json").write_text(json.dumps(receipt))
    for number in range(6):
        bad, half = tmp_path / f"bad{number}.json", tmp_path / f"half{number}.json"
        bad.write_bytes(damaged_json(chance, receipt))
        entry = json.loads(json.dumps(receipt["entries"][0]))
        half.write_text(json.dumps({**receipt, "entries": [{**entry, "seed": chance.choice([None, "7", 1.5])}, entry]}))
        db = tmp_path / f"{number}.sqlite"
        status, out, err = sluice("class", "import", "--db", db, bad, half, tmp_path / "good.json")
        assert "✓ good: judged again, 1 new event" in out, (number, err)
        assert status == 1
        assert f"✓ half{number}: judged again" in err, "what holds in it is kept"
        assert f"{bad}" in out + err
        assert "Traceback" not in err
        status, out, err = sluice("verify", bad)
        assert status in {0, 1, 2}
        assert (out + err).strip()
        assert status != 2 or f"{bad}" in err


@pytest.mark.parametrize("seed", [1, 20, 300])
def test_any_damage_is_said_in_a_sentence(sluice, tmp_path, own_state, db, seed):
    chance = random.Random(f"files {seed}")
    print(f"seed {seed}")
    cells = [nbformat.v4.new_code_cell(f'L.exercise("0.1")\n{SOURCE}')]
    notebook = json.loads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    events = [checked("0.1", n=n, time=1.7e9 + n) for n in range(3)] + [{"event": "hint", "exercise": "0.1", "rung": 2}]
    own_state.mkdir(exist_ok=True)
    for number in range(6):
        (own_state / "progress.jsonl").write_bytes(damaged_json(chance, *events))
        mine, book, table = (tmp_path / f"{number}{ending}" for ending in (".py", ".ipynb", ".csv"))
        mine.write_bytes(damaged(chance, SOURCE.encode()))
        book.write_bytes(damaged_json(chance, notebook))
        table.write_bytes(damaged(chance, chance.choice([CANVAS, MOODLE])))
        for words in (
            ("progress",), ("progress", "--json"), ("hint", "0.1", "--file", mine), ("check", "0.1", "--file", mine),
            ("check", "0.1", "--file", book), ("class", "export", "--db", db, "--roster", table, "--format", "canvas"),
            ("export", "--out", tmp_path / "out"), ("reset", "0.1", "--file", mine),
        ):  # fmt: skip
            status, out, err = sluice(*words)
            assert status in {0, 1, 2}, (words, err)
            assert (out + err).strip(), words
            assert "Traceback" not in err, words
            assert status != 2 or (len(err.splitlines()) == 1 and str(words[-1 if words[1] != "export" else 5]) in err)


@pytest.mark.parametrize("seed", [1, 20, 300])
def test_a_damaged_class_is_said_in_a_sentence(sluice, tmp_path, db, seed):
    chance = random.Random(f"classes {seed}")
    print(f"seed {seed}")
    with ClassFile(db) as file:
        file._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = db.read_bytes()
    for number in range(30):
        raw = bytearray(whole)
        for _ in range(chance.randint(1, 40)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        bad = tmp_path / f"bad{number}.sqlite"
        bad.write_bytes(raw[: chance.choice([len(raw), chance.randrange(len(raw))])])
        for words in (("show",), ("token",), ("export",), ("free", "ada"), ("unlock", "3.1", "3")):
            status, out, err = sluice("class", *words, "--db", bad)
            assert status in {0, 2, 3}, (number, words, err)
            assert (out + err).strip(), (number, words)
            assert "Traceback" not in err, (number, words)
