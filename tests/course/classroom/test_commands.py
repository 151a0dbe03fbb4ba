"""`sluice class`, `sluice join` and `sluice catchup`, as they are typed."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course.classroom.class_file import ClassFile
from course.classroom.export import _tame
from course.cli import main
from course.curriculum.manifest import EXERCISES
from course.curriculum.specimens import right_answers, zoo
from course.grading.judge import judge
from course.learner import hints, membership, progress
from course.learner.outbox import plain_orders
from course.learner.receipts import make_receipt
from tests.support.class_ends import T0, checked, secret
from tests.support.polling import until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def sluice(capsys, monkeypatch):
    """Run a command in this process: status, what it printed, what it complained of."""
    monkeypatch.setattr("course.learner.join_command.nudge", lambda: None)
    monkeypatch.setattr("course.learner.progress.nudge", lambda: None)

    def run(*words):
        capsys.readouterr()
        try:
            status = main(list(map(str, words)))
        except SystemExit as ended:
            status = ended.code
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def address(room):
    return f"{room.code}@127.0.0.1:{room.port}"


# -- join --------------------------------------------------------------------------------------------


def test_joining_standing_leaving(sluice, address, own_state, room):
    progress.record("check", exercise="3.1", status="failed", rule="E", code_hash="sha256:" + "1" * 64)
    status, out, err = sluice("join", address, "--handle", "ada")
    assert (status, err) == (0, "")
    assert "✓ you are ada in the class 'Tuesday'." in out
    assert "Never your code" in out
    assert sluice("join", address, "--handle", "ada")[0] == 0
    status, out, _ = sluice("join")
    assert (status, "1 event waits to be sent" in out) == (0, True)
    assert sluice("join", address, "--handle", "bob")[0] == 1
    status, out, _ = sluice("join", "--leave")
    assert (status, "you left the class 'Tuesday'" in out) == (0, True)
    assert sluice("join")[0] == 1
    assert sluice("join", "--leave")[:2] == (0, "you are in no class\n")
    assert sluice("join", address, "--handle", "ada")[0] == 0, "the same machine has the same secret"
    assert [each["handle"] for each in room.model()["learners"]] == ["ada"]
    assert (own_state / "progress.jsonl").is_file()


@pytest.mark.usefixtures("own_state")
def test_every_reason_why_one_is_not_in_has_its_sentence(sluice, address, room, monkeypatch, tmp_path):
    room.join("taken", secret(5))
    wrong_code = address.replace(room.code, "222-222")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        for words, status, sentence in (
            ((address,), 2, "choose a handle: --handle NAME"),
            (("somewhere", "--handle", "ada"), 2, "'somewhere' is not CODE@HOST:PORT"),
            ((address, "--handle", "a b"), 2, "a handle is letters, digits"),
            ((wrong_code, "--handle", "ada"), 1, "that is not the code of this class"),
            ((address, "--handle", "Taken"), 1, "the handle Taken is taken in this class"),
            ((f"AAA@127.0.0.1:{free.getsockname()[1]}", "--handle", "ada"), 1, "Has the class begun"),
            (("AAA@no-such-host.invalid", "--handle", "ada"), 1, "no class answers at no-such-host.invalid:8765"),
        ):
            got, out, err = sluice("join", *words)
            assert (got, out, len(err.splitlines())) == (status, "", 1), (words, err)
            assert sentence in err
    assert not membership.is_in_class()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "file" / "work"))
    status, _, err = sluice("join", address, "--handle", "ada")
    assert (status, "name another folder in SLUICE_WORK" in err) == (3, True)


@pytest.mark.usefixtures("own_state")
def test_one_class_at_a_time(sluice, address, tmp_path):
    sluice("join", address, "--handle", "ada")
    status, _, err = sluice("join", "ZZZ-ZZZ@127.0.0.1:1", "--handle", "ada")
    assert (status, err) == (2, "you are in the class 'Tuesday' as ada; leave it first: sluice join --leave\n")


@pytest.mark.usefixtures("own_state")
def test_a_clock_that_is_off_is_said(sluice, address, room):
    room.clock.now = time.time() - 2 * 3600
    out = sluice("join", address, "--handle", "ada")[1]
    assert "this machine's clock is 120 minutes ahead of the class's; times are put right" in out


# -- in class mode -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_state")
def test_in_a_class_hints_come_rung_by_rung_until_the_instructor_unlocks_them(room):
    wrong = zoo("3.1")[0].source
    report = judge("3.1", wrong)
    assert hints.hint_for(report, wrong, 4).startswith("Hint 4 of 5")
    rule = report.failed_rule.id
    assert hints.next_rung("3.1", rule, report.code_hash) == (5, None)
    member = membership.Membership("127.0.0.1", 1, "ada", secret(1), "Tuesday")

    def hint(rung=None, **options):
        return hints.hint_for(report, wrong, rung, **options).split(" of 5")[0]

    membership.keep(member)
    try:
        assert progress.is_class_mode()
        assert hint() == "Hint 4", "the rung one has seen stays"
        assert hint(now=True) == "Hint 4"
        assert hint(5) == "Hint 4"
        assert hint(2) == "Hint 2"
        orders = plain_orders({"orders": {"hints": {"3.1": 5}}})
        membership.keep_said(membership.Said(member.secret, orders=orders))
        assert hint() == "Hint 5"
    finally:
        membership.forget()
    assert not progress.is_class_mode()


@pytest.mark.usefixtures("own_state")
def test_a_check_in_the_terminal_tells_the_news_beside_the_report(sluice, address, room, tmp_path):
    sluice("join", address, "--handle", "ada")
    member = membership.current()
    orders = plain_orders({"orders": {"checkpoint": "3.1"}})
    membership.keep_said(membership.Said(member.secret, orders=orders))
    mine = tmp_path / "mine.py"
    mine.write_text(right_answers("0.1")[0].source)
    status, out, err = sluice("check", "0.1", "--file", mine, "--json")
    assert (status, json.loads(out)["status"]) == (0, "passed")
    assert err == "Tuesday: the class is at 3.1 now.\n"
    assert sluice("check", "0.1", "--file", mine)[2] == ""
    (event, _) = progress.events()
    assert event["rules_passed"] == event["rules_total"] == len(json.loads(out)["rules"])


@pytest.mark.usefixtures("own_state")
def test_catching_up_opens_what_comes_before_and_passes_nothing(sluice):
    from course.learner import notebook

    assert "is shown after passing" in notebook.reveal("0.1")
    status, out, _ = sluice("catchup", 3)
    assert (status, "our parts stand in for 0.1" in out) == (0, True)
    assert "def" in notebook.reveal("0.1")
    assert progress.best_status("0.1") == "not_started"
    assert (progress.state_folder() / "caught-up" / "0.1.py").read_text().strip()
    assert "nothing to catch up" in sluice("catchup", 3)[1]
    assert "nothing to catch up" in sluice("catchup", 0)[1]
    assert sluice("catchup", 99)[0] == 2


# -- class -------------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "class.sqlite"
    with ClassFile(path, create=True, title="Tuesday") as file, file.transaction():
        ada, bob = (file.join(handle, secret(n), T0).id for n, handle in enumerate(("ada", "Bob")))
        file.add_events(ada, [checked(status="passed", n=1, rules_passed=16), checked("0.1", n=2, seed=-5)], T0)
        file.add_events(bob, [{"event": "hint", "exercise": "3.1", "rule": "E", "rung": 2, "time": T0}], T0)
    return path


def read(text):
    assert "\n" not in text.replace("\r\n", "")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_the_csv_is_read_back_as_it_was_meant(sluice, db, tmp_path):
    out = tmp_path / "out.csv"
    assert sluice("class", "export", "--db", db, "--out", out)[0] == 0
    head, *rows = read(out.read_bytes().decode())
    found = {(row[0], row[1]): dict(zip(head, row, strict=True)) for row in rows}
    assert list(found) == [(handle, exercise) for handle in ("ada", "Bob") for exercise in EXERCISES]
    passed = found["ada", "3.1"]
    assert (passed["status"], passed["verified"]) == ("passed", "no")
    assert passed["rules_passed"] == passed["rules_total"] == "16"
    assert (found["ada", "0.1"]["seed"], found["Bob", "3.1"]["highest_hint"]) == ("-5", "2")
    assert found["Bob", "3.1"]["status"] == "not_started"
    rows = json.loads(sluice("class", "export", "--db", db, "--format", "json")[1])["standings"]
    assert {(row["handle"], row["exercise"]): row["status"] for row in rows}["ada", "3.1"] == "passed"


def test_gradebooks_get_the_columns_they_want(sluice, db, tmp_path):
    roster = tmp_path / "roster.csv"
    roster.write_text('handle,id,name\nada,al100,"Lovelace, Ada"\nBob,b2,"=HYPERLINK(""http://x"")"\n')
    for form in ("canvas", "moodle"):
        out = tmp_path / f"{form}.csv"
        assert sluice("class", "export", "--db", db, "--format", form, "--out", out, "--roster", roster)[0] == 0
    head, points, ada, bob = read((tmp_path / "canvas.csv").read_bytes().decode())
    assert head[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    mine = [{"0.1": "0", "3.1": "1"}.get(exercise, "") for exercise in EXERCISES]
    none = [""] * len(EXERCISES)
    assert points == ["    Points Possible", "", "", "", "", *["1"] * len(EXERCISES)]
    assert ada == ["Lovelace, Ada", "", "", "al100", "", *mine]
    assert bob == ['\'=HYPERLINK("http://x")', "", "", "b2", "", *none]
    head, ada, bob = read((tmp_path / "moodle.csv").read_bytes().decode())
    assert head == ["Username", *(f"Sluice {each.id} {each.title}" for each in EXERCISES.values())]
    assert (ada, bob) == (["al100", *mine], ["b2", *none])
    roster.write_text("who\nada\n")
    status, _, err = sluice("class", "export", "--db", db, "--roster", roster)
    assert (status, "needs the columns handle and id" in err) == (2, True)


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx"])
def test_no_text_is_a_formula(text):
    assert _tame(text) == f"'{text}"
    assert _tame(-1) == -1
    assert _tame("ada=1") == "ada=1"


def test_decisions_in_the_terminal(sluice, db):
    for words, sentence in (
        (("unlock", "3.1", 3), "hints of 3.1 are open to rung 3"),
        (("checkpoint", "3.1"), "the class is at 3.1"),
        (("reset", "0.1"), "0.1 starts afresh for all"),
        (("catchup", 3), "caught up to lesson 3"),
        (("free", "BOB"), "BOB can be joined with again"),
        (("remove", "bob"), "bob is taken out"),
    ):
        status, out, _ = sluice("class", *words, "--db", db)
        assert (status, sentence in out) == (0, True), words
    for words in (("unlock", "3.1", 9), ("reset", "9.9"), ("catchup", 99), ("free", "eve"), ("remove", "bob")):
        status, out, err = sluice("class", *words, "--db", db)
        assert (status, out, len(err.splitlines())) == (2, "", 1), words
    shown = sluice("class", "show", "--db", db)[1]
    assert "Class Tuesday: 1 learner, 0 here now · checkpoint 3.1: 1 of 1 passed" in shown
    assert sluice("class", "token", "--db", db)[1].count("-") == 3


def test_progress_files_are_brought_in_once(sluice, db, tmp_path):
    lines = "".join(json.dumps(checked(n=n, status="passed", time=T0)) + "\n" for n in range(3))
    (tmp_path / "eve.jsonl").write_text(lines + '{"event": "chec')
    (tmp_path / "team-7" / ".course").mkdir(parents=True)
    (tmp_path / "team-7" / ".course" / "progress.jsonl").write_text(lines)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad name.jsonl").write_text(lines)
    files = [tmp_path / "eve.jsonl", tmp_path / "team-7" / ".course" / "progress.jsonl"]
    status, out, err = sluice("class", "import", "--db", db, *files)
    assert (status, err) == (0, "")
    assert "✓ eve: 3 new events from" in out
    assert "✓ team-7: 3 new events from" in out
    assert "✓ eve: 0 new events, 3 known from" in sluice("class", "import", "--db", db, files[0])[1]
    bad = [tmp_path / name for name in ("empty.jsonl", "none", "bad name.jsonl")]
    status, _, err = sluice("class", "import", "--db", db, *bad)
    assert status == 1
    assert "is neither a progress file nor a receipt" in err
    assert "none cannot be read: No such file" in err
    assert "say whose it is with --handle" in err
    assert sluice("class", "import", "--db", db, tmp_path / "bad name.jsonl", "--handle", "zoe")[0] == 0
    assert sluice("class", "import", "--db", db, *files, "--handle", "zoe")[0] == 2
    assert "away" in next(line for line in sluice("class", "show", "--db", db)[1].splitlines() if "eve" in line)


@pytest.mark.usefixtures("own_state")
def test_a_receipt_is_judged_again_and_a_forged_one_is_not_believed(sluice, db, tmp_path):
    source = right_answers("0.1")[0].source
    report = judge("0.1", source)
    progress.record_check(report, source)
    receipt = make_receipt()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    status, out, _ = sluice("class", "import", "--db", db, tmp_path / "receipt.json", "--handle", "eve")
    assert (status, "✓ eve: judged again, 1 new event" in out) == (0, True)
    forged = {**receipt["entries"][0], "source": source + "\n# mine\n"}
    (tmp_path / "receipt.json").write_text(json.dumps({**receipt, "entries": [forged]}))
    status, _, err = sluice("class", "import", "--db", db, tmp_path / "receipt.json", "--handle", "mallory")
    assert (status, "nothing in it holds" in err) == (1, True)
    rows = json.loads(sluice("class", "export", "--db", db, "--format", "json")[1])["standings"]
    assert [(row["handle"], row["exercise"]) for row in rows if row["verified"]] == [("eve", "0.1")]
    assert "mallory" not in {row["handle"] for row in rows}


def test_what_cannot_be_served_is_said_in_a_sentence(sluice, tmp_path):
    (tmp_path / "text").write_text("hello " * 100)
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words, sentence in (
            (("--port", port), f"127.0.0.1:{port} is in use, perhaps by another class; choose another port"),
            (("--host", "203.0.113.9"), "203.0.113.9 is no address of this machine"),
            (("--host", "no-such-host.invalid"), "no-such-host.invalid is no address of this machine"),
        ):
            status, _, err = sluice("class", "serve", "--db", tmp_path / "c.sqlite", *words)
            assert (status, len(err.splitlines())) == (3, 1)
            assert sentence in err
    for name, sentence in (("text", "cannot be used as a class"), ("file/c.sqlite", "cannot be written")):
        status, _, err = sluice("class", "serve", "--db", tmp_path / name)
        assert (status, sentence in err, len(err.splitlines())) == (3, True, 1), err
    for words in (("--port", "x"), ("--title", ""), ("--lessons", "99")):
        assert sluice("class", "serve", *words)[0] == 2
    assert "`sluice class serve` starts one" in sluice("class", "show", "--db", tmp_path / "none")[2]


@pytest.mark.slow
def test_from_a_check_to_the_dashboard_with_the_processes_people_use(tmp_path):
    """Serve, join, check without the class, serve again, leave: nothing is told twice, nothing is left running."""
    db = tmp_path / "class.sqlite"
    environment = dict(os.environ, SLUICE_WORK=str(tmp_path / "learner" / "work"), PYTHONPATH=str(ROOT))

    def start(*words):
        command = [sys.executable, "-m", "course.cli", "class", "serve", "--db", str(db), *words]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = ""
        while "sluice join" not in line:
            line = process.stdout.readline()
        return process, line.split()[4]

    def learner(*words):
        command = [sys.executable, "-m", "course.cli", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=60, **pipes)

    def num_events():
        with ClassFile(db) as file:
            return len(file.events_after(0))

    server, address = start("--port", "0")
    try:
        assert learner("join", address, "--handle", "ada").returncode == 0
        assert learner("join").stdout.startswith("you are ada in the class")
        server.kill()
        server.communicate()
        assert learner("reset", "3.1").returncode == 0
        server, address = start("--port", address.rsplit(":")[-1])
        until(lambda: num_events() == 1)
        server.terminate()
        assert server.wait(120) == 128 + 15
    finally:
        learner("join", "--leave")
        if server.poll() is None:
            server.kill()
        server.communicate()
    import fcntl

    def is_over():
        with (tmp_path / "learner" / ".course" / ".courier.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    until(is_over)
    assert num_events() == 1
