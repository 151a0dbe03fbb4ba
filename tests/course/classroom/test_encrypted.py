"""A class over TLS: known by the code of its certificate, before anything is sent."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from course.classroom.certificate import class_certificate
from course.classroom.class_file import ClassError
from course.cli import main
from course.learner import membership, progress
from course.learner.class_events import ALPHABET
from course.learner.membership import Membership
from course.learner.outbox import ClassGone, Link, Outbox
from course.learner.pinned import PinnedConnection, certificate_code, read_code, shown_by
from tests.support.class_ends import secret, served

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def encrypted(tmp_path):
    """A class over TLS, and the code of its certificate."""
    context, code = class_certificate(tmp_path / "class.sqlite")
    with served(tmp_path / "class.sqlite", tls=context) as room:
        yield room, code


@pytest.fixture
def sluice(capsys, monkeypatch, own_state):
    """Run a command as a learner: status, what it printed, what it complained of."""
    monkeypatch.setattr("course.learner.join_command.nudge", lambda: None)
    monkeypatch.setattr("course.learner.progress.nudge", lambda: None)

    def run(*words):
        capsys.readouterr()
        try:
            status = main(list(map(str, words)))
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return run


def other_code(code: str) -> str:
    """The same, but for its last letter."""
    return code[:-1] + next(letter for letter in ALPHABET if letter != code[-1])


def test_a_learner_compares_joins_and_is_heard(encrypted, sluice):
    room, code = encrypted
    address = f"{room.code}@127.0.0.1:{room.port}"
    status, out, _ = sluice("join", address, "--tls")
    assert (status, code in out, room.model_over(code)["learners"]) == (1, True, [])
    assert sluice("join", address, "--handle", "ada", "--tls", code.lower().replace("-", " "))[0] == 0
    member = membership.current()
    assert (member.certificate, member.handle) == (code, "ada")
    progress.record("check", exercise="3.1", status="failed", rule="E", code_hash="sha256:" + "1" * 64)
    outbox = Outbox(progress.state_folder() / "progress.jsonl", member, membership.read_said(member), lambda said: None)
    assert outbox.deliver() == 1
    (learner,) = room.model_over(code)["learners"]
    assert learner["handle"] == "ada"


def test_another_certificate_is_sent_nothing(tmp_path, sluice):
    """Who stands between the two has a certificate of their own; what they would be sent is written down here."""
    context, shown = class_certificate(tmp_path / "between.sqlite")
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def between() -> None:
            stranger, _ = server.accept()
            with context.wrap_socket(stranger, server_side=True) as stream:
                heard.append(stream.recv(1))

        thread = threading.Thread(target=between)
        thread.start()
        where = f"K7M-2QX-9PT@127.0.0.1:{server.getsockname()[1]}"
        status, _, err = sluice("join", where, "--handle", "ada", "--tls", other_code(shown))
        thread.join(120)
    assert (status, heard) == (1, [b""])
    assert f"shows the certificate {shown}, which is not the one you named" in err
    assert "has the class begun" not in err.lower()  # it has, or somebody says so
    assert membership.current() is None


def test_who_is_in_the_class_tells_no_other_what_was_done(encrypted, own_state):
    room, code = encrypted
    member = Membership("127.0.0.1", room.port, "ada", secret(1), "T", other_code(code))
    progress.record("check", exercise="3.1", status="failed", rule="E", code_hash="sha256:" + "1" * 64)
    outbox = Outbox(own_state / "progress.jsonl", member, membership.read_said(member), lambda said: None)
    with pytest.raises(ClassGone, match="which is not the one you named"):
        outbox.deliver()
    assert outbox.num_waiting() == 1


def test_without_tls_nothing_is_answered_and_with_it_nothing_plain(encrypted, sluice, tmp_path):
    room, code = encrypted
    with pytest.raises(ClassGone, match="no class answers"):
        Link("127.0.0.1", room.port).ask("GET", "/api/hello")
    assert Link("127.0.0.1", room.port, code).ask("GET", "/api/hello")["now"] == room.clock()
    with served(tmp_path / "plain.sqlite") as plain:
        with pytest.raises(ClassGone, match="no class answers"):
            Link("127.0.0.1", plain.port, code).ask("GET", "/api/hello")
        status, _, err = sluice("join", f"{plain.code}@127.0.0.1:{plain.port}", "--tls")
        assert (status, "nothing encrypted answers" in err) == (1, True)


def test_who_forgets_tls_or_types_it_where_there_is_none_is_told_so(encrypted, sluice, tmp_path):
    room, code = encrypted
    status, _, err = sluice("join", f"{room.code}@127.0.0.1:{room.port}", "--handle", "ada")
    assert (status, "is encrypted: type --tls and its code too" in err) == (1, True)
    with served(tmp_path / "plain.sqlite") as plain:
        words = (f"{plain.code}@127.0.0.1:{plain.port}", "--handle", "ada", "--tls", code)
        status, _, err = sluice("join", *words)
    assert (status, "is not encrypted, so nothing has been sent" in err) == (1, True)
    assert membership.current() is None


def test_a_learner_goes_by_the_code_whatever_the_dates_are(tmp_path, sluice, monkeypatch):
    monkeypatch.setattr("course.spark.cluster_keys.CLOCK_DIFFERENCE", timedelta(days=10))
    monkeypatch.setattr("course.classroom.certificate._DAYS", -1)  # it has ended yesterday
    context, code = class_certificate(tmp_path / "class.sqlite")
    with served(tmp_path / "class.sqlite", tls=context) as room:
        where = f"{room.code}@127.0.0.1:{room.port}"
        assert sluice("join", where, "--handle", "ada", "--tls", code)[0] == 0
        assert [each["handle"] for each in room.model_over(code)["learners"]] == ["ada"]


def test_old_versions_of_tls_are_refused(encrypted):
    room, _ = encrypted
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", room.port)) as plain, pytest.raises(OSError, match=r"(?i)ssl|reset"):
        context.wrap_socket(plain).recv(1)


def test_the_cookie_of_the_dashboard_goes_over_tls_alone(encrypted):
    room, code = encrypted
    connection = PinnedConnection("127.0.0.1", room.port, code, 120)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/api/login", json.dumps({"key": room.key}), headers)
    cookie = connection.getresponse().headers["Set-Cookie"]
    connection.close()
    assert re.search(r"(?i); *secure\b", cookie)
    assert re.search(r"(?i); *httponly\b", cookie)


def test_the_certificate_stays_and_only_its_owner_reads_it(tmp_path, capsys):
    first = class_certificate(tmp_path / "c.sqlite")[1]
    place = tmp_path / "c.sqlite.pem"
    assert place.stat().st_mode & 0o777 == 0o600
    assert class_certificate(tmp_path / "c.sqlite")[1] == first
    assert class_certificate(tmp_path / "d.sqlite")[1] != first
    assert capsys.readouterr().err == ""
    place.write_bytes(place.read_bytes()[:200])
    assert class_certificate(tmp_path / "c.sqlite")[1] != first
    assert "there is a new one, with another code" in capsys.readouterr().err


def test_a_certificate_that_cannot_be_kept_is_said(tmp_path):
    with pytest.raises(ClassError, match=r"class\.sqlite\.pem cannot be written"):
        class_certificate(tmp_path / "none" / "class.sqlite")


def test_codes_are_read_however_they_are_typed():
    code = certificate_code(b"a certificate")
    assert re.fullmatch(r"[2-9A-Z]{4}(-[2-9A-Z]{4}){3}", code)
    assert certificate_code(b"another") != code
    assert read_code(f"  {code.lower().replace('-', '')} ") == code
    assert [read_code(each) for each in ("", "K7M", code + "A", code.replace(code[0], "0", 1), "é" * 16)] == [None] * 5


@pytest.mark.parametrize("words", [("--handle", "ada", "--tls", "K7M"), ("--tls", "0" * 16, "--handle", "ada")])
def test_what_is_no_code_is_wrong_use(sluice, words):
    status, _, err = sluice("join", "K7M-2QX-9PT@127.0.0.1:9", *words)
    assert (status, "is no code of a certificate" in err) == (2, True)


def test_where_nobody_listens_there_is_no_certificate():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        shown_by("127.0.0.1", port, 120)


@pytest.mark.slow
def test_serve_shows_what_to_type_and_that_lets_in(tmp_path):
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "SLUICE_WORK": str(tmp_path / "ours" / "work")}
    command = [sys.executable, "-m", "course.cli", "class", "serve", "--tls", "--port", "0"]
    command += ["--db", str(tmp_path / "class.sqlite")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=ROOT)
    try:
        lines = []
        for line in server.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        said = "".join(lines)
        words = re.search(r"sluice (join \S+ --handle) NAME (--tls \S+)", said)
        assert words, said
        assert re.search(r"dashboard +https://127\.0\.0\.1:\d+/", said)
        typed = [sys.executable, "-m", "course.cli", *words[1].split(), "ada", *words[2].split()]
        theirs = {**env, "SLUICE_WORK": str(tmp_path / "theirs" / "work")}
        joined = subprocess.run(typed, env=theirs, cwd=ROOT, capture_output=True, text=True, check=False)
        assert joined.returncode == 0, joined.stderr
        left = [sys.executable, "-m", "course.cli", "join", "--leave"]
        assert subprocess.run(left, env=theirs, cwd=ROOT, capture_output=True, check=False).returncode == 0
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(120) == 0
    shown = subprocess.run(
        [*command[:3], "class", "show", "--db", str(tmp_path / "class.sqlite")],
        env=env, cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ada" in shown.stdout
