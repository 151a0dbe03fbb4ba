"""The front of the `sluice` command."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course import __version__
from course.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[3]
SLUICE = [sys.executable, "-m", "course.cli"]


def run(*words, **options):
    return subprocess.run([*SLUICE, *words], capture_output=True, text=True, check=False, cwd=ROOT, **options)


def test_help_names_every_command():
    done = run("--help")
    assert done.returncode == 0
    assert set(re.findall(r"^    ([a-z-]+)\b", done.stdout, re.MULTILINE)) == {*COMMANDS}


def test_help_imports_nothing_large():
    code = "import sys, course.cli as c\ntry: c.main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT).stderr
    assert "course.cli" in loaded.split()
    assert not [name for name in ("pyspark", "numpy", "pyarrow", "jupyter_server", "rich") if name in loaded.split()]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"example: sluice {name}" in capsys.readouterr().out


WRONG = ("", "nonsense", "lab --port x", "lab --port 70000", "data", "doctor --nonsense")


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_status_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert "usage: sluice" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"sluice {__version__}\n"


def test_data_verify(capsys):
    assert main(["data", "verify"]) == 0
    assert "328521 flights" in capsys.readouterr().out


def test_a_machine_without_java_is_status_3_and_one_sentence(tmp_path):
    env = dict(os.environ, SLUICE_JAVA="/nowhere", SLUICE_SCRATCH=str(tmp_path))
    code = (
        "import sys, course.cli as c, types\nfrom course.data import spark\n"
        "c.COMMANDS['lab'] = c.Subcommand('probe', 'h', 'e')\n"
        "probe = types.ModuleType('probe'); probe.add_arguments = lambda parser: None; probe.run = lambda a: spark()\n"
        "sys.modules['probe'] = probe\nsys.exit(c.main(['lab']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    assert done.returncode == 3
    assert done.stderr.startswith("Spark could not start: SLUICE_JAVA")
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupt_is_status_130_and_one_sentence():
    code = (
        "import signal, sys, types, course.cli as c\n"
        "c.COMMANDS['lab'] = c.Subcommand('probe', 'h', 'e')\n"
        "probe = types.ModuleType('probe'); probe.add_arguments = lambda parser: None\n"
        "probe.run = lambda a: (print('here', flush=True), signal.pause())\n"
        "sys.modules['probe'] = probe\nsys.exit(c.main(['lab']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "interrupted before it was done\n")


def test_a_reader_that_leaves_early_is_no_error():
    command = f"'{sys.executable}' -m course.cli doctor | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == ""


def test_a_terminal_without_the_marks_is_no_error():
    done = run("progress", env=dict(os.environ, PYTHONIOENCODING="ascii"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "L00" in done.stdout
