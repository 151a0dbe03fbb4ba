"""`sluice run`: one job file on every driver, and a sentence for each thing that is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from course.cli import main
from course.jobs.drivers import DRIVERS
from course.jobs.run import Sink
from tests.support.polling import until

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "course" / "example_job.py")
TIMEOUT_S = 300.0  # only so that a hang fails

MINE = """
from helper import Doubled
from refimpl.config import Config
from refimpl.job import StreamEnvironment

class Mine:
    def __init__(self, value): self.value = value
    def __repr__(self): return f"Mine({self.value})"

def job(sink):
    environment = StreamEnvironment(Config(num_buffers=64), parallelism=2)
    doubled = environment.from_collection(range(4)).rebalance().map(lambda n: Doubled(n))
    doubled.map(lambda d: Mine(d.twice), "mine").sink(sink)
    return environment

def wrong(sink): return 3
def broken(sink): raise ValueError("not today")
def fails(sink):
    environment = StreamEnvironment(Config(num_buffers=64))
    environment.from_collection(range(4)).map(lambda n: 1 // n).sink(sink)
    return environment
nothing = None
def twice(sink):
    environment = StreamEnvironment(Config(num_buffers=64))
    environment.from_collection(range(4)).map(abs).map(abs).sink(sink)
"""
HELPER = """
class Doubled:
    def __init__(self, value): self.twice = 2 * value
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "syntax.py").write_text("x = 1\ndef job(:\n")
    (tmp_path / "imports.py").write_text("import nowhere_at_all\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(7)\n")
    return tmp_path


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SLUICE_SCRATCH": str(folder)} | more
    return subprocess.run(
        [sys.executable, "-m", "course.cli", "run", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=TIMEOUT_S,
    )


@pytest.mark.slow
def test_the_example_gives_the_same_on_every_driver(folder: Path) -> None:
    said = []
    for driver in DRIVERS:
        if driver != "spark":
            done = run(folder, EXAMPLE, "--on", driver, "--json", "--trace", f"traces/{driver}")
            assert done.returncode == 0, done
            said.append(json.loads(done.stdout))
            of_each = {file.name.split("-")[1] for file in (folder / "traces" / driver).glob("trace-*.parquet")}
            assert sorted(of_each) == [str(number) for number in range(said[-1]["task_managers"])]
    again = run(folder, EXAMPLE, "--trace", "traces/threads")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "traces/threads has a trace already, trace-0-00000.parquet; name an empty folder\n"
    assert {each["fingerprint"] for each in said} == {said[0]["fingerprint"]}
    assert {(each["records_in"], each["results"]) for each in said} == {(20_000, 200)}
    assert [each["task_managers"] for each in said] == [1, 1, 1, 2]


@pytest.mark.slow
@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("name", ["mine.py", "mine.py:job", "./mine.py", "mine", "mine:job"])
def test_what_a_job_file_defines_and_what_lies_beside_it_goes_along(folder: Path, name: str) -> None:
    done = run(folder, name, "--on", "processes")
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == ["Mine(0)", "Mine(2)", "Mine(4)", "Mine(6)"]
    assert "4 records in, 4 results" in done.stderr
    assert "2 TaskManagers" in done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark_it_goes_along_too_and_an_interrupt_ends_all_of_it(folder: Path) -> None:
    (folder / "endless.py").write_text(
        "import pathlib, threading\n"
        + MINE.replace("lambda n: Doubled(n)", "stand").replace(
            "class Mine",
            f"def stand(n):\n    pathlib.Path({str(folder / 'stands')!r}).touch()\n"
            "    threading.Event().wait(300)\n\nclass Mine",
            1,
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "course.cli", "run", "endless.py", "--on", "spark"],
        cwd=folder,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "SLUICE_SCRATCH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: (folder / "stands").exists() or process.poll() is not None, TIMEOUT_S)
    assert process.poll() is None, process.communicate()
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert psutil.wait_procs(family, TIMEOUT_S)[1] == []
    assert not list(folder.glob("sluice-*"))


WRONG = {
    "gone.py": "gone.py cannot be read: No such file or directory",
    "gone": "there is no module gone; a file is named with its .py",
    "9x": "'9x' is neither a file that ends in .py nor a module",
    "mine.py:gone": "mine.py has no function 'gone' that makes a job",
    "mine.py:nothing": "mine.py has no function 'nothing' that makes a job",
    "mine.py:not-a-name": "'mine.py:not-a-name' names no job",
    "mine.py:wrong": "mine.py:wrong returned int, where a StreamEnvironment was expected",
    "mine.py:broken": "mine.py:broken did not make its job: ValueError: not today (line 17 of mine.py)",
    "mine.py:twice": "mine.py:twice did not make its job: LocalUsageError: two operators are called 'map'; give one "
    "another name (line 25 of mine.py)",
    "syntax.py": "syntax.py cannot be loaded: SyntaxError: ",
    "imports.py": "imports.py cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'",
    "exits.py": "exits.py cannot be loaded: SystemExit: 7",
    "mine.py --master local[2]": "--master is for jobs on Spark",
    "mine.py --on spark --master nonsense": "'nonsense' is no master URL such as local[2]",
    "mine.py --records 5": "--records is for flights",
    "mine.py --task-managers 3": "3 TaskManagers cannot share the 2 slots of this job",
    "mine.py --task-managers 0": "0 TaskManagers cannot share the 2 slots of this job",
    "flights --task-managers 0": "0 TaskManagers cannot share the 2 slots of this job",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_sentence(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    assert main(["run", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(WRONG[words]), err
    assert len(err.splitlines()) == 1


def test_a_job_that_fails_is_status_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["run", "mine.py:fails"]) == 1
    assert "the job failed: map, subtask 0, raised ZeroDivisionError" in capsys.readouterr().err


def test_a_job_that_ends_the_program_ends_it_with_its_status_and_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "exits.py").write_text(MINE.replace("lambda n: 1 // n", "lambda _: exit(3)"))
    with pytest.raises(SystemExit) as ended:
        main(["run", "exits.py:fails"])
    assert ended.value.code == 3
    assert "the job failed: map, subtask 0, raised SystemExit: 3 while processing" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["threads", "processes"])
def test_a_job_that_ends_its_process_at_once_has_not_succeeded(folder: Path, driver: str) -> None:
    (folder / "ends.py").write_text("import os\n" + MINE.replace("lambda n: 1 // n", "lambda _: os._exit(0)"))
    done = run(folder, "ends.py:fails", "--on", driver)
    assert done.returncode == 1
    said = {"threads": "its code called os._exit(0)", "processes": "ended with status 0"}[driver]
    assert "the job failed: " in done.stderr
    assert said in done.stderr


@pytest.mark.slow
def test_no_master_is_status_3_before_anything_starts(folder: Path) -> None:
    done = run(folder, "mine.py", "--on", "spark", "--master", "spark://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Spark could not start: no master is at spark://127.0.0.1:1 (Connection refused); ")
    assert done.stderr.count("\n") == 1
    assert not list(folder.glob("sluice-*"))


@pytest.mark.parametrize("words", ["", "x.py --on mars", "flights --records x", "flights --records 0"])
def test_wrong_words_are_wrong_use(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", *words.split()])
    assert ended.value.code == 2
    assert "usage: sluice run" in capsys.readouterr().err


def test_a_fingerprint_knows_results_and_not_their_order() -> None:
    def of(*results: object) -> str:
        sink = Sink(prints=False)
        for each in results:
            sink(each)
        return sink.fingerprint

    assert of(1, 2, 3) == of(3, 1, 2)
    assert len({of(1, 2), of(1, 2, 2), of(1), of(), of(1, "2")}) == 5
