"""The command line: which runs, and what became of them."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from course.waiting import Waiting
from tests.chaos.judge import Verdict, judged, shrunk
from tests.chaos.plan import CONTROL, MODES, FaultKind, Plan, PlannedFault, drawn, drawn_on_processes, parsed

__all__ = ["main", "sweep"]

STORE = "store:"
SWEPT: Sequence[tuple[str, tuple[FaultKind, ...]]] = (
    (CONTROL, (FaultKind.CRASH,)),
    (CONTROL, (FaultKind.KILL_LEADER,)),
    (CONTROL, (FaultKind.KILL_TASKMANAGER,)),
    (STORE, (FaultKind.PUT_FAILS,)),
    (STORE, (FaultKind.PUT_FULL,)),
    (STORE, (FaultKind.PUT_UNANSWERED,)),
    (STORE, (FaultKind.DELETE_FAILS,)),
    (STORE, (FaultKind.GET_FAILS, FaultKind.CRASH)),
    (STORE, (FaultKind.LIST_FAILS, FaultKind.CRASH)),
    (STORE, (FaultKind.PUT_FAILS, FaultKind.KILL_LEADER)),
)
"""What strikes behind steps with a mark. A store is only read when a job, or another leader, begins."""

SWEPT_PLAN = Plan(0, (), 12, is_exact=True, num_task_managers=2, delay_ms=0.0, control_delay_ms=0.3)
MAX_SHRINKING_S = 120.0

DESCRIPTION = """\
A job with windows, timers, two inputs and files that are committed in two phases, under faults that a seed has drawn:
TaskManagers and leaders that are killed or paused, connections cut, messages lost, a store that fails, lies or is
damaged. Each run must commit what the batch run gives, and keep every law after every step. Where the sink is slow,
unaligned checkpoints must be complete where aligned ones take too long. Then real processes, which are killed and
stopped, and whose connections a proxy cuts.
"""
EPILOG = """\
A run that goes wrong is made small, and the command that repeats it is printed.
Exit status: 0 all was right, 1 something was not, 2 wrong use.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="make chaos ARGS='…'" if "MAKELEVEL" in os.environ else "python -m tests.chaos",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--seeds", type=int, default=200, metavar="N", help="how many runs (200), and then the sweep")
    made.add_argument("--first", type=int, default=0, metavar="N", help="the first of their seeds (0)")
    made.add_argument(
        "--no-sweep",
        action="store_true",
        help="leave out the faults behind each control step and call of the store of one job",
    )
    made.add_argument("--processes", type=int, default=20, metavar="N", help="how many runs with real processes (20)")
    made.add_argument("--seed", type=int, metavar="N", help="one run, and all that is said of it")
    one = made.add_argument_group("with --seed, instead of what the seed has drawn")
    one.add_argument("--on", choices=("simulation", "processes"), default="simulation", help="where it runs")
    one.add_argument("--faults", metavar="F,…", help=f"as in {PlannedFault(FaultKind.KILL_TASKMANAGER, 1, 30, 12.5)}")
    one.add_argument("--records", type=int, metavar="N", help="how many records each source has")
    one.add_argument("--mode", choices=MODES, help="how barriers are aligned")
    one.add_argument("--sink-ms", type=float, metavar="MS", help="how long the sink takes for a record; 0: no time")
    one.add_argument("--delays", metavar="D,C", help="ms that data, and control messages, take at most")
    one.add_argument("--task-managers", type=int, metavar="N", help="how many there are")
    made.add_argument("--check-every", type=int, default=1, metavar="N", help="laws after each n-th step (1)")
    return made


def plan_of(asked: argparse.Namespace) -> Plan:
    """The one run that was asked for.

    Raises:
        ValueError: it is not said as it should be.
    """
    plan = drawn_on_processes(asked.seed) if asked.on == "processes" else drawn(asked.seed)
    if asked.faults is not None:
        plan = replace(plan, faults=parsed(asked.faults))
    if asked.records is not None:
        plan = replace(plan, num_records=asked.records)
    if asked.mode is not None:
        plan = plan.in_mode(asked.mode)
    if asked.sink_ms is not None:
        plan = replace(plan, sink_ms=asked.sink_ms)
    if asked.task_managers is not None:
        plan = replace(plan, num_task_managers=asked.task_managers)
    if asked.delays is not None:
        delay_ms, control_delay_ms = map(float, asked.delays.split(","))
        plan = replace(plan, delay_ms=delay_ms, control_delay_ms=control_delay_ms)
    return plan


def sweep(every: int = 1) -> Iterator[tuple[Plan, Verdict]]:
    """Faults behind each control step of one job, or each call of its store, of all steps each `every`th.

    With each plan comes what came of it.
    """
    for mark, kinds in SWEPT:
        for number in count(1, every):
            subject = number if mark == CONTROL else 0  # of a store: any key
            faults = tuple(PlannedFault(kind, subject, 1, mark=mark, number=number) for kind in kinds)
            plan = replace(SWEPT_PLAN, faults=faults)
            verdict = judged(plan)
            yield plan, verdict
            if verdict.fault is None and not verdict.has_struck:
                break  # the job was done before


def tell(plan: Plan, verdict: Verdict, check_every: int) -> None:
    """Say what went wrong, and how to see it again, as small as it is found soon."""
    print(f"{verdict.fault}\n{verdict.story}\n{plan}\n  is made small …", flush=True)
    until_s = time.monotonic() + MAX_SHRINKING_S

    def is_wrong(other: Plan) -> bool:
        return time.monotonic() < until_s and judged(other, check_every).fault == verdict.fault

    print(f"{shrunk(plan, is_wrong)}", flush=True)


def run_all(what: str, runs: Iterable[tuple[Plan, Verdict]], check_every: int, num_runs: int = 0) -> Counter[str]:
    """How many came to what; those that went wrong are told of, and the rest while they run."""
    counts = Counter[str]()
    of_all = f" of {num_runs}" if num_runs else ""
    with Waiting(f"{what} 1{of_all}") as waiting:
        for number, (plan, verdict) in enumerate(runs, 2):
            if verdict.fault is not None:
                counts["wrong"] += 1
                tell(plan, verdict, check_every)
            else:
                counts[verdict.how] += 1
                counts["lines too much at least once"] += verdict.surplus * (not plan.is_exact)
            waiting.now(f"{what} {number}{of_all}")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` ask for; return the exit status."""
    made = parser()
    asked = made.parse_args(arguments)
    if asked.seed is not None:
        try:
            plan = plan_of(asked)
        except ValueError as error:
            made.error(str(error))
        verdict = judged(plan, asked.check_every)
        print(f"{plan}\n{verdict.fault or verdict.how}: {verdict.story}")
        return verdict.fault is not None
    plans = map(drawn, range(asked.first, asked.first + asked.seeds))
    runs = ((plan, judged(plan, asked.check_every)) for plan in plans)
    counts = run_all("run", runs, asked.check_every, asked.seeds)
    if counts["at least once"] >= 10 and not counts["lines too much at least once"]:
        counts["wrong"] += 1
        print("at least once never gave a line too much: do these runs show the difference?")
    if not asked.no_sweep:
        counts += run_all("step", sweep(), 1)
    others = map(drawn_on_processes, range(asked.first, asked.first + asked.processes))
    on_processes = run_all("run on processes", ((plan, judged(plan)) for plan in others), 1, asked.processes)
    counts += Counter({f"{what} on processes": number for what, number in on_processes.items()})
    print(", ".join(f"{number} {what}" for what, number in sorted(counts.items())))
    return bool(counts["wrong"] or on_processes["wrong"])
