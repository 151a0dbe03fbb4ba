"""`sluice lab`: the learner's copies, the port, and a real server that starts and ends cleanly."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest

from course.cli import main
from course.learner.lab import _environment as lab_environment
from course.learner.lab import free_port
from course.learner.lessons import LessonsError, hand_out, hand_out_all
from course.places import state_folder, work_folder
from tests.support.polling import until


@pytest.fixture
def folders(tmp_path):
    """A folder of two published lessons and the learner's folder, which does not exist yet."""
    lessons, work = tmp_path / "lessons", tmp_path / "work"
    lessons.mkdir()
    for name in ("00_a.ipynb", "03_b.ipynb"):
        (lessons / name).write_text(f"{name} version 1")
    return lessons, work


def contents(work):
    return {path.name: path.read_text() for path in work.glob("*.ipynb")}


def test_lessons_are_copied_once(folders):
    assert hand_out(*folders) == ["00_a.ipynb: copied", "03_b.ipynb: copied"]
    assert contents(folders[1]) == {"00_a.ipynb": "00_a.ipynb version 1", "03_b.ipynb": "03_b.ipynb version 1"}
    assert hand_out(*folders) == []


def test_what_the_learner_wrote_stays(folders):
    lessons, work = folders
    hand_out(lessons, work)
    (work / "00_a.ipynb").write_text("mine")
    (work / "05_own.ipynb").write_text("my own")
    assert hand_out(lessons, work) == []
    assert contents(work)["00_a.ipynb"] == "mine"


def test_an_unchanged_copy_follows_the_new_version(folders):
    lessons, work = folders
    hand_out(lessons, work)
    (lessons / "00_a.ipynb").write_text("version 2")
    assert hand_out(lessons, work) == ["00_a.ipynb: new version"]
    assert contents(work)["00_a.ipynb"] == "version 2"


def test_a_new_version_goes_beside_a_changed_copy_once(folders):
    lessons, work = folders
    hand_out(lessons, work)
    (work / "00_a.ipynb").write_text("mine")
    (lessons / "00_a.ipynb").write_text("version 2")
    (said,) = hand_out(lessons, work)
    assert said.endswith("beside it: 00_a.new.ipynb")
    assert hand_out(lessons, work) == []
    assert contents(work)["00_a.ipynb"] == "mine"
    assert contents(work)["00_a.new.ipynb"] == "version 2"
    assert len(contents(work)) == 3


def test_a_new_version_that_the_learner_works_in_stays_too(folders):
    lessons, work = folders
    hand_out(lessons, work)
    (work / "00_a.ipynb").write_text("mine")
    (lessons / "00_a.ipynb").write_text("version 2")
    hand_out(lessons, work)
    (work / "00_a.new.ipynb").write_text("mine too")
    (lessons / "00_a.ipynb").write_text("version 3")
    hand_out(lessons, work)
    assert contents(work)["00_a.new.ipynb"] == "mine too"
    assert contents(work)["00_a.new2.ipynb"] == "version 3"


@pytest.mark.parametrize("damage", ["", "[]", "{"])
def test_without_its_record_nothing_is_overwritten(folders, damage):
    lessons, work = folders
    hand_out(lessons, work)
    (work / "00_a.ipynb").write_text("mine")
    (work / ".lessons.json").write_text(damage)
    (lessons / "00_a.ipynb").write_text("version 2")
    assert hand_out(lessons, work) == []
    assert contents(work)["00_a.ipynb"] == "mine"


