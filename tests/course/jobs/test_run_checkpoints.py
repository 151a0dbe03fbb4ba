"""`sluice run --checkpoint --every --restore`: a run that is killed as a whole goes on from there; a sentence else."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from course.cli import main
from course.jobs.job_files import JobError, load_job
from course.jobs.keeping import interval_ms, keeping_of
from refimpl.checkpoint import CheckpointCompleted
from refimpl.drivers import Simulation
from refimpl.drivers.file_store import FileStore
from refimpl.errors import RestoreRefusedError
from refimpl.job import StreamEnvironment
from tests.support.polling import until

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 300.0  # only so that a hang fails
NUM_RECORDS = 400

FLOW = f"""
from pathlib import Path

from refimpl.config import Config
from refimpl.drivers.file_transactions import FileSink
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.task import TumblingWindows

HERE = Path(__file__).parent

class Numbers:
    def __init__(self): self.position = 0
    def seek(self, position): self.position = position
    def close(self): pass
    def read(self, max_records):
        if self.position >= {NUM_RECORDS}:
            return None
        end = {NUM_RECORDS} if (HERE / "go").exists() else {NUM_RECORDS} // 2
        numbers = range(self.position, min(end, self.position + max_records))
        self.position = max(self.position, numbers.stop)
        return [StreamRecord((number % 5, number), number) for number in numbers]

class Count:
    def create_accumulator(self): return 0
    def add(self, value, accumulator): return accumulator + 1
    def get_result(self, accumulator): return accumulator

def job(sink):
    environment = StreamEnvironment(Config(num_buffers=256, source_batch=8), parallelism=2)
    counts = (
        environment.source(lambda *_: Numbers(), "numbers", parallelism=1)
        .assign_timestamps(lambda value: value[1], 3)
        .key_by(lambda value: value[0])
        .window(TumblingWindows(10))
        .aggregate(Count())
    )
    counts.sink_to(FileSink(HERE / "out"), "files")
    counts.sink(sink)
    return environment

