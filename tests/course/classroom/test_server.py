"""The class over HTTP, as somebody meets it who means no good, or whose clock is wrong."""

from __future__ import annotations

import contextlib
import json
import math
import socket

import pytest

from course.classroom.class_file import ALPHABET, CODE_LETTERS, ClassFile, hash_of
from course.classroom.limits import network_of
from course.classroom.server import MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_OF_ADDRESS
from course.curriculum.manifest import EXERCISES
from course.learner.class_events import MAX_EVENTS
from tests.support.class_ends import T0, checked, secret, served

AT = [*EXERCISES].index("3.1")

LEARNERS_DOORS = [("POST", "/api/events", {"events": []}), ("GET", "/api/orders", None)]
INSTRUCTORS_DOORS = [
    ("GET", "/api/class", None), ("GET", "/api/export/csv", None), ("GET", "/api/export/json", None),
    ("POST", "/api/actions", {"kind": "reset", "exercise": "3.1"}),
]  # fmt: skip


def test_a_learner_joins_and_what_is_sent_is_shown(room):
    joined = room.join("ada", secret(1))
    assert (joined.status, joined.body["handle"], joined.body["title"]) == (200, "ada", "Tuesday")
    assert room.send(secret(1), checked(), {"event": "nonsense"}).body | {"orders": 0} == {
        "new": 1,
        "known": 0,
        "refused": 1,
        "now": T0,
        "orders": 0,
    }
    assert room.send(secret(1), checked()).body["known"] == 1
    (learner,) = room.model()["learners"]
    assert (learner["handle"], learner["here"], learner["cells"][AT]["rule"]) == ("ada", True, "E")


def test_a_change_is_shown_at_once_whoever_asked_before(room):
    room.join("ada", secret(1))
    assert room.model()["learners"][0]["cells"][AT]["attempts"] == 0
    room.send(secret(1), checked())
    room.ask("GET", "/api/orders", None, secret(1))  # has brought the roll up to date for somebody else
    assert room.model()["learners"][0]["cells"][AT]["attempts"] == 1


def test_codes_may_be_typed_carelessly_and_wrong_ones_are_counted(room):
    room.code = f" {room.code.lower().replace('-', ' ')} "
    assert room.join("ada", secret(1)).status == 200
    right, room.code = room.code, "AAA-AAA"
    answers = [room.join("bob", secret(2)) for _ in range(25)]
    assert {each.status for each in answers[:20]} == {403}
    assert answers[0].body["error"].startswith("that is not the code of this class")
    assert answers[-1].status == 429
    assert int(answers[-1].headers["Retry-After"]) >= 2
    room.code = right
    assert room.join("bob", secret(2)).status == 200, "others of a room behind one router mistype"
    assert room.send(secret(1), checked()).status == 200, "those who are in do not suffer"


def test_a_code_has_more_bits_than_anybody_can_try():
    assert math.log2(len(ALPHABET)) * CODE_LETTERS > 44


def test_an_address_brings_in_a_room_and_not_a_whole_class(room):
    answers = [room.join(f"pupil{number}", secret(number + 1)).status for number in range(260)]
    assert (answers[:250], answers[250:]) == ([200] * 250, [429] * 10)
    assert room.join("pupil1", secret(2)).status == 200, "who is in already is let in again"
    room.clock.now += 60
    assert room.join("late", secret(300)).status == 200


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("192.168.1.7", "192.168.1.8", False), ("2001:db8::1", "2001:db8::ffff:1", True), ("::1", "2001:db8::1", False),
     ("2001:db8:0:1::1", "2001:db8:0:2::1", False), ("::ffff:10.0.0.1", "10.0.0.1", True), ("?", "?", True)],
)  # fmt: skip
def test_all_addresses_of_one_network_of_ipv6_are_one_asker(one, other, is_same):
    assert (network_of(one) == network_of(other)) is is_same


