"""`sluice engine`: clusters of our own engine, every part of which is a process; deployed in one of three ways.

session    start, submit, list, status, cancel, savepoint, stop: many jobs, one after the other or at once
per job    run: a cluster for one job, which ends with it
container  serve: one process, whose role is an argument; whoever starts containers starts and replaces them
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from course.compiled.choice import in_use
from course.engine.hosts import KEYS_ADVICE, add_hosts, hosts_of
from course.engine.jobs import id_for, job_of, lines_in
from course.engine.session import (
    EngineError,
    client_of,
    default_folder,
    engine_of,
    keep_running,
    start,
    stop,
    task_managers_of,
)
from course.engine.sizes import NUM_TASK_MANAGERS, add_on_demand, add_size, number_of, size_line, size_of
from course.exit_status import NOT_PASSED, PASSED, WRONG_USE
from course.jobs.job_files import JobError
from course.jobs.keeping import interval_ms
from course.spark import cluster_keys
from course.waiting import Waiting
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER
from refimpl.drivers.cluster.processes.cluster_processes import ClusterProcesses
from refimpl.drivers.cluster.processes.node_main import play_role
from refimpl.drivers.cluster.processes.node_options import ROLES, TASK_MANAGER, NodeOptions
from refimpl.drivers.regions import refuse_regions
from refimpl.drivers.successor import begin_with_savepoint
from refimpl.errors import LocalUsageError, SluiceError

__all__ = ["add_arguments", "run"]

_JOB = "FILE.py:FUNCTION or MODULE:FUNCTION, as for `sluice run` (default: the function `job`)"
_EXAMPLES = """example: sluice engine run course/example_job.py

session:   sluice engine start
           sluice engine start --on-demand 4 --idle 1min
           sluice engine submit course/example_job.py --wait
           sluice engine submit course/example_job.py --batch --wait
           sluice engine list
           sluice engine stop
per job:   sluice engine run course/example_job.py
container: sluice engine serve resource-manager --at DIR
           sluice engine serve task-manager --at DIR --slots 4
           sluice engine serve task-manager --at DIR --host 10.0.0.2 --tls KEYS
           sluice engine serve dispatcher --at DIR --job course/example_job.py --id reports