def test_missing_lessons_are_said(tmp_path):
    with pytest.raises(LessonsError, match=r"No lessons found in .*SLUICE_LESSONS"):
        hand_out(tmp_path / "lessons", tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_folder_that_cannot_be_written_is_said(folders):
    lessons, work = folders
    work.write_text("a file is in the way")
    with pytest.raises(LessonsError, match=r"Cannot write to .*work: .*SLUICE_WORK"):
        hand_out(lessons, work)


def test_a_port_in_use_is_passed_over_and_said(capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = free_port(port)
    assert taken > port
    assert capsys.readouterr().out == f"Port {port} is in use; taking {taken}.\n"


def test_kernels_find_the_same_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_WORK", "mine/work")
    monkeypatch.setenv("SLUICE_LOCALES", "languages")
    env = lab_environment(work_folder(), tmp_path / "folder", "token")
    assert env["SLUICE_LOCALES"] == str(Path.cwd() / "languages")
    assert (env["SLUICE_WORK"], env["HOME"]) == (str(tmp_path / "mine" / "work"), os.environ["HOME"])
    assert env["IPYTHONDIR"].startswith(env["SLUICE_WORK"])
    before = state_folder()
    monkeypatch.setenv("SLUICE_WORK", env["SLUICE_WORK"])
    monkeypatch.chdir("/")
    assert state_folder() == before


def test_the_views_extension_is_found_whatever_the_checkout_is_called(tmp_path):
    env = lab_environment(tmp_path / "work", tmp_path / "folder", "token")
    assert (Path(env["JUPYTER_PATH"].split(os.pathsep)[0]) / "labextensions" / "anywidget" / "package.json").is_file()


class Lab:
    """A running `sluice lab` with a home, lessons and folders of its own."""

    def __init__(self, root: Path, home: str | None = None, host: str | None = None) -> None:
        self.root = root
        for name in ("home", "lessons", "scratch", "tmp"):
            (root / name).mkdir()
        output = nbformat.v4.new_output("display_data", {"text/html": "<b>1</b>"})
        cells = [nbformat.v4.new_code_cell("1", outputs=[output])]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "lessons" / "00_start.ipynb")
        # Another program registered `python3`, and the user's own server lives under another address.
        kernel = root / "home" / ".local" / "share" / "jupyter" / "kernels" / "python3"
        kernel.mkdir(parents=True)
        spec = {"argv": ["/bin/false"], "display_name": "other", "language": "python"}
        (kernel / "kernel.json").write_text(json.dumps(spec))
        (root / "home" / ".jupyter").mkdir()
        (root / "home" / ".jupyter" / "jupyter_server_config.py").write_text("c.ServerApp.base_url = '/elsewhere'\n")
        env = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")}
        names = {"SLUICE_WORK": "work", "SLUICE_LESSONS": "lessons", "SLUICE_SCRATCH": "scratch", "TMPDIR": "tmp"}
        env |= {name: str(root / folder) for name, folder in names.items()} | {"HOME": home or str(root / "home")}
        env |= {"http_proxy": "http://127.0.0.1:9", "PYTHONUNBUFFERED": "1"}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "course.cli", "lab", "--no-browser", "--port", str(self.port)]
        command += ["--host", host] if host else []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
        )
        # A server that never gets ready must not hold up the test run.
        self.watchdog = threading.Timer(300, self.process.kill)
        self.watchdog.start()
        self.output = ""

    def wait_until_ready(self) -> None:
        for line in self.process.stdout:
            self.output += line
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab/tree/00_start\.ipynb\?token=(\w+)", line):
                self.base, self.token = found.groups()
                return
        raise AssertionError(self.output)

    def get(self, path, method="GET", token=None):
        headers = {"Authorization": f"token {token or self.token}"}
        data = b"{}" if method == "POST" else None
        request = urllib.request.Request(f"{self.base}/{path}", method=method, headers=headers, data=data)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as answer:
            return answer.read()

    def api(self, path, method="GET", token=None):
        return json.loads(self.get(path, method, token))

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=300)
        self.output += rest
        return self.process.returncode


@pytest.fixture
def lab(tmp_path, request):
    lab = Lab(tmp_path, *getattr(request, "param", ()))
    yield lab
    lab.watchdog.cancel()
    if lab.process.poll() is None:
        lab.process.terminate()
        lab.process.wait(120)


def processes_with(text: str) -> list[str]:
    """The commands of all processes whose command line holds `text`; not those that only wait to be collected."""
    listing = psutil.process_iter(["cmdline", "status"])
    running = (each.info for each in listing if each.info["status"] != psutil.STATUS_ZOMBIE)
    commands = (" ".join(info["cmdline"] or ()) for info in running)
    return [command for command in commands if text in command]


