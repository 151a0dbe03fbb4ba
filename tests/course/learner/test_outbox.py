"""A learner's machine without the class, with it, and with it again."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from course.curriculum.manifest import EXERCISES
from course.learner import membership, progress
from course.learner.courier import Courier
from course.learner.courier_process import nudge
from course.learner.membership import Address, AddressError, Membership, Said
from course.learner.outbox import ClassGone, ClassRefused, Link, Outbox, plain_orders
from course.learner.progress import is_caught_up
from tests.support.class_ends import T0, checked, secret, served


def member_of(room, n=1, handle="ada"):
    room.join(handle, secret(n))
    return Membership("127.0.0.1", room.port, handle, secret(n), "Tuesday")


@pytest.fixture
def outbox(room, tmp_path):
    kept = []
    member = member_of(room)
    file = tmp_path / "progress.jsonl"
    made = Outbox(file, member, Said(member.secret), lambda said: kept.append(replace(said)), room.clock)
    made.kept, made.member = kept, member
    return made


def write(outbox, *events, end="\n"):
    with outbox._file.open("a") as file:
        file.write("\n".join(json.dumps(event) for event in events) + end)


def numbers(room):
    room.model()
    (pupil,) = room.room.roll.pupils.values()
    return [int(event.body["code_hash"][7:], 16) for event in pupil.events]


def test_what_is_new_is_sent_once_and_in_order(room, outbox):
    assert outbox.deliver() == 0
    write(outbox, *[checked(n=n) for n in range(400)])
    assert outbox.num_waiting() == 400
    assert outbox.deliver() == 400
    assert numbers(room) == list(range(400))
    write(outbox, checked(n=400))
    assert (outbox.num_waiting(), outbox.deliver(), outbox.deliver()) == (1, 1, 0)
    assert numbers(room) == list(range(401))


def test_after_a_crash_before_it_was_noted_nothing_is_doubled(room, outbox):
    write(outbox, *[checked(n=n) for n in range(200)])
    outbox.deliver()
    forgetful = Outbox(outbox._file, outbox.member, outbox.kept[0], lambda said: None, room.clock)
    assert forgetful.deliver() == 0
    assert numbers(room) == list(range(200))


def test_lines_that_are_no_events_are_passed_over_and_a_half_one_waits(room, outbox):
    write(outbox, checked(n=0), {"event": "quiz", "chosen": "a"}, [1])
    with outbox._file.open("ab") as file:
        file.write(b"\xff\x00 broken\n" + b"x" * 600_000 + b"\n")
    write(outbox, checked(n=1), checked(n=2), end="")
    assert outbox.deliver() == 2
    assert numbers(room) == [0, 1]
    write(outbox, checked(n=3), end="\n")  # the half line was whole after all, but another follows on it
    write(outbox, checked(n=4))
    outbox.deliver()
    assert numbers(room) == [0, 1, 4]


def test_another_file_in_its_place_is_sent_from_its_beginning(room, outbox):
    write(outbox, *[checked(n=n) for n in range(5)])
    outbox.deliver()
    outbox._file.unlink()
    write(outbox, *[checked(n=n) for n in (7, 1)])
    assert outbox.deliver() == 1
    outbox._file.unlink()
    write(outbox, *[checked(n=n) for n in range(20, 40)])
    assert (outbox.num_waiting(), outbox.deliver()) == (20, 20)


def test_a_class_that_is_gone_takes_nothing_away(tmp_path, outbox):
    write(outbox, checked())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = Outbox(outbox._file, replace(outbox.member, port=free.getsockname()[1]), Said(secret(1)), outbox._keep)
        with pytest.raises(ClassGone, match=r"no class answers at 127\.0\.0\.1:\d+ \(Connection refused\)"):
            gone.deliver()
        assert gone.num_waiting() == 1
    assert outbox.kept == []


def test_a_class_that_says_no_is_heard(room, outbox):
    write(outbox, checked())
    other = Outbox(outbox._file, replace(outbox.member, secret=secret(9)), Said(secret(9)), outbox._keep)
    with pytest.raises(ClassRefused, match="this class does not know you"):
        other.deliver()
    link = Link("127.0.0.1", room.port)
    for _ in range(room.room.requests._limit.burst):
        link.ask("GET", "/api/orders", None, secret(1))
    with pytest.raises(ClassRefused) as slow:
        link.ask("GET", "/api/orders", None, secret(1))
    assert (slow.value.status, slow.value.wait_s >= 1) == (429, True)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 10_000, b"HTTP/1.1 200 OK\r\n\r\n{}" + b" " * 100_000,
        b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", b'HTTP/1.1 200 OK\r\n\r\n{"error": "x"}',
        b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"now": "midday"}',
    ],
)  # fmt: skip
def test_something_else_that_answers_is_no_class(outbox, raw):
    write(outbox, checked())
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(raw)

        thread = threading.Thread(target=answer)
        thread.start()
        port = server.getsockname()[1]
        other = Outbox(outbox._file, replace(outbox.member, port=port), Said(secret(1)), outbox._keep)
        with pytest.raises(ClassGone):
            other.deliver()
        thread.join()
    assert outbox.kept == []


def test_orders_are_what_this_version_knows():
    given = {"checkpoint": "9.9", "catchup": True, "hints": {"3.1": 9, "0.1": 2, "x": 1}, "resets": [1], "run": "rm"}
    assert plain_orders({"orders": given}) == {"checkpoint": "", "catchup": 0, "hints": {"0.1": 2}, "resets": {}}
    assert plain_orders({"orders": 7}) == plain_orders({})


# -- the address -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("K7M-2QX@10.0.0.5:9000", ("K7M-2QX", "10.0.0.5", 9000)),
        ("k7m2qx@laptop.local", ("k7m2qx", "laptop.local", 8765)),
        (" K7M-2QX@http://10.0.0.5:9000/ ", ("K7M-2QX", "10.0.0.5", 9000)),
        ("K7M-2QX@[::1]:9000", ("K7M-2QX", "::1", 9000)),
    ],
)
def test_an_address_is_read_as_people_copy_it(text, wanted):
    assert Address.read(text) == Address(*wanted)


@pytest.mark.parametrize(
    "text", ["", "K7M", "@host:1", "K7M@", "K7M@host:0", "K7M@host:70000", "K7M@host:x", "K7M@a b", "K@h/x"]
)
def test_what_is_no_address_says_how_one_looks(text):
    with pytest.raises(AddressError, match=r"is not CODE@HOST:PORT|ports are numbers"):
        Address.read(text)


# -- the courier -------------------------------------------------------------------------------------


def rounds(courier, *times):
    return [courier.round(time) for time in times]


@pytest.fixture
def in_class(room, own_state, monkeypatch):
    """This learner is in the class; no courier of its own is started."""
    monkeypatch.setattr("course.learner.progress.nudge", lambda: None)
    membership.begin(member_of(room), plain_orders({}))
    return own_state


@pytest.mark.usefixtures("in_class")
def test_a_courier_brings_what_is_there_and_hears_what_was_decided(room):
    courier = Courier(T0)
    progress.record("check", exercise="3.1", status="passed", code_hash="sha256:" + "0" * 64)
    assert rounds(courier, T0, T0 + 1) == [0.5, 0.5]
    assert numbers(room) == [0]
    room.ask("POST", "/api/actions", {"kind": "unlock", "exercise": "3.1", "rung": 2}, room.key)
    rounds(courier, T0 + 10)
    assert membership.unlocked_rung("3.1") == 2
    assert membership.unlocked_rung("0.1") == 0


@pytest.mark.usefixtures("in_class")
def test_each_decision_is_obeyed_and_told_once(room):
    courier = Courier(T0)
    orders = [{"kind": "reset", "exercise": "3.1"}, {"kind": "catchup", "lesson": 3}]
    orders += [{"kind": "checkpoint", "exercise": "0.1"}]
    for order in orders:
        room.ask("POST", "/api/actions", order, room.key)
    rounds(courier, *(T0 + 10 * n for n in range(5)))
    assert [(e["event"], e["exercise"], e["by"]) for e in progress.events()] == [
        ("reset", "3.1", "class"),
        *(("catchup", each.id, "class") for each in EXERCISES.values() if each.lesson < 3),
    ]
    assert is_caught_up("0.1")
    assert len(membership.news()) == 3
    assert membership.news() == []
    done = progress.events()
    rounds(Courier(T0 + 100), T0 + 100, T0 + 110)  # another process, which knows what was done
    assert progress.events() == done
    room.ask("POST", "/api/actions", {"kind": "reset", "exercise": "3.1"}, room.key)
    rounds(courier, T0 + 200, T0 + 210)
    (line,) = membership.news()
    assert "all start 3.1 afresh" in line


@pytest.mark.usefixtures("own_state")
def test_what_was_decided_before_one_came_is_no_news(room, monkeypatch):
    monkeypatch.setattr("course.learner.progress.nudge", lambda: None)
    room.ask("POST", "/api/actions", {"kind": "reset", "exercise": "3.1"}, room.key)
    membership.begin(member_of(room), plain_orders(room.ask("GET", "/api/orders", None, secret(1)).body))
    rounds(Courier(T0), T0, T0 + 10)
    assert membership.news() == []
    assert progress.events() == []


def test_a_courier_tries_again_less_and_less_often_and_the_class_gets_all(in_class, tmp_path):
    with served(tmp_path / "other.sqlite") as gone:
        member = member_of(gone)
    membership.keep(member)
    courier = Courier(T0)
    tries = []

    def look(time):
        before = courier._failed
        assert courier.round(time) is not None
        if courier._failed != before:
            tries.append(time - T0)

    for n in range(10):
        progress.record("check", exercise="3.1", status="failed", rule="E", code_hash="sha256:" + f"{n:064x}")
        look(T0 + n / 2)
    for n in range(10, 400):
        look(T0 + n / 2)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert 8 <= len(tries) <= 40
    assert max(gaps) <= 20.5
    assert min(gaps[4:]) >= 8
    assert "no class answers" in membership.read_said(member).error
    with served(tmp_path / "other.sqlite") as back:
        membership.keep(replace(member, port=back.port))
        look(T0 + 250)
        look(T0 + 251)
        assert numbers(back) == list(range(10))
    assert (in_class / "progress.jsonl").read_text().count("\n") == 10


@pytest.mark.usefixtures("in_class")
def test_a_courier_ends_with_the_class_or_when_nothing_happens_for_hours():
    courier = Courier(T0)
    assert courier.round(T0) == 0.5
    assert courier.round(T0 + 3600) == 0.5
    assert courier.round(T0 + 4 * 3600) is None
    courier = Courier(T0)
    membership.forget()
    assert courier.round(T0) is None


def test_without_a_class_an_event_starts_nothing(own_state, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("a process was started"))
    progress.record("check", exercise="3.1", status="failed")
    assert not (own_state / ".courier.lock").exists()


def test_an_event_starts_one_courier_and_no_second(in_class, monkeypatch):
    import fcntl

    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **kwargs: started.append(command))
    monkeypatch.setattr("course.learner.courier_process._started", [])
    nudge()
    assert started == [[sys.executable, "-m", "course.learner.courier"]]
    monkeypatch.setattr("course.learner.courier_process._started", [])
    with (in_class / ".courier.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        nudge()
    assert len(started) == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"host": 1}', '{"host": "h", "port": 1, "handle": "a", "secret": "x"}']
)
def test_a_damaged_membership_is_none(own_state, text):
    own_state.mkdir(parents=True)
    (own_state / "membership.json").write_text(text)
    assert membership.current() is None
    assert membership.unlocked_rung("3.1") == 0
    assert membership.news() == []


@pytest.mark.usefixtures("own_state")
def test_a_learners_secret_is_its_own_in_each_class_and_nobody_elses_to_read():
    first = membership.secret_for("K7M-2QX")
    assert first == membership.secret_for("k7m2qx")
    assert first != membership.secret_for("K7M-2QY")
    file = membership.state_folder() / "learner-secret.json"
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    file.write_text("damaged")
    assert membership.secret_for("K7M-2QX") != first
    assert [each.name for each in file.parent.iterdir()] == ["learner-secret.json"]
