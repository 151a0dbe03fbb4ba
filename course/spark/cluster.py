"""`sluice cluster`: a Spark cluster on this machine, and the keys that processes of a cluster show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from course.spark import cluster_keys
from course.spark.standalone import ClusterError, Standalone, cluster_folder, find_cluster, start_cluster, stop_cluster
from course.waiting import Waiting

__all__ = ["add_arguments", "run"]

DEFAULT_PORT = 7077

_STARTED = """✓ {url} runs: {workers} workers with {cores} cores each, on this machine alone.

  export SLUICE_SPARK_MASTER={url}    # notebooks and commands use it from now on
  sluice run flights --on spark
  sluice cluster stop                                  # ends it"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice cluster`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    start = actions.add_parser(
        "start",
        help="start a Spark cluster on this machine",
        description="Start a standalone Spark cluster on this machine: a master and workers, each a process, on "
        "loopback. Its executors are processes too. It runs until `sluice cluster stop`. Only who has the secret made "
        "at its start can use it: a file that nobody but you can read, which commands and notebooks of yours find.",
        epilog="example: sluice cluster start --workers 2 --cores 1",
    )
    start.add_argument("--port", type=_number(1, 65_535), default=DEFAULT_PORT, help="of the master (%(default)s)")
    start.add_argument("--workers", type=_number(1, 64), default=2, metavar="N", help="how many (%(default)s)")
    start.add_argument("--cores", type=_number(1, 256), default=2, metavar="N", help="of each worker (%(default)s)")
    start.add_argument(
        "--memory", type=_number(512, 1 << 20), default=1024, metavar="MB", help="of each worker (%(default)s)"
    )
    start.set_defaults(act=_start)
    stop = actions.add_parser("stop", help="end it", description="End the cluster; nothing of it is left.")
    stop.set_defaults(act=_stop)
    status = actions.add_parser("status", help="say whether it runs", description="Say whether the cluster runs.")
    status.set_defaults(act=_status)
    cluster_keys.add_arguments(actions)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; the exit status is 0 if it is done or, for `status`, if the cluster runs."""
    act: int = arguments.act(arguments)
    return act


def _start(arguments: argparse.Namespace) -> int:
    try:
        with Waiting("starting the cluster"):
            cluster = start_cluster(
                cluster_folder(), arguments.port, arguments.workers, arguments.cores, arguments.memory
            )
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    print(_STARTED.format(url=cluster.url, workers=cluster.num_workers, cores=cluster.cores))
    return 0


def _stop(_arguments: argparse.Namespace) -> int:
    with Waiting("ending the cluster"):
        was_there = stop_cluster(cluster_folder())
    print("✓ the cluster has ended" if was_there else "no cluster runs")
    return 0


def _status(_arguments: argparse.Namespace) -> int:
    cluster = find_cluster(cluster_folder())
    if cluster is None:
        print("no cluster runs; `sluice cluster start` starts one")
        return 1
    print(_described(cluster))
    return 0 if cluster.is_running else 1


def _described(cluster: Standalone) -> str:
    running = [each for each in cluster.processes if each.running()]
    lines = [f"{'✓' if each in running else '✗'} {each.name}, process {each.id}" for each in cluster.processes]
    if len(running) == len(cluster.processes):
        said = f"{cluster.url} runs, {cluster.num_workers} workers with {cluster.cores} cores each"
    else:
        said = f"{cluster.url} does not run as a whole; `sluice cluster stop` clears it away"
    return "\n".join([said, *lines])


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(word: str) -> int:
        if word.isdecimal() and least <= int(word) <= most:
            return int(word)
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {least} to {most}")

    return read
