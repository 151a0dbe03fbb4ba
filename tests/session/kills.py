"""Real kills: parts of a cluster get SIGKILL while a job runs, and how long it takes until it runs as before."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_options import TASK_MANAGER, NodeOptions
from refimpl.drivers.cluster.rpc.service import RpcService
from tests.session.job import batch_lines, committed, windows_job
from tests.support.polling import until

__all__ = ["CASES", "Kill", "kills"]

CASES: dict[str, tuple[str, ...]] = {
    "TaskManager": (TASK_MANAGER,),
    "ResourceManager": (RESOURCE_MANAGER,),
    "JobMaster": (DISPATCHER,),
    "JobMaster and ResourceManager": (DISPATCHER, RESOURCE_MANAGER),
    "TaskManager and ResourceManager": (TASK_MANAGER, RESOURCE_MANAGER),
}
"""The five failure cases; JobMasters live in the process of the Dispatcher."""

_JOB = "windows"
_MAX_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill, and how many seconds later all tasks ran, all leaders led, and another checkpoint was complete."""

    case: str
    recovery_s: float


class _Watched:
    """The job, as somebody sees it who asks the Dispatcher."""

    def __init__(self, client: ClusterClient, leaders: StoredLeaders) -> None:
        self._client = client
        self._leaders = leaders

    def used(self) -> str:
        return str(self._client.status(_JOB)["task_managers"][0].partition("@")[0])

    def leaderships(self, names: list[str]) -> list[object]:
        known = self._leaders.all()
        return [known.get(name) for name in names]

    def seen(self) -> tuple[str, int, int]:
        """Who leads, how often it began again, and how many checkpoints there were."""
        shown = self._client.status(_JOB)
        return shown.get("leader", ""), shown.get("restarts", 0), shown.get("checkpoints", 0)

    def runs_since(self, before: tuple[str, int, int], is_another: bool) -> bool:
        """Whether all tasks run, of other attempts if `is_another`, and there is a checkpoint that was not there."""
        shown = self._client.status(_JOB)
        leader, restarts, checkpoints = self.seen()
        if not shown.get("tasks") or shown["running"] != shown["tasks"]:
            return False
        if (leader, restarts) == before[:2]:
            return not is_another and checkpoints > before[2]
        return checkpoints > (before[2] if leader == before[0] else 0)


def kills(folder: Path, cases: list[str], rounds: int, seed: int, num_records: int = 4_000) -> Iterator[Kill]:
    """Each of `cases`, `rounds` times, in the order that `seed` gives; the job then gives what its batch run gives."""
    random = Random(seed)
    order = [case for case in cases for _ in range(rounds)]
    random.shuffle(order)
    options = NodeOptions(TASK_MANAGER, max_restarts=100_000, restart_delay_ms=100.0)
    with ClusterProcesses(folder / "cluster", options=options) as processes:
        processes.wait_until_up()
        leaders = StoredLeaders(processes.folder.leases)
        client = ClusterClient(RpcService(processes.folder.secret), leaders, timeout_s=120)
        try:
            environment, gate = windows_job(folder, _JOB, num_records)
            client.submit(_JOB, environment)
            watched = _Watched(client, leaders)
            until(lambda: watched.runs_since(("", 0, 0), is_another=False), timeout_s=120)
            for case in order:
                time.sleep(random.random() * _MAX_PAUSE_S)  # the kill comes at any moment
                yield _kill(processes, watched, case)
            gate.touch()
            assert client.wait(_JOB)["state"] == "finished"
        finally:
            client.close()
            leaders.close()
    assert committed(folder, _JOB) == batch_lines(folder, num_records), f"seed {seed}"


def _kill(processes: ClusterProcesses, watched: _Watched, case: str) -> Kill:
    before = watched.seen()
    names = [watched.used() if each == TASK_MANAGER else each for each in CASES[case]]
    roles = [each for each in CASES[case] if each != TASK_MANAGER]
    led = watched.leaderships(roles)
    since_s = time.monotonic()
    for name in names:
        processes.signal(name, signal.SIGKILL)
    is_another = CASES[case] != (RESOURCE_MANAGER,)
    until(lambda: all(new not in (None, *led) for new in watched.leaderships(roles)), timeout_s=300)
    until(lambda: watched.runs_since(before, is_another), timeout_s=300)
    return Kill(case, time.monotonic() - since_s)