def test_many_addresses_of_one_network_try_no_more_codes_than_one(room, monkeypatch):
    addresses = (f"2001:db8::{number:x}" for number in range(1, 99))
    monkeypatch.setattr("course.classroom.server._Handler.address", lambda self: next(addresses))
    room.code = "AAA-AAA-AAA"
    assert [room.join("bob", secret(2)).status for _ in range(25)][20:] == [429] * 5


def test_a_learner_sends_no_more_events_than_somebody_can_bring_about(room):
    room.join("ada", secret(1))
    sent = [room.send(secret(1), *(checked(n=10_000 * turn + n) for n in range(200))).status for turn in range(12)]
    assert (sent[:10], sent[10:]) == ([200] * 10, [429] * 2)
    room.clock.now += 100
    assert room.send(secret(1), *(checked(n=n) for n in range(200))).status == 200


@pytest.mark.parametrize("alike", ["аda", "ADА", "Ada", "ａｄａ", "αda"])
def test_a_handle_that_looks_the_same_is_the_same(room, alike):
    assert room.join("ada", secret(1)).status == 200
    answer = room.join(alike, secret(2))
    assert (answer.status, "is taken" in answer.body["error"]) == (409, True)


@pytest.mark.parametrize(("one", "other"), [("team1", "teaml"), ("bo0m", "boom"), ("1van", "lvan")])
def test_a_digit_that_looks_like_a_letter_makes_no_other_handle(room, one, other):
    assert room.join(one, secret(1)).status == 200
    assert room.join(other, secret(2)).status == 409
    assert room.join(other, secret(1)).status == 200  # the same learner, who misread it


def test_learners_whom_an_old_class_kept_apart_stay_apart_and_come_back(room):
    with ClassFile(room.path) as file, file.transaction():
        for number, handle in enumerate(["team1", "teaml", "b0b"], 1):
            file._sql.execute(
                "INSERT INTO learners (handle, folded, secret, joined, seen, here_since) VALUES (?, ?, ?, 1, 1, 1)",
                (handle, handle, hash_of(secret(number))),
            )
    ClassFile(room.path).close()  # whoever opens it next
    for number, handle in enumerate(["team1", "teaml", "b0b"], 1):
        answer = room.join(handle, secret(number))
        assert answer.status == 200, answer.body
    assert room.join("bob", secret(4)).status == 409
    with ClassFile(room.path) as file:
        assert [row.handle for row in file.learners()] == ["team1", "teaml", "b0b"]


def test_a_handle_that_was_brought_in_is_for_whom_the_instructor_gives_it(room):
    with ClassFile(room.path) as file, file.transaction():
        file.admit("ada", T0)
        file.admit("bob", T0)
    answer = room.join("ada", secret(1))
    assert answer.status == 409
    assert "was brought into this class by the instructor" in answer.body["error"]
    with ClassFile(room.path) as file, file.transaction():
        assert file.free("ada")
    assert room.join("ada", secret(1)).status == 200
    assert room.join("bob", secret(2)).status == 409


def test_one_address_cannot_shut_others_out(room):
    """Connections that say nothing, or half a head: so many of an address, and for seconds."""
    opened = [socket.create_connection(("127.0.0.1", room.port)) for _ in range(MAX_OF_ADDRESS + 50)]
    try:
        for each in opened:
            each.settimeout(5)
        closed = 0
        for each in opened[MAX_OF_ADDRESS:]:
            with contextlib.suppress(ConnectionError):
                closed += each.recv(1) == b""
        assert closed >= 49
        assert MAX_OF_ADDRESS <= MAX_CONNECTIONS // 3
    finally:
        for each in opened:
            each.close()


def test_a_taken_handle_is_said(room):
    room.join("ada", secret(1))
    answer = room.join("ADA", secret(2))
    assert answer.status == 409
    assert answer.body["error"].startswith("the handle ADA is taken in this class; choose another.")