exit status: 0 done, or the job has finished; 1 the job has failed or was cancelled, or nobody answers; 2 wrong use;
130 interrupted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice engine`."""
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = _Adder(actions)
    started = add("start", _start, "start a cluster in the background: TaskManagers, a Dispatcher, a ResourceManager")
    add_size(started)
    add_on_demand(started)
    _add_failures(started)
    started.add_argument("--foreground", action="store_true", help="run it here, until Ctrl-C")
    submitted = add("submit", _submit, "let a job run on it; its results go into files, each once")
    _add_job(submitted)
    submitted.add_argument(
        "--restore",
        metavar="ID/NAME",
        help="begin with this savepoint of an earlier job; results go where that one's went, if --results says nothing",
    )
    submitted.add_argument("--wait", action="store_true", help="wait until it is over, and print the results")
    add("list", _list, "show all jobs")
    for name, act, what in (
        ("cancel", _cancel, "end a job, and wait until it has"),
        ("savepoint", _savepoint, "save a job's state under a name, for good"),
    ):
        add(name, act, what).add_argument("id", metavar="ID", help="the job's id, as `list` shows it")
    actions.choices["savepoint"].add_argument("name", metavar="NAME", help="the name of the savepoint")
    shown = add("status", _status, "show one job, or how many TaskManagers are there")
    shown.add_argument("id", metavar="ID", nargs="?", help="the job's id, as `list` shows it (default: the cluster)")
    cluster_keys.add_arguments(actions, "sluice engine keys ~/sluice-keys", KEYS_ADVICE)
    add("stop", _stop, "end the cluster; jobs that run go on when it is started again")
    alone = add("run", _run_alone, "start a cluster for one job, and end it with the job", at=False)
    _add_job(alone)
    add_size(alone)
    _add_failures(alone)
    served = add("serve", _serve, "be one part of a cluster, here, until Ctrl-C or SIGTERM")
    served.add_argument("role", metavar="ROLE", choices=ROLES, help=", ".join(ROLES))
    served.add_argument("--name", default="", help="of a TaskManager (default: one that no other has)")
    served.add_argument(
        "--slots", type=number_of(1, 256), default=2, metavar="N", help="of a TaskManager (%(default)s)"
    )
    served.add_argument(
        "--job", metavar="JOB", help="of the dispatcher: the one job of the cluster, which ends with it"
    )
    served.add_argument("--id", metavar="ID", help="of that job: with the same one another container goes on with it")
    served.add_argument("--results", type=Path, metavar="DIR", help="of that job (default: results/ID in the folder)")
    _add_batch(served)
    _add_failures(served)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    try:
        act: Callable[[argparse.Namespace], int] = arguments.act
        return act(arguments)
    except (JobError, LocalUsageError) as error:
        print(error, file=sys.stderr)
        return WRONG_USE
    except (EngineError, SluiceError) as error:
        print(error, file=sys.stderr)
        return NOT_PASSED


class _Adder:
    """Adds actions."""

    def __init__(self, actions: Any) -> None:
        self._actions = actions

    def __call__(
        self, name: str, act: Callable[[argparse.Namespace], int], what: str, *, at: bool = True
    ) -> argparse.ArgumentParser:
        description = f"{what[0].upper()}{what[1:]}."
        added: argparse.ArgumentParser = self._actions.add_parser(name, help=what, description=description)
        if at:
            said = "the cluster's folder; who may read it may use the cluster (default: engine in .course)"
            added.add_argument("--at", type=Path, metavar="DIR", help=said)
            if name != "stop":
                add_hosts(added)
        if name not in ("start", "stop", "serve"):
            added.add_argument("--json", action="store_true", help="the same for a program")
        added.set_defaults(act=act)
        return added


def _add_failures(parser: argparse.ArgumentParser) -> None:
    """What a cluster does about losses; all processes of one should be given the same."""
    group = parser.add_argument_group("losses")
    for option, metavar, default, what in (
        ("--restarts", "N", "10", "how often a job begins again before it fails"),
        ("--restart-delay", "TIME", "500ms", "how long after a failure"),
        ("--heartbeat", "TIME", "10s", "how often the parts ask each other whether they live"),
        ("--heartbeat-timeout", "TIME", "50s", "after which silence a part counts as lost"),
    ):
        group.add_argument(option, metavar=metavar, default=default, help=f"{what} (%(default)s)")


def _options(arguments: argparse.Namespace, role: str = TASK_MANAGER, name: str = "") -> NodeOptions:
    """How a process plays its role.

    Raises:
        JobError, LocalUsageError: a number or a time cannot be.
    """
    restarts = arguments.restarts
    if not restarts.isdecimal():
        raise LocalUsageError(f"--restarts {restarts!r} is no whole number from 0")
    options = NodeOptions(
        role,
        name,
        arguments.slots,
        max_restarts=int(restarts),
        restart_delay_ms=interval_ms(arguments.restart_delay, "--restart-delay"),
        heartbeat_interval_ms=interval_ms(arguments.heartbeat, "--heartbeat"),
        heartbeat_timeout_ms=interval_ms(arguments.heartbeat_timeout, "--heartbeat-timeout"),
        **(hosts_of(arguments) if "host" in arguments else {}),
    )
    options.heartbeat.watching(asks=True)  # refuses times that do not go together
    return options


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help=_JOB)
    parser.add_argument("--id", metavar="ID", help="what it is called (default: its file's name and something)")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where its results go (default: in the folder)")
    parser.add_argument(
        "--every", metavar="TIME", help="between checkpoints: 500ms, 1s, 2min (default: as it says, or 1s)"
    )
    _add_batch(parser)


def _add_batch(parser: argparse.ArgumentParser) -> None:
    said = "run it region by region, in the slots there are: each result is complete before it is read; no checkpoints"
    parser.add_argument("--batch", action="store_true", help=said)


# -- session -------------------------------------------------------------------------------------------


def _start(arguments: argparse.Namespace) -> int:
    folder, slots = _folder(arguments), arguments.slots
    num, on_demand = size_of(arguments)
    options = replace(_options(arguments), **on_demand)
    if arguments.foreground:
        keep_running(folder, num, options)
    sizes = ("task_managers", "on_demand", "idle", "slots")
    given = (*sizes, "host", "restarts", "restart_delay", "heartbeat", "heartbeat_timeout")
    values = {name: getattr(arguments, name) for name in given}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]
    if options.keys is not None:
        words.append(f"--tls={options.keys}")
    with Waiting("starting the cluster"):
        start(folder, words)
    size = f"{num} TaskManagers" if num else f"up to {arguments.on_demand} TaskManagers on demand"
    engine = "the compiled engine" if engine_of(folder) == "compiled" else "the engine's source"
    print(f"✓ a cluster of {size} with {slots} slots each runs {engine}; `sluice engine stop` ends it")
    return PASSED


def _stop(arguments: argparse.Namespace) -> int:
    with Waiting("ending the cluster"):
        was_there = stop(_folder(arguments))
    print("✓ the cluster has ended" if was_there else "no cluster runs")
    return PASSED


def _submit(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments)
    with _client(arguments) as client:
        job_id = arguments.id or id_for(arguments.job)
        before, name = _savepoint_of(arguments.restore)
        results = arguments.results or folder / "results" / (before or job_id)
        environment = job_of(arguments.job, results, arguments.every, is_batch=arguments.batch)
        if before:
            refuse_regions(environment.execution_graph(), "it keeps nothing to begin with, so leave --restore out")
            if job_id in (each["job"] for each in client.jobs()):
                raise LocalUsageError(f"there is a job {job_id} already; submit it under another id")
            store = ClusterFolder(folder).store
            begin_with_savepoint(store, job_id, environment.execution_graph(), before, name)
        client.submit(job_id, environment)
        if arguments.wait:
            return _wait_for(client, job_id, results, arguments.json, engine_of(folder))
        shown = {"job": job_id, "results": str(results)}
        print(json.dumps(shown) if arguments.json else f"✓ job {job_id} is submitted; its results: {results}")
    return PASSED


def _savepoint_of(words: str | None) -> tuple[str, str]:
    """The job and the name in `--restore ID/NAME`; nothing if there is none.

    Raises:
        LocalUsageError: it is something else.
    """
    job_id, _slash, name = (words or "").rpartition("/")
    if words is not None and not (job_id and name):
        raise LocalUsageError(f"--restore {words!r} names no savepoint; write ID/NAME, such as counts-1a2b3c/friday")
    return job_id, name


def _list(arguments: argparse.Namespace) -> int:
    with _client(arguments) as client:
        jobs = client.jobs()
    if arguments.json:
        print(json.dumps(jobs))
    else:
        print("\n".join(map(_line, jobs)) or "no jobs; `sluice engine submit JOB` brings one")
        print(size_line(task_managers_of(_folder(arguments))))
    return PASSED


def _status(arguments: argparse.Namespace) -> int:
    if arguments.id is None:
        names, engine = task_managers_of(_folder(arguments)), engine_of(_folder(arguments))
        print(json.dumps({"task_managers": names, "engine": engine}) if arguments.json else size_line(names))
        return PASSED
    with _client(arguments) as client:
        _show(client.status(arguments.id), arguments.json)
    return PASSED


def _cancel(arguments: argparse.Namespace) -> int:
    with _client(arguments) as client:
        shown = client.cancel(arguments.id)
        _show(shown, arguments.json)
    return PASSED


def _savepoint(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments)
    with _client(arguments) as client:
        client.savepoint(arguments.id, arguments.name)
    shown = {"job": arguments.id, "savepoint": arguments.name, "store": str(folder / "checkpoints")}
    said = (
        f"✓ savepoint {arguments.name} of {arguments.id} is there: `sluice checkpoints list {folder / 'checkpoints'}`"
    )
    print(json.dumps(shown) if arguments.json else said)
    return PASSED


# -- per job -------------------------------------------------------------------------------------------


def _run_alone(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="sluice-engine-") as temporary:
        folder = Path(temporary) / "cluster"
        job_id = arguments.id or id_for(arguments.job)
        results = arguments.results or Path(temporary) / "results"
        environment = job_of(arguments.job, results, arguments.every, is_batch=arguments.batch)
        options = _options(arguments)
        with (
            Waiting("starting the cluster") as waiting,
            ClusterProcesses(folder, arguments.task_managers or NUM_TASK_MANAGERS, options) as processes,
        ):
            processes.wait_until_up()
            waiting.now(f"running {job_id}")
            with client_of(folder) as client:
                client.submit(job_id, environment)
                return _wait_for(
                    client, job_id, results, arguments.json, in_use(), is_kept=arguments.results is not None
                )


def _wait_for(
    client: ClusterClient, job_id: str, results: Path, is_json: bool, engine: str | None, *, is_kept: bool = True
) -> int:
    """Wait for the end of a job, show its results, and say how it has ended, and for a program which engine ran it."""
    shown = client.wait(job_id)
    lines = lines_in(results)
    if is_json:
        where = {"results": str(results)} if is_kept else {}
        print(json.dumps({**shown, "num_results": len(lines), "engine": engine, **where}))
    else:
        print("\n".join(lines), end="\n" if lines else "")
        print(_line(shown), file=sys.stderr)
    return PASSED if shown["state"] == "finished" else NOT_PASSED


# -- container -----------------------------------------------------------------------------------------


def _serve(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments)
    if arguments.job is not None and (arguments.role != DISPATCHER or arguments.id is None):
        raise LocalUsageError("--job is for the role dispatcher, and needs an --id that stays the same")
    ClusterFolder.make(folder)
    options = _options(arguments, arguments.role, arguments.name)
    if arguments.job is None:
        return play_role(folder, options)
    results = arguments.results or folder / "results" / arguments.id
    environment = job_of(arguments.job, results, is_batch=arguments.batch)
    ends: list[dict[str, Any]] = []

    def see_to_the_job(end: Callable[[], None]) -> None:
        with _client(arguments) as client:
            with suppress(LocalUsageError):  # it is there already: another container has brought it
                client.submit(arguments.id, environment)
            ends.append(client.wait(arguments.id))
        end()

    def begin(end: Callable[[], None]) -> None:
        threading.Thread(target=see_to_the_job, args=(end,), name="the job", daemon=True).start()

    status = play_role(folder, options, begin=begin)
    if not ends:
        return status
    print(_line(ends[0]), file=sys.stderr)
    return PASSED if ends[0]["state"] == "finished" else NOT_PASSED


# -- words ---------------------------------------------------------------------------------------------


def _folder(arguments: argparse.Namespace) -> Path:
    given: Path | None = arguments.at
    return (default_folder() if given is None else given).absolute()


def _client(arguments: argparse.Namespace) -> AbstractContextManager[ClusterClient]:
    hosts = hosts_of(arguments)
    return client_of(_folder(arguments), hosts["host"], hosts["keys"])


def _show(shown: dict[str, Any], is_json: bool) -> None:
    print(json.dumps(shown) if is_json else _line(shown))


def _line(shown: dict[str, Any]) -> str:
    """A job on one line."""
    said = f"{shown['job']}  {shown['state']}"
    if "tasks" in shown:
        said += f", {shown['running']} of {shown['tasks']} tasks run, {shown['checkpoints']} checkpoints"
        said += f", {shown['restarts']} restarts" if shown["restarts"] else ""
    return f"{said}: {shown['why']}" if shown.get("why") else said
