"""A cluster of its own processes on this machine: it starts, runs a job, and leaves nothing, however it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.cluster.places import FLIGHTS, ROOT, TIMEOUT_S, Place, is_running, sluice
from tests.support.polling import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SMALL = ("--workers", "2", "--cores", "1", "--memory", "1024")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def folder_of(place: Place) -> Path:
    return place.folder / "state" / ".course" / "cluster"


def noted(place: Place) -> dict:
    return json.loads((folder_of(place) / "cluster.json").read_text())


def processes_of(place: Place) -> list[tuple[int, float]]:
    """The processes of the cluster, and all that they have started."""
    family = []
    for each in noted(place)["processes"]:
        process = psutil.Process(each["id"])
        family += [process, *process.children(recursive=True)]
    return [(each.pid, each.create_time()) for each in family]


def until_gone(processes: list[tuple[int, float]]) -> None:
    until(lambda: not any(is_running(*each) for each in processes), TIMEOUT_S)


@pytest.fixture(scope="module")
def place(make_place: Callable[[], Place]) -> Iterator[Place]:
    """With a cluster that runs."""
    place = make_place()
    started = sluice(place, "cluster", "start", "--port", str(free_port()), *SMALL)
    assert started.returncode == 0, started
    assert noted(place)["url"] in started.stdout
    yield place
    sluice(place, "cluster", "stop")


def test_a_job_keeps_checkpoints_on_the_cluster_and_gives_what_it_gives_on_threads_without(place: Place) -> None:
    job = str(ROOT / "course" / "example_job.py")
    plain = sluice(place, "run", job, "--on", "threads", "--json")
    there = ("--on", "spark", "--master", noted(place)["url"])
    kept = sluice(place, "run", job, *there, "--json", "--checkpoint", "kept", "--every", "20ms")
    assert (plain.returncode, kept.returncode) == (0, 0), (plain, kept)
    without, said = json.loads(plain.stdout), json.loads(kept.stdout)
    assert said["fingerprint"] == without["fingerprint"]
    assert said["records_in"] == without["records_in"] > 0
    assert "checkpoints" not in without
    checkpoints = said["checkpoints"]
    assert checkpoints.pop("completed") >= 1  # the last one at least
    assert checkpoints == {"failed": checkpoints["failed"], "restarts": 0, "restored": None}
    assert not [path for path in (place.folder / "kept").rglob("chk-*/*") if path.is_file()]


def test_flights_give_the_answer_of_every_other_driver(place: Place) -> None:
    words = ("run", "flights", "--on", "spark", "--master", noted(place)["url"], "--records", str(FLIGHTS[0]), "--json")
    done = sluice(place, *words)
    assert done.returncode == 0, done
    said = json.loads(done.stdout)
    assert (said["records_in"], said["fingerprint"], said["equal_to_spark"]) == (*FLIGHTS, True)
    assert "Traceback" not in done.stderr
    assert place.left == []


def test_it_says_that_it_runs_and_that_one_is_enough(place: Place, make_place: Callable[[], Place]) -> None:
    url = noted(place)["url"]
    status = sluice(place, "cluster", "status")
    assert (status.returncode, status.stdout.splitlines()[0]) == (0, f"{url} runs, 2 workers with 1 cores each")
    again = sluice(place, "cluster", "start")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"a cluster runs already at {url}; `sluice cluster stop` ends it\n"
    other = make_place()
    port = url.rpartition(":")[2]
    taken = sluice(other, "cluster", "start", "--port", port)
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"port {port} cannot be used: Address already in use; ")
    assert not folder_of(other).exists()


def test_everything_of_it_listens_on_loopback(place: Place) -> None:
    for process_id, _ in processes_of(place):
        for connection in psutil.Process(process_id).net_connections("inet"):
            assert connection.laddr.ip.removeprefix("::ffff:") in ("127.0.0.1", "::1"), connection


def test_it_is_stopped_and_nothing_is_left(place: Place) -> None:
    processes = processes_of(place)
    assert len(processes) >= 4
    stopped = sluice(place, "cluster", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "✓ the cluster has ended\n")
    assert not any(is_running(*each) for each in processes)
    assert not folder_of(place).exists()
    assert sluice(place, "cluster", "stop").stdout == "no cluster runs\n"
    assert sluice(place, "cluster", "status").returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_whoever_starts_it_is_ended_before_it_runs_and_nothing_is_left(
    make_place: Callable[[], Place], number: signal.Signals
) -> None:
    place = make_place()
    starter = subprocess.Popen(
        [sys.executable, "-m", "course.cli", "cluster", "start", "--port", str(free_port()), *SMALL],
        env=place.environment(),
        cwd=place.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((folder_of(place) / "cluster.json").exists, TIMEOUT_S)
    processes = processes_of(place)
    starter.send_signal(number)
    _, said = starter.communicate(timeout=TIMEOUT_S)
    assert starter.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert "Traceback" not in said
    until_gone(processes)
    until(lambda: not folder_of(place).exists(), TIMEOUT_S)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes with the one that started them")
def test_when_its_keeper_is_killed_it_ends_and_another_can_be_started(make_place: Callable[[], Place]) -> None:
    place = make_place()
    port = str(free_port())
    assert sluice(place, "cluster", "start", "--port", port, "--workers", "1").returncode == 0
    processes = processes_of(place)
    psutil.Process(noted(place)["processes"][0]["id"]).kill()
    until_gone(processes)
    status = sluice(place, "cluster", "status")
    assert status.returncode == 1
    assert "does not run as a whole; `sluice cluster stop` clears it away" in status.stdout
    assert sluice(place, "cluster", "stop").returncode == 0
    assert not folder_of(place).exists()