@pytest.mark.parametrize("body", [{}, {"handle": "x", "secret": 5}, {"handle": ["x"]}, {"secret": "short"}])
def test_a_learner_who_does_not_say_who_it_is(room, body):
    assert room.ask("POST", "/api/join", {"code": room.code, **body}).status == 400


@pytest.mark.parametrize(("method", "path", "body"), LEARNERS_DOORS)
@pytest.mark.parametrize("word", ["", "x", secret(2), "é", "' OR 1=1 --"])
def test_nobody_is_let_in_with_another_secret(room, method, path, body, word):
    room.join("ada", secret(1))
    assert room.ask(method, path, body, word.encode("utf-8").decode("latin-1")).status == 401


@pytest.mark.parametrize(("method", "path", "body"), INSTRUCTORS_DOORS)
def test_the_instructors_doors_want_the_key(room, method, path, body):
    room.join("ada", secret(1))
    for word in ("", secret(1), room.code, room.key[:-1]):
        assert room.ask(method, path, body, word).status == 401
    assert room.ask(method, f"{path}?key={room.key}&token={room.key}", body).status == 401, "a key in an address"
    assert room.model()["exercises"][AT]["resets"] == 0
    assert room.ask(method, path, body, room.key).status == 200
    assert room.ask(method, path, body, room.key.replace("-", "").lower()).status == 200


def test_a_learner_is_told_of_orders_and_of_nobody_else(room):
    for n, handle in enumerate(("ada", "bob")):
        room.join(handle, secret(n))
        room.send(secret(n), checked())
    room.ask("POST", "/api/actions", {"kind": "unlock", "exercise": "3.1", "rung": 3}, room.key)
    room.ask("POST", "/api/actions", {"kind": "catchup", "lesson": 3}, room.key)
    answer = room.ask("GET", "/api/orders", None, secret(0))
    assert answer.body["orders"] == {"version": 2, "checkpoint": "", "hints": {"3.1": 3}, "resets": {}, "catchup": 3}
    assert "bob" not in json.dumps([answer.body, room.send(secret(0), checked(n=5)).body])


def test_the_same_event_of_two_learners_is_two_events(room):
    """Nobody can take an event's place for somebody else by sending it first."""
    for n in (1, 2):
        room.join(f"learner{n}", secret(n))
        assert room.send(secret(n), checked()).body["new"] == 1


# -- size, rate, form --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"events": NaN}', b'{"now": ' + b"9" * 9_000 + b"}"],
)
def test_what_is_no_request_is_refused_in_a_sentence(room, raw):
    room.join("ada", secret(1))
    answer = room.ask("POST", "/api/events", raw, secret(1))
    assert answer.status in {400, 413}
    assert answer.body["error"]
    assert room.send(secret(1), checked()).status == 200


def test_a_request_has_a_size(room):
    room.join("ada", secret(1))
    assert room.send(secret(1), *[checked(n=n) for n in range(MAX_EVENTS)]).body["new"] == MAX_EVENTS
    assert room.send(secret(1), *[checked(n=n) for n in range(MAX_EVENTS + 1)]).status == 413
    with socket.create_connection(("127.0.0.1", room.port), 10) as raw:
        head = f"POST /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret(1)}\r\n"
        raw.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode())
        assert b" 200 " not in raw.recv(4096)
    with socket.create_connection(("127.0.0.1", room.port), 10) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n")
        assert b" 200 " not in raw.recv(4096)
    assert room.send(secret(1), checked()).status == 200


def test_one_learner_cannot_ask_without_end_and_the_others_do_not_notice(room):
    for n in (1, 2):
        room.join(f"learner{n}", secret(n))
    statuses = [room.ask("GET", "/api/orders", None, secret(1)).status for _ in range(45)]
    assert statuses == [200] * 40 + [429] * 5
    assert room.send(secret(2), checked()).status == 200
    room.clock.now += 1
    assert room.send(secret(1), checked()).status == 200