@pytest.mark.slow
@pytest.mark.parametrize("lab", [(None, "0.0.0.0")], indirect=True)
def test_in_a_container_it_listens_everywhere_wants_the_token_and_warns(lab):
    lab.wait_until_ready()
    (server,) = (each for each in psutil.Process(lab.process.pid).children() if "jupyterlab" in each.cmdline())
    listening = [each.laddr for each in server.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    assert ("0.0.0.0", lab.port) in listening
    with pytest.raises(urllib.error.HTTPError, match="403"):
        lab.api("api/contents", token="wrong")
    assert lab.end(signal.SIGINT) == 130
    assert "nothing is encrypted" in lab.output


def test_a_teachers_own_lessons_are_handed_out_with_the_others(folders, monkeypatch, tmp_path):
    lessons, work = folders
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("SLUICE_LESSONS", str(lessons))
    monkeypatch.setenv("SLUICE_OWN_LESSONS", str(own))
    assert len(hand_out_all(work)) == 2  # a folder without a notebook is none
    (own / "40_own.ipynb").write_text("mine")
    assert hand_out_all(work) == ["40_own.ipynb: copied"]
    assert sorted(contents(work)) == ["00_a.ipynb", "03_b.ipynb", "40_own.ipynb"]


def test_copies_alone_need_no_server(folders, monkeypatch, capsys):
    lessons, work = folders
    monkeypatch.setenv("SLUICE_LESSONS", str(lessons))
    monkeypatch.setenv("SLUICE_WORK", str(work))
    assert main(["lab", "--copy-only"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "00_a.ipynb: copied",
        "03_b.ipynb: copied",
        f"Your copies of the lessons are in {work}.",
    ]
    assert sorted(contents(work)) == ["00_a.ipynb", "03_b.ipynb"]


@pytest.mark.parametrize("host", ["here", "256.0.0.1", "::1", ""])
def test_what_is_no_address_is_refused(host):
    with pytest.raises(SystemExit) as ended:
        main(["lab", "--host", host])
    assert ended.value.code == 2


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_server_shows_the_first_lesson_and_ends_without_a_trace(lab, number, status):
    lab.wait_until_ready()
    assert lab.api("api/contents/00_start.ipynb?content=0")["type"] == "notebook"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        lab.api("api/contents", token="wrong")
    kernel = lab.api("api/kernels", "POST")
    assert kernel["name"] == "python3"
    argv = lab.api("api/kernelspecs")["kernelspecs"]["python3"]["spec"]["argv"]
    assert argv[0] == sys.executable
    assert until(lambda: processes_with(kernel["id"]))
    opened = lab.api("api/contents/00_start.ipynb?content=1")["content"]
    assert [cell["metadata"].get("trusted") for cell in opened["cells"]] == [True]
    settings = lab.api("lab/api/settings/@jupyterlab/apputils-extension:notification")
    assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"

    assert lab.end(number) == status
    assert "Traceback" not in lab.output
    assert processes_with(kernel["id"]) == []
    assert processes_with(str(lab.root)) == []
    assert list((lab.root / "scratch").iterdir()) == []


@pytest.mark.slow
def test_an_exported_page_shows_the_stills_of_views_and_asks_nobody_for_more(lab):
    view, state = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
    data = {view: {"model_id": "a"}, "image/svg+xml": "<svg/>", "text/plain": "in words"}
    shown = nbformat.v4.new_output("display_data", data)
    saved = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("view", outputs=[shown])])
    saved.metadata["widgets"] = {state: {"state": {"a": {}}, "version_major": 2, "version_minor": 0}}
    lab.wait_until_ready()
    nbformat.write(saved, lab.root / "work" / "saved.ipynb")
    page = lab.get("nbconvert/html/saved.ipynb").decode()
    assert 'src="data:image/svg+xml;base64,' in page
    assert f'<script type="{view}">' not in page


@pytest.mark.slow
def test_when_the_command_is_killed_the_server_and_its_kernels_end(lab):
    lab.wait_until_ready()
    kernel = lab.api("api/kernels", "POST")
    assert until(lambda: processes_with(kernel["id"]))
    assert lab.end(signal.SIGKILL) == -signal.SIGKILL
    assert until(lambda: not processes_with(str(lab.root)))


@pytest.mark.slow
@pytest.mark.parametrize("lab", [("/dev/null/home",)], indirect=True)
def test_without_a_home_lessons_open_and_nothing_is_left_elsewhere(lab):
    lab.wait_until_ready()
    assert lab.api("api/contents/00_start.ipynb?content=1")["type"] == "notebook"
    kernel = lab.api("api/kernels", "POST")
    assert until(lambda: processes_with(kernel["id"]))
    assert lab.end(signal.SIGTERM) == 143
    assert list((lab.root / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_server_that_ends_by_itself_is_said(lab):
    lab.wait_until_ready()
    (server,) = psutil.Process(lab.process.pid).children()
    server.kill()
    rest, _ = lab.process.communicate(timeout=300)
    assert lab.process.returncode == 1
    assert re.search(r"ended by itself with status -9; see .*lab\.log\.", rest)
