"""A class of a JupyterHub: the hub says who somebody is, and only its users are in.

The hub of these tests answers `/hub/api/user` as JupyterHub 6.1 does. `test_real_hub.py` has a real one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from course.classroom.class_file import ClassError
from course.classroom.hub import HubUsers, configure
from course.cli import main
from course.learner import hub_server, membership
from course.learner.hub_server import join_of_the_hub
from tests.support.class_ends import secret, served

USERS = {"token-of-ada": "ada", "token-of-bela": "bela", "token-of-another-ada": "аda", "token-of-smith": "o'smith"}


class Hub(BaseHTTPRequestHandler):
    """Knows whose a token is; `status` and `raw` are for hubs that are out of order."""

    status, raw = 200, b""

    def do_GET(self):
        token = self.headers.get("Authorization", "").removeprefix("token ")
        known = {"token-of-a-service": {"kind": "service", "name": "grader"}}
        known |= {each: {"kind": "user", "name": name, "admin": False} for each, name in USERS.items()}
        found = known.get(token) if self.path == "/hub/api/user" else None
        body = self.raw or json.dumps(found or {"status": 403, "message": "Forbidden"}).encode()
        self.send_response(self.status if found else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        pass


@pytest.fixture
def hub():
    """The address of a hub's API, and its class of answers."""
    answers = type("AnHub", (Hub,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(api=f"http://127.0.0.1:{server.server_port}/hub/api", answers=answers)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def room(tmp_path, hub):
    with served(tmp_path / "class.sqlite", hub=HubUsers(hub.api)) as room:
        yield room


def join(room, token, n=1, **more):
    return room.ask("POST", "/api/join", {"hub": token, "secret": secret(n), **more})


@pytest.fixture
def as_user(room, tmp_path, monkeypatch):
    """Be the server of a hub's user, with a folder of that user."""
    monkeypatch.setattr("course.learner.courier_process.nudge", lambda: None)

    def be(name, token, folder):
        monkeypatch.setenv("SLUICE_WORK", str(tmp_path / folder / "work"))
        monkeypatch.setenv("SLUICE_CLASS", f"127.0.0.1:{room.port}")
        monkeypatch.setenv("JUPYTERHUB_USER", name)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", token)
        return join_of_the_hub()

    return be


def test_three_servers_are_in_the_class_by_the_hubs_names(room, as_user):
    assert as_user("ada", "token-of-ada", "ada") == "in the class 'Sluice' as ada"
    assert membership.current().handle == "ada"
    assert as_user("bela", "token-of-bela", "bela") == "in the class 'Sluice' as bela"
    assert as_user("ada", "token-of-ada", "ada") == "in the class 'Sluice' as ada"  # the same server, started again
    assert [each["handle"] for each in room.model()["learners"]] == ["ada", "bela"]
    assert room.send(membership.current().secret).status == 200


def test_a_user_with_a_new_folder_is_the_same_learner(room, as_user):
    as_user("ada", "token-of-ada", "first")
    before = membership.current()
    assert as_user("ada", "token-of-ada", "second") == "in the class 'Sluice' as ada"
    assert membership.current().secret != before.secret
    assert len(room.model()["learners"]) == 1
    assert room.send(before.secret).status == 401  # the one of before opens nothing any more


@pytest.mark.parametrize("token", ["wrong", "", "x" * 600, "with\nline", "ä", "token-of-a-service", None, 7])
def test_whom_the_hub_does_not_know_is_not_let_in(room, token):
    answer = join(room, token)
    assert answer.status == 403
    assert room.model()["learners"] == []


def test_the_code_of_the_class_lets_nobody_in(room):
    answer = room.join("eve", secret(1))
    assert (answer.status, "is a hub's" in answer.body["error"]) == (403, True)


def test_what_a_server_says_of_its_name_does_not_count(room):
    assert join(room, "token-of-bela", handle="ada").body["handle"] == "bela"


def test_a_name_that_looks_like_another_takes_nothing_from_it(room):
    assert join(room, "token-of-ada", 1).status == 200
    answer = join(room, "token-of-another-ada", 2)
    assert (answer.status, "taken" in answer.body["error"]) == (409, True)
    assert room.ask("GET", "/api/orders", secret=secret(1)).status == 200


@pytest.fixture
def early(monkeypatch, tmp_path):
    """The port of a class that has not begun, ada's server there, and what happens each time that it waits."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr("course.learner.courier_process.nudge", lambda: None)
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "ada" / "work"))
    monkeypatch.setenv("SLUICE_CLASS", f"127.0.0.1:{port}")
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "token-of-ada")
    clock = SimpleNamespace(now=0.0, waits=[], meanwhile=lambda: None)

    def wait(seconds):
        clock.now += seconds
        clock.waits.append(seconds)
        clock.meanwhile()

    monkeypatch.setattr(hub_server, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=wait))
    return port, clock


def test_a_server_that_starts_before_the_class_waits_for_it(early, hub, tmp_path):
    port, clock = early
    with contextlib.ExitStack() as stack:
        serving = served(tmp_path / "class.sqlite", hub=HubUsers(hub.api), port=port)
        clock.meanwhile = lambda: stack.enter_context(serving)
        assert join_of_the_hub() == "in the class 'Sluice' as ada"
    assert len(clock.waits) == 1


def test_a_server_whose_class_does_not_come_starts_without(early):
    _, clock = early
    assert join_of_the_hub().startswith("not in the class: no class answers")
    assert 5 < clock.now < 15  # a hub gives a server a minute
    assert membership.current() is None


def test_a_name_that_can_be_no_handle_is_said_and_the_server_starts_all_the_same(as_user):
    assert as_user("o'smith", "token-of-smith", "smith").startswith("not in the class: a handle is letters")
    assert membership.current() is None


@pytest.mark.parametrize(("status", "raw"), [(500, b"{}"), (200, b"no json"), (200, b"[]"), (200, b'{"name": 7}')])
def test_a_hub_out_of_order_lets_nobody_in(room, hub, status, raw):
    hub.answers.status, hub.answers.raw = status, raw
    assert join(room, "token-of-ada").status == 403
    assert room.model()["learners"] == []


def test_outside_a_hub_there_is_no_class_to_join(monkeypatch, own_state):
    for name in ("SLUICE_CLASS", "JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert join_of_the_hub().startswith("no class")
    assert not own_state.exists()


@pytest.mark.parametrize("api", ["", "hub:8081", "file:///etc/passwd"])
def test_the_hub_has_to_say_where_it_is(monkeypatch, tmp_path, capsys, api):
    with pytest.raises(ClassError, match="JUPYTERHUB_API_URL"):
        HubUsers(api)
    monkeypatch.setenv("JUPYTERHUB_API_URL", api)
    assert main(["class", "serve", "--hub", "--port", "0", "--db", str(tmp_path / "c.sqlite")]) == 3
    assert "JUPYTERHUB_API_URL" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--tls",), ("--host", "0.0.0.0")])
def test_tokens_do_not_leave_the_hubs_machine(tmp_path, words):
    assert main(["class", "serve", "--hub", *words, "--db", str(tmp_path / "c.sqlite")]) == 2


class Section(dict):
    """What a configuration of Jupyter is here: a dictionary whose keys are attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def test_what_a_hub_was_told_before_stays(tmp_path):
    config = Section(JupyterHub=Section(services=[{"name": "cull"}]), Spawner=Section(environment={"LANG": "C"}))
    config.ConfigurableHTTPProxy = Section()
    configure(config, folder=tmp_path, port=9000, title="Tuesday", python="/opt/python")
    assert [each["name"] for each in config.JupyterHub.services] == ["cull", "sluice-class"]
    command = config.JupyterHub.services[1]["command"]
    assert command[:3] == ["/opt/python", "-m", "course.cli"]
    assert command[-1] == str(tmp_path / "class.sqlite")
    assert "url" not in config.JupyterHub.services[1]
    assert config.Spawner.environment == {"LANG": "C", hub_server.CLASS_VARIABLE: "127.0.0.1:9000"}
    assert config.Spawner.http_timeout == config.Spawner.start_timeout == 300  # a whole room logs in at once
    assert config.Spawner.cmd == ["/opt/python", "-m", "course.learner.hub_server"]