def test_a_form_of_another_site_is_no_request(room):
    login = room.ask("POST", "/api/login", {"key": room.key})
    cookie = login.headers["Set-Cookie"].split(";")[0]
    body = {"kind": "reset", "exercise": "3.1"}
    own = f"http://127.0.0.1:{room.port}"
    assert room.ask("POST", "/api/actions", body, Cookie=cookie, Origin="http://evil.example").status == 403
    assert room.ask("POST", "/api/actions", body, Cookie=cookie, Content_Type="text/plain", Origin=own).status == 415
    assert room.ask("POST", "/api/actions", body, Cookie=cookie, Origin=own).status == 200
    room.ask("POST", "/api/logout", {}, Cookie=cookie)
    assert room.ask("GET", "/api/class", None, Cookie=cookie).status == 401


def test_the_key_opens_a_session_that_scripts_and_other_sites_cannot_use(room):
    assert room.ask("POST", "/api/login", {"key": "wrong"}).status == 401
    login = room.ask("POST", "/api/login", {"key": room.key})
    words = login.headers["Set-Cookie"].lower()
    assert "httponly" in words
    assert "samesite=strict" in words
    assert room.key.lower() not in words
    cookie = login.headers["Set-Cookie"].split(";")[0]
    assert room.ask("GET", "/api/class", None, Cookie=cookie).status == 200
    assert room.ask("GET", "/api/session", None, Cookie=cookie).body == {"open": True}
    assert room.ask("GET", "/api/session").body == {"open": False}


def cookie_of(room):
    return room.ask("POST", "/api/login", {"key": room.key}).headers["Set-Cookie"].split(";")[0]


def is_open(room, cookie):
    shown = room.ask("GET", "/api/class", None, Cookie=cookie).status
    assert room.ask("GET", "/api/session", None, Cookie=cookie).body == {"open": shown == 200}
    return shown == 200


def test_a_server_that_starts_again_knows_the_browsers_that_showed_the_key(tmp_path):
    path = tmp_path / "class.sqlite"
    with served(path) as room:
        stays, leaves = cookie_of(room), cookie_of(room)
        room.ask("POST", "/api/logout", {}, Cookie=leaves)
        assert (is_open(room, stays), is_open(room, leaves), is_open(room, stays[:-1])) == (True, False, False)
    for kept in path.parent.iterdir():
        assert stays.partition("=")[2].encode() not in kept.read_bytes(), "what opens is kept as a hash"
        assert kept.stat().st_mode & 0o077 == 0
    with served(path) as room:
        assert (is_open(room, stays), is_open(room, leaves)) == (True, False)
        (tmp_path / "class.sqlite.key").unlink()
    with served(path) as room:
        assert not is_open(room, stays), "there is another key, which it has not shown"
        newer = cookie_of(room)
        with ClassFile(path) as file:
            file.make_key()
        assert not is_open(room, newer), "at once, also while it is served"


def test_of_too_many_browsers_the_oldest_shows_the_key_again(room):
    cookies = [cookie_of(room) for _ in range(21)]
    assert [is_open(room, each) for each in cookies] == [False] + [True] * 20


