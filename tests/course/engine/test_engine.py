"""`sluice engine`: a session with its jobs, a cluster for one job, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from course.cli import main
from course.compiled.choice import in_use
from course.engine.jobs import id_for, job_of, lines_in
from course.engine.session import supervisor_of
from course.jobs.job_files import JobError
from tests.support.polling import until

GATED = '''
import time
from pathlib import Path
from refimpl.config import Config
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord

GATE = Path(__file__).with_suffix(".gate")


class Reader:
    """Numbers; the last comes when the gate is there."""

    def __init__(self, subtask, parallelism):
        self.numbers, self.position = range(subtask, 100, parallelism), 0

    def seek(self, position):
        self.position = position

    def read(self, max_records):
        if self.position == len(self.numbers):
            return None
        if self.position == len(self.numbers) - 1 and not GATE.exists():
            time.sleep(0.01)
            return []
        self.position += 1
        return [StreamRecord(self.numbers[self.position - 1])]

    def close(self): ...


def job(sink):
    environment = StreamEnvironment(Config(checkpoint_interval_ms=100), parallelism=2)
    environment.source(Reader, "numbers").rebalance().map(lambda number: number * number).sink(sink)
    return environment


def doubles(sink):
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection(range(60)).rebalance().map(lambda number: 2 * number).rebalance().sink(sink)
    return environment


def breaks(sink):
    def divide(number):
        if not number:
            with Path(__file__).with_suffix(".tries").open("a") as file:
                file.write("x")
        return 1 // number

    environment = StreamEnvironment(parallelism=1)
    environment.from_collection([1, 0]).map(divide).sink(sink)
    return environment
'''
TWO_TRIES = ("--restarts", "1", "--restart-delay", "50ms")
SQUARES = sorted(str(number * number) for number in range(100))


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    file = tmp_path / "squares.py"
    file.write_text(GATED)
    return file


def said(capsys: pytest.CaptureFixture[str], *words: str | Path, status: int = 0) -> Any:
    """What `sluice engine` prints for a program."""
    assert main(["engine", *map(str, words), "--json"]) == status
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_session_takes_jobs_and_leaves_nothing(
    tmp_path: Path, gated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--at", tmp_path / "cluster")
    assert main(["engine", "start", *map(str, at), "--task-managers", "2", *TWO_TRIES]) == 0
    supervisor = supervisor_of(tmp_path / "cluster")
    assert supervisor is not None
    try:
        processes = [supervisor, *supervisor.children(recursive=True)]
        assert len(processes) == 5
        assert main(["engine", "start", *map(str, at)]) == 1
        assert "a cluster runs there already" in capsys.readouterr().err
        assert said(capsys, "list", *at) == []
        assert said(capsys, "submit", gated, "--id", "first", *at)["job"] == "first"
        assert main(["engine", "submit", str(gated), "--id", "first", *map(str, at)]) == 2
        assert "there is a job first already" in capsys.readouterr().err
        while said(capsys, "status", "first", *at).get("checkpoints", 0) < 1:
            pass
        assert said(capsys, "savepoint", "first", "kept", *at)["savepoint"] == "kept"
        assert said(capsys, "cancel", "first", *at)["state"] == "cancelled"
        gated.with_suffix(".gate").touch()
        ended = said(capsys, "submit", gated, "--id", "second", "--wait", *at)
        assert (ended["state"], ended["num_results"]) == ("finished", 100)
        assert lines_in(Path(ended["results"])) == SQUARES
        again = said(capsys, "submit", gated, "--id", "again", "--restore", "first/kept", "--wait", *at)
        assert (again["state"], again["num_results"]) == ("finished", 100)
        assert lines_in(Path(again["results"])) == SQUARES
        assert again["results"].endswith("first")
        for id_, of, why in (
            ("more", "first/other", "job first has no savepoint 'other'; it has kept"),
            ("more", "nobody/kept", "no job of that id has kept anything here"),
            ("second", "first/kept", "there is a job second already"),
            ("more", "kept", "--restore 'kept' names no savepoint; write ID/NAME"),
        ):
            assert main(["engine", "submit", str(gated), "--id", id_, "--restore", of, *map(str, at)]) == 2
            assert why in capsys.readouterr().err
        batch = said(capsys, "submit", f"{gated}:doubles", "--id", "batch", "--batch", "--wait", *at)
        assert (batch["state"], batch["num_results"]) == ("finished", 60)
        assert lines_in(Path(batch["results"])) == sorted(str(2 * number) for number in range(60))
        again = said(capsys, "submit", f"{gated}:doubles", "--batch", "--results", batch["results"], "--wait", *at)
        assert (again["state"], again["num_results"]) == ("finished", 60)
        assert {each.name for each in Path(batch["results"]).iterdir()} == {"part-0", "part-1"}
        for option, why in (("--every=1s", "no checkpoints"), ("--restore=first/kept", "keeps nothing to begin with")):
            assert main(["engine", "submit", f"{gated}:doubles", "--batch", option, *map(str, at)]) == 2
            assert why in capsys.readouterr().err
        assert "ZeroDivision" in said(capsys, "submit", f"{gated}:breaks", "--wait", *at, status=1)["why"]
        assert gated.with_suffix(".tries").read_text() == "xx"
        assert [each["state"] for each in said(capsys, "list", *at)] == ["cancelled", *["finished"] * 4, "failed"]
        assert main(["engine", "cancel", "third", *map(str, at)]) == 2
        assert "there is no job 'third'; the jobs are: first, second, again, batch, squares-" in capsys.readouterr().err
    finally:
        assert main(["engine", "stop", *map(str, at)]) == 0
    assert [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    assert main(["engine", "stop", *map(str, at)]) == 0
    assert "no cluster runs" in capsys.readouterr().out


@pytest.mark.slow
def test_a_session_with_keys_is_used_by_who_has_them(
    tmp_path: Path, gated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--at", tmp_path / "cluster")
    for name in ("keys", "others"):
        assert main(["engine", "keys", str(tmp_path / name)]) == 0
        assert f"sluice engine start --tls {tmp_path / name}" in capsys.readouterr().out
    with_keys = (*at, "--tls", tmp_path / "keys")
    assert main(["engine", "start", "--task-managers", "2", *map(str, with_keys)]) == 0
    capsys.readouterr()
    try:
        ended = said(capsys, "submit", f"{gated}:doubles", "--id", "kept", "--wait", *with_keys)
        assert (ended["state"], ended["num_results"], ended["engine"]) == ("finished", 60, in_use())
        assert said(capsys, "status", *at)["engine"] == in_use()
        for words, why in (((), "--tls"), (("--tls", tmp_path / "others"), "another certificate than this cluster's")):
            assert main(["engine", "list", *map(str, (*at, *words))]) == 1
            shown = capsys.readouterr().err
            assert "the cluster refuses this process" in shown
            assert why in shown
        assert [each["job"] for each in said(capsys, "list", *with_keys)] == ["kept"]
    finally:
        assert main(["engine", "stop", *map(str, at)]) == 0


def ready(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_task_managers_come_on_demand_are_replaced_and_go_when_idle(
    tmp_path: Path, gated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--at", tmp_path / "cluster")
    assert main(["engine", "start", *map(str, at), "--on-demand", "2", "--slots", "1", "--idle", "1s"]) == 0
    supervisor = supervisor_of(tmp_path / "cluster")
    assert supervisor is not None
    capsys.readouterr()

    def there() -> list[str]:
        names: list[str] = said(capsys, "status", *at)["task_managers"]
        assert len(names) <= 2
        return names

    def checkpoints() -> tuple[Any, Any]:
        shown = said(capsys, "status", "first", *at)
        return shown.get("restarts", 0), shown.get("checkpoints", 0)

    try:
        assert there() == []
        said(capsys, "submit", gated, "--id", "first", "--results", tmp_path / "out", *at)
        until(lambda: checkpoints()[1] > 0)
        before = there()
        assert len(before) == 2
        (victim,) = [each for each in supervisor.children(recursive=True) if before[0] in "".join(each.cmdline())]
        victim.kill()
        until(lambda: checkpoints()[0] > 0 and len(there()) == 2 and there() != before)
        processes = [supervisor, *supervisor.children(recursive=True)]
        gated.with_suffix(".gate").touch()
        until(lambda: said(capsys, "status", "first", *at)["state"] == "finished")
        assert lines_in(tmp_path / "out") == SQUARES
        until(lambda: there() == [])
        assert main(["engine", "list", *map(str, at)]) == 0
        assert "0 TaskManagers; those on demand come with a job" in capsys.readouterr().out
        gated.with_suffix(".gate").unlink()
        said(capsys, "submit", gated, "--id", "second", *at)
        until(lambda: len(there()) == 2)
        processes += supervisor.children(recursive=True)
    finally:
        assert main(["engine", "stop", *map(str, at)]) == 0
    assert [each for each in processes if ready(each)] == []
    assert main(["engine", "status", *map(str, at)]) == 1


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (("list",), 1, "there is no cluster in"),
        (("submit", "nothing.py"), 1, "there is no cluster in"),
        (("run", "nothing.py"), 2, "nothing.py cannot be read"),
        (("serve", "task-manager", "--job", "x.py"), 2, "--job is for the role dispatcher"),
        (("serve", "dispatcher", "--job", "x.py"), 2, "needs an --id"),
        (("start", "--restarts", "-1"), 2, "--restarts '-1' is no whole number from 0"),
        (("start", "--idle", "1s"), 2, "--idle is for TaskManagers that come --on-demand N"),
        (("start", "--on-demand", "2", "--idle", "soon"), 2, "--idle 'soon' is no time"),
        (("start", "--on-demand", "2", "--idle", "0s"), 2, "--idle '0s' cannot work"),
        (("start", "--on-demand", "2", "--task-managers", "2"), 2, "give one of both"),
        (("status",), 1, "no cluster runs in"),
        (("start", "--restart-delay", "soon"), 2, "--restart-delay 'soon' is no time"),
        (("serve", "task-manager", "--heartbeat", "5"), 2, "--heartbeat '5' is no time"),
        (("start", "--host", "0.0.0.0"), 2, "each address of this machine, and none at which others could reach it"),
        (("start", "--host", "10.1.2.3"), 2, "--host 10.1.2.3 can be reached from outside this machine"),
        (("serve", "task-manager", "--host", "10.1.2.3"), 2, "make keys with `sluice engine keys DIR`"),
        (("list", "--host", "not a host"), 2, "no address is known for it"),
        (("submit", "nothing.py", "--tls", "nowhere"), 2, "nowhere/cluster.crt' cannot work: No such file"),
        (("start", "--heartbeat", "2min"), 2, "below its timeout, got 120000 and 50000 ms"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_is_refused_with_a_reason(
    tmp_path: Path, words: tuple[str, ...], status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = () if words[0] == "run" else ("--at", str(tmp_path / "cluster"))
    assert main(["engine", *words, *at]) == status
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-1", "65", "some", "1.5"])
def test_a_number_of_task_managers_on_demand_that_cannot_be(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["engine", "start", f"--on-demand={number}"])
    assert ended.value.code == 2
    assert f"{number!r} is no whole number from 1 to 64" in capsys.readouterr().err


def test_results_go_into_files_of_each_sink(tmp_path: Path, gated: Path) -> None:
    environment = job_of(str(gated), tmp_path / "out", "250ms")
    assert environment.config.checkpoint_interval_ms == 250
    assert [each.sink for each in environment.graph.nodes.values() if each.on_job_finished is not None] == [None]
    with pytest.raises(JobError, match="no time"):
        job_of(str(gated), tmp_path / "out", "often")


def test_an_id_is_made_of_the_files_name() -> None:
    assert id_for("some/where/my job.py:second").rpartition("-")[0] == "my-job"
    assert id_for("x.py") != id_for("x.py")
