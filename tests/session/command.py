"""The command line: which of it, for how long, and what came of it."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import psutil

from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_options import TASK_MANAGER, NodeOptions
from refimpl.drivers.cluster.rpc.service import RpcService
from tests.session.kills import CASES, kills
from tests.session.many_jobs import ManyJobs
from tests.support.polling import until

__all__ = ["main"]

WARM_UP_S = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; 0 if all was right. What was not is raised."""
    parser = argparse.ArgumentParser("python -m tests.session", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="kills of each of the five cases (20)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="of twenty jobs at once (300)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of whatever is drawn (1)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="sluice-session-") as folder:
        if arguments.rounds > 0:
            _kill(Path(folder), arguments.rounds, arguments.seed)
        if arguments.seconds > 0:
            (Path(folder) / "many").mkdir()
            _many(Path(folder) / "many", arguments.seconds, arguments.seed)
    return 0


def _kill(folder: Path, rounds: int, seed: int) -> None:
    """Print how long it took after each kill of a case: the quickest, the median and the slowest."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    print(
        f"{rounds} kills of each case, seed {seed}; seconds until all tasks run and a checkpoint is complete",
        flush=True,
    )
    for kill in kills(folder, list(CASES), rounds, seed, num_records=20_000):
        found[kill.case].append(kill.recovery_s)
        print(f"  {kill.case:<32} {kill.recovery_s:6.2f} s", flush=True)
    for case, seconds in found.items():
        least, most = min(seconds), max(seconds)
        print(f"{case:<34} {least:6.2f} … {statistics.median(seconds):6.2f} … {most:6.2f} s", flush=True)
    print("the output is that of the batch run", flush=True)


def _many(folder: Path, seconds: float, seed: int) -> None:
    """Print how many jobs ended how, and see that the processes are as they were before."""
    with ClusterProcesses(folder / "cluster", options=NodeOptions(TASK_MANAGER, num_slots=7)) as processes:
        processes.wait_until_up()
        leaders = StoredLeaders(processes.folder.leases)
        client = ClusterClient(RpcService(processes.folder.secret), leaders)
        try:
            jobs = ManyJobs(client, folder, seed)
            jobs.play(WARM_UP_S)  # then all have met
            before = _held(processes)
            print(f"twenty jobs at once for {seconds:.0f} s, seed {seed}", flush=True)
            jobs.play(seconds)
            try:
                until(lambda: all(after <= before[name] for name, after in _held(processes).items()))
            except AssertionError as error:
                raise AssertionError(f"threads and files, before {before}, after {_held(processes)}") from error
        finally:
            client.close()
            leaders.close()
    print(
        ", ".join(f"{number} {end}" for end, number in sorted(jobs.ends.items())), "- and nothing is left", flush=True
    )


def _held(processes: ClusterProcesses) -> dict[str, int]:
    """How many threads and open files each process has."""
    found = {name: psutil.Process(number) for name, number in processes.process_ids.items()}
    return {name: each.num_threads() + each.num_fds() for name, each in found.items()}
