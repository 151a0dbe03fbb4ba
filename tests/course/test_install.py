"""The setup: what makes it start again, what it says when it cannot go on, and what it leaves behind."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from course import install

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"python3.{sys.version_info.minor}"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout whose `.venv` is ready."""
    root = tmp_path / "a sluïce [1]"
    for folder in ("course", ".venv/bin", f".venv/lib/{PYTHON}"):
        (root / folder).mkdir(parents=True)
    shutil.copyfile(ROOT / "course" / "install.py", root / "course" / "install.py")
    (root / "requirements.txt").write_text("\nsetuptools==1 \\\n    --hash=sha256:0\n    --hash=sha256:1\nx==2\n")
    (root / "pyproject.toml").write_text("")
    (tmp_path / PYTHON).touch()
    (root / ".venv" / "bin" / "python").symlink_to(tmp_path / PYTHON)
    for name, path in (("ROOT", ""), ("VENV", ".venv"), ("PYTHON", ".venv/bin/python")):
        monkeypatch.setattr(install, name, root / path)
    monkeypatch.setattr(install, "READY", root / ".venv" / "ready.json")
    monkeypatch.setattr(install, "LOG", root / ".venv" / "setup.log")
    (root / ".venv" / "ready.json").write_text(json.dumps(install.wanted()))
    return root


def setup(checkout, **options):
    command = [sys.executable, "-I", str(checkout / "course" / "install.py")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", **options)


def test_when_everything_is_there_it_says_nothing(checkout):
    process = setup(checkout)
    assert (*process.communicate(timeout=60), process.returncode) == ("", "", 0)


def test_only_contents_count(checkout):
    os.utime(checkout / "requirements.txt", (1, 1))
    assert install.recorded() == install.wanted()


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_a_changed_list_is_noticed(checkout, name):
    with (checkout / name).open("a") as file:
        file.write("# more\n")
    assert install.recorded() != install.wanted()


@pytest.mark.parametrize("damage", ["", "[]", "{", "\udcff"])
def test_without_its_record_it_starts_again(checkout, damage):
    (checkout / ".venv" / "ready.json").write_text(damage, errors="surrogateescape")
    assert install.recorded() == {}


def test_a_moved_checkout_starts_again(checkout, monkeypatch):
    monkeypatch.setattr(install, "ROOT", checkout.rename(checkout.with_name("moved")))
    monkeypatch.setattr(install, "READY", install.ROOT / ".venv" / "ready.json")
    assert install.recorded() != install.wanted()


def test_a_python_that_is_gone_or_another_version_starts_again(checkout):
    program = (checkout / ".venv" / "bin" / "python").readlink()
    other = program.rename(program.with_name("python3.99"))
    assert install.recorded() == {}
    program.symlink_to(other)
    assert install.recorded() == {}
    program.unlink()
    other.rename(program)
    assert install.recorded() == install.wanted()


def test_a_second_setup_waits_and_says_so(checkout):
    folder = os.open(checkout, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    process = setup(checkout)
    assert process.stdout.readline() == "Another make installs in this folder; waiting for it.\n"
    assert process.poll() is None
    os.close(folder)
    assert (*process.communicate(timeout=60), process.returncode) == ("", "", 0)


def test_a_folder_that_cannot_be_written_is_status_3(checkout):
    shutil.rmtree(checkout / ".venv")
    (checkout / ".venv").touch()  # a file is in the way, which stops root too
    process = setup(checkout)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err.strip().startswith(f"Cannot write to {checkout}: ")


def test_a_failed_step_shows_the_end_of_its_output_and_cleans_up(checkout):
    code = "import os, pathlib, sys; pathlib.Path(os.environ['TMPDIR'], 'x').touch(); print('reason'); sys.exit(7)"
    with pytest.raises(install.SetupError, match=r"This step failed.*setup\.log(?s:.*)reason"):
        install.run([sys.executable, "-c", code], checkout / ".venv" / ".tmp")
    assert not (checkout / ".venv" / ".tmp").exists()
    assert (checkout / ".venv" / "setup.log").read_text() == "reason\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_step_is_started_ends_us_when_it_can_be_stopped(number):
    before = signal.signal(number, install.end_by_signal)
    try:
        go_on = install.hold_back_signals()
        signal.raise_signal(number)
        with pytest.raises(SystemExit, match=str(128 + number)):
            go_on()
        go_on()  # it has come once
        assert signal.getsignal(number) is install.end_by_signal
    finally:
        signal.signal(number, before)


def test_a_step_that_cannot_be_started_leaves_signals_as_they_were(checkout):
    before = [signal.getsignal(number) for number in install.ENDING]
    with pytest.raises(FileNotFoundError):
        install.run([str(checkout / "nothing")])
    assert [signal.getsignal(number) for number in install.ENDING] == before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_setup_stops_what_it_started(checkout, number, status):
    pipe = checkout / "pipe"
    os.mkfifo(pipe)
    step = f"import os, time; open({str(pipe)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = "import sys; sys.path.insert(0, sys.argv[1]); import install\n"
    code += f"install.refresh = lambda: install.run([sys.executable, '-c', {step!r}], install.VENV / '.tmp')\n"
    code += "sys.exit(install.main())"
    command = [sys.executable, "-c", code, str(checkout / "course")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with pipe.open() as file:
        step_id = int(file.read())
    assert (checkout / ".venv" / ".tmp").is_dir()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.kill(step_id, 0)
    assert not (checkout / ".venv" / ".tmp").exists()


def test_without_disk_space_it_says_how_much_is_needed(checkout, monkeypatch):
    monkeypatch.setattr(install, "free_bytes", lambda folder: install.GIB)
    needed = r"4\.0 GiB in .*1\.0 GiB are free; make room, or set TMPDIR"
    with pytest.raises(install.SetupError, match=needed) as raised:
        install.temporary_folder()
    assert raised.value.status == 3


def test_one_package_is_cut_out_with_its_hashes(checkout):
    text = (checkout / "requirements.txt").read_text()
    assert install.pinned(text, "setuptools") == "setuptools==1 \\\n    --hash=sha256:0\n    --hash=sha256:1\n"


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement).group()).lower()


def test_every_package_is_pinned_with_hashes_and_no_address():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "requirements.txt").read_text()
    blocks = [block for block in re.split(r"\n(?=\w)", text) if not block.startswith("#")]
    pins = {canonical(block): block for block in blocks}
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"], "setuptools"]
    assert [name for name in map(canonical, wanted) if name not in pins] == []
    assert all("==" in block and "--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert " @ " not in text