def test_guessing_the_key_is_slowed(room):
    assert [room.ask("POST", "/api/login", {"key": "x"}).status for _ in range(22)][-1] == 429
    assert room.ask("POST", "/api/login", {"key": room.key}).status == 200, "wrong ones shut no right one out"
    assert room.ask("GET", "/api/class", None, room.key).status == 200


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/static/class_view.css", "/api/class", "/nothing", "/../x"])
def test_every_answer_says_what_may_be_done_with_it(room, path):
    headers = room.ask("GET", path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "tornado" not in json.dumps(headers).lower()


@pytest.mark.parametrize("path", ["/nothing", "/static/../class.sqlite", "/static/page.py", "/class.sqlite", "/api"])
def test_there_are_no_other_files(room, path):
    answer = room.ask("GET", path)
    assert (answer.status, answer.body) == (404, {"error": "there is nothing here"})


def test_the_page_holds_no_data_and_no_secret(room):
    room.join("ada", secret(1))
    shown = room.ask("GET", "/").body + room.ask("GET", "/static/page.js").body
    for word in ("ada", room.key, room.code, secret(1)):
        assert word.encode() not in shown


def test_the_dashboard_opens_on_the_classs_own_machine(room, tmp_path, monkeypatch):
    """Another address is what the server sees when a request comes from there."""
    monkeypatch.setattr("course.classroom.server._Handler.address", lambda self: "192.168.1.7")
    for answer in (room.ask("POST", "/api/login", {"key": room.key}), room.ask("GET", "/api/class", None, room.key)):
        assert answer.status == 403
        assert "--instructor-anywhere" in answer.body["error"]
    assert room.join("ada", secret(1)).status == 200
    with served(tmp_path / "other.sqlite", is_remote_allowed=True) as other:
        assert other.ask("GET", "/api/class", None, other.key).status == 200


# -- clocks, disks, other processes ------------------------------------------------------------------


@pytest.mark.parametrize("ahead_s", [-7200.0, 0.0, 86_400.0])
def test_a_learners_clock_may_be_wrong(room, ahead_s):
    room.join("ada", secret(1))
    room.send(secret(1), checked(time=T0 + ahead_s - 60, n=1), checked(time=T0 + ahead_s, n=2), now=T0 + ahead_s)
    room.model()
    assert [event.at for event in room.room.roll.pupils[1].events] == [T0 - 60, T0]


@pytest.mark.parametrize("now", ["noon", None, True, 10**400, -5, [1]])
def test_a_learner_without_a_clock_is_believed_as_far_as_it_goes(room, now):
    room.join("ada", secret(1))
    answer = room.ask("POST", "/api/events", {"now": now, "events": [checked()]}, secret(1))
    assert (answer.status, answer.body["new"]) == (200, 1)


def test_a_full_disk_is_said_and_nothing_is_acknowledged(room):
    room.join("ada", secret(1))
    writing = room.room.scribe._file

    def limit(pages):
        room.room.scribe.submit(lambda file: file._row(f"PRAGMA max_page_count={pages}")).result(120)

    limit(writing._row("PRAGMA page_count")[0])
    batch = [checked(n=n) for n in range(150)]
    answers = [room.send(secret(1), *batch) for _ in range(2)]
    assert {answer.status for answer in answers} == {503}
    assert "cannot keep anything now (database or disk is full)" in answers[0].body["error"]
    assert "Learners' machines keep what they have" in room.model()["trouble"]
    assert room.model()["learners"][0]["cells"][AT]["attempts"] == 0
    limit(1_000_000)
    assert room.send(secret(1), *batch).body["new"] == 150
    assert room.model()["trouble"] == ""


def test_one_bad_job_does_not_undo_its_neighbours(room):
    """Jobs that wait together are committed together."""
    room.join("ada", secret(1))

    def fails(file):
        file.add_events(1, [checked(n=1)], T0)
        raise KeyError("bug")

    def works(file):
        return file.add_events(1, [checked(n=2)], T0)

    bad, good = room.room.scribe.submit(fails), room.room.scribe.submit(works)
    assert isinstance(bad.exception(10), KeyError)
    assert good.result(120).num_new == 1
    with ClassFile(room.path) as file:
        assert [event.body["code_hash"][-1] for event in file.events_after(0)] == ["2"]


def test_what_another_process_writes_is_seen(room):
    room.join("ada", secret(1))
    with ClassFile(room.path) as file:
        with file.transaction():
            file.add_events(file.admit("bob", T0), [checked(status="passed")], T0)
            file.free("ada")
        assert [each["handle"] for each in room.model()["learners"]] == ["ada", "bob"]
        assert room.send(secret(1), checked()).status == 401, "the handle was freed"
        with file.transaction():
            file.remove("bob")
    assert [each["handle"] for each in room.model()["learners"]] == ["ada"]
