"""Sessions in which much happens: a part of what `make session` does."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil

from refimpl.drivers.cluster.mini_cluster import MiniCluster
from tests.session.kills import CASES, kills
from tests.session.many_jobs import ManyJobs
from tests.support.polling import until

SECONDS, SEED = 6.0, 1
"""Of `make session`'s 300 seconds, and one seed; on threads of this process, where the whole takes processes."""


def test_twenty_jobs_at_once_end_as_asked_and_leave_nothing(tmp_path: Path) -> None:
    threads, files = set(threading.enumerate()), psutil.Process().num_fds()
    with MiniCluster(tmp_path / "store", num_task_managers=3, num_slots=7) as cluster:
        client = cluster.client()
        jobs = ManyJobs(client, tmp_path, SEED)
        jobs.play(SECONDS)
        slots = cluster.free_slots
        until(lambda: slots() == 21)
        assert cluster.bugs == []
    assert sum(jobs.ends.values()) >= 20
    until(lambda: not [each for each in threading.enumerate() if each not in threads])
    until(lambda: psutil.Process().num_fds() <= files)
    left = {path.name.split("-")[0] for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert left == {"leader"}


def test_a_kill_is_timed_until_the_job_runs_as_before(tmp_path: Path) -> None:
    found = list(kills(tmp_path, ["TaskManager and ResourceManager"], rounds=1, seed=SEED, num_records=400))
    assert [each.case for each in found] == ["TaskManager and ResourceManager"]
    assert found[0].recovery_s > 0
    assert len(CASES) == 5
