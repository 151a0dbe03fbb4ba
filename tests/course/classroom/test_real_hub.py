"""The recipe for a JupyterHub, with the real one: learners log in as a browser does, and are in the class.

The hub, its proxy, the class and each learner's server are processes on loopback. Without JupyterHub the tests are
skipped, unless SLUICE_REQUIRE_HUB=1: then they fail.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import pytest

from course.classroom.class_file import ClassFile
from course.classroom.model import class_model
from course.classroom.roll import Roll
from course.classroom.standing import NOT_STARTED
from course.curriculum.stubs import solution
from tests.support.polling import until

pytestmark = pytest.mark.slow

NAMES = ["ada", "bela", "cleo"]
TOKEN = "0" * 32  # of the test, which asks the hub what an administrator may
GET_IT = "there is no JupyterHub; `make hub` brings it"
PATIENCE_S = 300.0

PAGE = Path(__file__).parents[3] / "course" / "classroom" / "organising.md"
PASSWORD = "eight letters at least"  # as the page has it

OF_THE_TEST = """
c.Spawner.args = {arguments!r}
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.JupyterHub.services.append({{"name": "test", "api_token": {token!r}}})
c.JupyterHub.load_roles = [{{"name": "test", "scopes": ["admin:servers"], "services": ["test"]}}]
"""


def config_of_the_page(folder: Path, address: str, class_port: int) -> str:
    """The configuration that the page has for a container, for this folder, address and port."""
    blocks = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "c.JupyterHub.bind_url" in block]
    for theirs, ours in (
        ("/home/learner", str(folder)),
        ("http://0.0.0.0:8000", address),
        ("configure(c, ", f"configure(c, port={class_port}, "),
    ):
        assert theirs in text
        text = text.replace(theirs, ours)
    return text


def free_ports(num: int) -> list[int]:
    """That many ports of loopback which nobody has."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(num)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@dataclass(frozen=True)
class RealHub:
    """A hub at work, its folder, and the class that it serves."""

    address: str
    folder: Path

    def opened(self, path: str) -> HTTPResponse:
        """What its API answers the test."""
        request = urllib.request.Request(f"{self.address}/hub/api/{path}", headers={"Authorization": f"token {TOKEN}"})
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def log_in(self, name: str, password: str = PASSWORD) -> str:
        """Fill in the form as a browser does, follow where it leads, and return the page that is reached."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        form = opener.open(f"{self.address}/hub/login", timeout=PATIENCE_S).read().decode()
        (xsrf,) = set(re.findall(r'name="_xsrf"\s+value="([^"]+)"', form))
        fields = {"username": name, "password": password, "_xsrf": xsrf}
        with opener.open(f"{self.address}/hub/login", urlencode(fields).encode(), timeout=PATIENCE_S):
            pass
        progress = self.opened(f"users/{name}/server/progress").read().decode()  # it ends when the server has started
        assert '"ready": true' in progress, self.log()
        with opener.open(f"{self.address}/user/{name}/lab", timeout=PATIENCE_S) as page:
            return page.read().decode()

    def log(self) -> str:
        return (self.folder / "hub.log").read_text()

    def learners(self) -> dict[str, dict[str, str]]:
        """The status of each exercise, as the dashboard shows it, by the handles of those who are in the class."""
        with ClassFile(self.folder / "class" / "class.sqlite") as file:
            model = class_model(Roll(file), time.time())
        columns = [each["id"] for each in model["exercises"]]
        return {
            each["handle"]: dict(zip(columns, (cell["status"] for cell in each["cells"]), strict=True))
            for each in model["learners"]
        }


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    if importlib.util.find_spec("jupyterhub") is None or importlib.util.find_spec("configurable_http_proxy") is None:
        if os.environ.get("SLUICE_REQUIRE_HUB") == "1":
            pytest.fail(f"SLUICE_REQUIRE_HUB=1, but {GET_IT}", pytrace=False)
        pytest.skip(f"NOT TESTED WITH A JUPYTERHUB: {GET_IT}")
    folder = tmp_path_factory.mktemp("hub")
    port, hub_port, proxy_port, class_port = free_ports(4)
    address = f"http://127.0.0.1:{port}"
    config = config_of_the_page(folder, address, class_port) + OF_THE_TEST.format(
        hub_port=hub_port,
        proxy_port=proxy_port,
        token=TOKEN,
        arguments=["--allow-root"] if os.geteuid() == 0 else [],
    )
    (folder / "jupyterhub_config.py").write_text(config)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "JUPYTERHUB_"))}
    with (folder / "hub.log").open("w") as log:
        command = [sys.executable, "-m", "jupyterhub"]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    here = RealHub(address, folder)
    try:
        database = folder / "class" / "class.sqlite"
        until(lambda: ("is now running" in here.log() and database.exists()) or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, here.log()
        yield here
    finally:
        process.send_signal(signal.SIGTERM)  # it ends the servers of all, its proxy and the class
        process.wait(PATIENCE_S)


def test_three_learners_who_log_in_are_in_the_class_under_their_names(hub):
    assert hub.learners() == {}
    for name in NAMES:
        assert "JupyterLab" in hub.log_in(name)
    assert list(hub.learners()) == NAMES
    for name in NAMES:
        assert f"sluice: in the class 'Streams, Tuesday' as {name}\n" in hub.log()
        assert (hub.folder / "homes" / name / "work" / "00_start_here.ipynb").is_file()


def test_what_one_of_them_checks_is_seen_on_the_dashboard(hub):
    hub.log_in("ada")
    home = hub.folder / "homes" / "ada"
    (home / "mine.py").write_text(solution("3.1"))
    env = {**os.environ, "SLUICE_WORK": str(home / "work")}
    command = [sys.executable, "-m", "course.cli", "check", "3.1", "--file", "mine.py"]
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: hub.learners()["ada"]["3.1"] == "passed")
    assert [name for name, each in hub.learners().items() if each["3.1"] != NOT_STARTED] == ["ada"]


def test_whom_the_hub_refuses_is_not_in_the_class(hub):
    with pytest.raises(urllib.error.HTTPError, match="403"):
        hub.log_in("eve", "not the password")
    assert "eve" not in hub.learners()