"""
EXPECTED = Counter(f"{(key, start, start + 10, 2)}" for key in range(5) for start in range(0, NUM_RECORDS, 10))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.py").write_text(FLOW)
    return tmp_path


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "course.cli", "run", "flow.py", "--checkpoint", "kept", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def written(folder: Path) -> Counter[str]:
    """The lines that count: of files without a dot in front."""
    return Counter(line for path in (folder / "out").glob("part-*") for line in path.read_text().splitlines())


def checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / "kept").glob("flow/chk-*/_metadata"))


@pytest.mark.slow
@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("more", [[], ["--task-managers", "1"]])
def test_a_run_that_is_killed_as_a_whole_goes_on_from_its_newest_checkpoint(folder: Path, more: list[str]) -> None:
    with begin(folder, "--on", "processes", "--every", "20ms") as first:
        until(lambda: checkpoints(folder) and written(folder), TIMEOUT_S)
        processes = psutil.Process(first.pid).children(recursive=True)
        first.kill()
        first.communicate(timeout=TIMEOUT_S)
    assert first.returncode == -signal.SIGKILL
    psutil.wait_procs(processes, timeout=TIMEOUT_S)
    assert not [each for each in processes if each.is_running()]
    assert checkpoints(folder)
    half = written(folder)
    assert set(half.values()) == {1}
    assert half < EXPECTED
    (folder / "go").touch()

    with begin(folder, "--on", "processes", "--every", "20ms") as refused:
        _, said = refused.communicate(timeout=TIMEOUT_S)
    assert refused.returncode == 2
    assert "of flow: say --restore to go on from there, or name another folder" in said

    with begin(folder, "--on", "processes", "--every", "20ms", "--restore", "--json", *more) as second:
        answer, said = second.communicate(timeout=TIMEOUT_S)
    assert second.returncode == 0, said
    summary = json.loads(answer)
    assert summary["checkpoints"]["restored"] >= 1
    assert summary["checkpoints"]["completed"] >= 1
    assert summary["checkpoints"]["restarts"] == 0
    assert written(folder) == EXPECTED
    assert not checkpoints(folder)
    assert not list((folder / "out").glob(".*"))


@pytest.mark.slow
def test_what_cannot_be_gone_on_from_is_refused_and_stays(folder: Path) -> None:
    with begin(folder, "--on", "threads", "--every", "5ms") as first:
        until(lambda: checkpoints(folder) and written(folder), TIMEOUT_S)
        first.kill()
        first.communicate(timeout=TIMEOUT_S)
    (folder / "go").touch()
    found = checkpoints(folder)
    for manifest in found:
        manifest.write_bytes(b"")
    with begin(folder, "--on", "threads", "--restore") as refused:
        _, said = refused.communicate(timeout=TIMEOUT_S)
    assert refused.returncode == 2
    assert "none is sound; it does not start empty" in said
    assert checkpoints(folder) == found


@pytest.mark.parametrize("driver", ["simulation", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_run_begins_with_a_savepoint_and_not_with_what_came_later(
    folder: Path, driver: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job, kept = str(folder / "flow.py"), folder / "kept"
    with Simulation(load_job(job, list[object]().append), store=FileStore(kept, fsync=False), job="flow") as run:
        run.run(40)
        assert run.recovery is not None
        request = run.recovery.savepoint("friday", run.time_ms)
        while not (kept / "flow" / "sp-friday" / "_metadata").exists():
            run.step()
        ended = [each for each in run.recovery.checkpoints.history if each.request == request]
        assert [type(each) for each in ended] == [CheckpointCompleted]
    (folder / "go").touch()
    assert main(["run", job, "--on", driver, "--checkpoint", str(kept), "--restore", "friday", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoints"]["restored"] == 1
    assert written(folder) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["simulation", "threads", "aio", "processes"])
def test_every_driver_that_keeps_checkpoints_says_how_many(folder: Path, driver: str) -> None:
    (folder / "go").touch()
    with begin(folder, "--on", driver, "--every", "1ms") as run:
        answer, said = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, said
    assert "checkpoint" in said
    assert "taken" in said
    assert Counter(answer.splitlines()) == EXPECTED == written(folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "1s"], "--every is about checkpoints; say where they are: --checkpoint DIR"),
        (["--restore"], "--restore is about checkpoints"),
        (["--checkpoint", "kept", "--every", "soon"], "--every 'soon' is no time; write a number and its unit"),
        (["--checkpoint", "kept", "--every", "5"], "--every '5' is no time"),
        (["--checkpoint", "kept", "--every", "0s"], "--every '0s' cannot work: from 1ms to 24h"),
        (["--checkpoint", "kept", "--every", "25h"], "--every '25h' cannot work"),
        (["--checkpoint", "kept", "--restore"], "--restore: kept is not there"),
        (["--checkpoint", "flow.py", "--restore"], "--restore: flow.py is no folder"),
        (["--checkpoint", "flow.py"], "no checkpoint can be kept in flow.py"),
        (["--checkpoint", "empty", "--restore"], "--restore: empty has nothing of flow; it has nothing at all"),
        (
            ["--checkpoint", "saved", "--restore", "monday"],
            "--restore: saved has no savepoint 'monday' of flow; it has friday",
        ),
        (["--checkpoint", "saved", "--restore", "friday", "--on", "spark"], "--restore friday does not go with spark"),
        (["--checkpoint", "kept", "--trace", "traced"], "--trace does not go with --checkpoint on processes"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(
    folder: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    FileStore(folder / "saved").put("flow/sp-friday/_metadata", [b"manifest"])
    assert main(["run", "flow.py", "--on", "processes", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_flights_keep_no_checkpoints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "flights", "--checkpoint", "kept", "--on", "simulation"]) == 2
    assert "--checkpoint is for job files" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "is_trusted"), [(0o700, True), (0o755, True), (0o757, False)])
def test_pickled_state_is_read_only_where_nobody_else_can_write(folder: Path, mode: int, is_trusted: bool) -> None:
    kept = folder / "kept"
    FileStore(kept).put("flow/leader-1.claim", [b"claim"])
    kept.chmod(mode)
    arguments = argparse.Namespace(checkpoint=kept, every="2s", unaligned_after=None, restore="", job="some/flow.py")
    environment = StreamEnvironment()
    keeping = keeping_of(arguments, environment)
    assert keeping is not None
    assert keeping.options["trust_pickle"] is is_trusted
    assert ("other users can write to" in str(keeping.refused(RestoreRefusedError("it is pickled")))) is not is_trusted
    assert environment.config.checkpoint_interval_ms == 2000


@pytest.mark.parametrize(
    ("word", "value_ms"), [("500ms", 500), ("1s", 1000), ("1.5 s", 1500), ("2min", 120_000), ("1h", 3_600_000)]
)
def test_a_time_has_a_unit(word: str, value_ms: int) -> None:
    assert interval_ms(word) == value_ms


@pytest.mark.parametrize("word", ["", "s", "-1s", "1d", "1,5s", "1e3s", "1s1s", "٣s"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(JobError, match="no time"):
        interval_ms(word)
