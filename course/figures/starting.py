"""The runs behind the figures of lesson 16: who says what until a task runs, and what becomes of losses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from course.data.losses import FAILURES, JOB, counted_airports, is_running, loss_run
from course.data.statistics import Figures
from refimpl.cluster import (
    AllocationFailed,
    AllocationId,
    AskForSlot,
    ExecutionState,
    JobState,
    ReleaseWorker,
    SlotId,
    SlotManager,
    SlotManagerDecision,
    SlotStatus,
    StartWorkers,
)
from refimpl.cluster.on_demand import OnDemand
from refimpl.config import Config
from refimpl.drivers.cluster_simulation import (
    ClusterSimulation,
    CrashMember,
    PauseMember,
    ResumeMember,
    job_master_of,
)
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader
from widgets import Recording
from widgets.cluster_model import what_is_seen

__all__ = [
    "counts_of_the_graph",
    "failure",
    "five_failures",
    "old_leader",
    "running_cluster",
    "slot_talk",
    "too_few_slots",
    "workers",
]

_SEED = 1
_SHORT = {"resource-manager": "ResourceManager", f"job-master of {JOB}": "JobMaster"}
_TALK = {
    "RegisterTaskManager": "registers",
    "RegisterJobMaster": "registers",
    "RequestSlot": "asks for a slot",
    "GiveSlot": "says: this slot is for that job",
    "OfferedSlots": "offers a slot",
    "AnswerOffer": "takes it",
    "SubmittedTask": "sends a task",
}


def _name(address: str) -> str:
    return _SHORT.get(address, address)


# -- until a task runs -----------------------------------------------------------------------------------------


def running_cluster() -> ClusterSimulation:
    """A cluster with a job that runs and has a checkpoint; it can be stepped, and its members killed."""
    run = loss_run(1, counted_airports(), _SEED)
    run.cluster.run(lambda cluster: is_running(cluster) and bool(cluster.snapshot().jobs[0].completed))
    return run.cluster


def slot_talk() -> Figures:
    """What is said until all tasks of a job are sent out, a line for each message that arrives; repeated ones once."""
    run, rows = loss_run(1, counted_airports(), _SEED), list[tuple[str, str, str]]()
    while not is_running(run.cluster):
        said = re.match(r"tell (\w+) to (.+) from (.+) at ", str(run.cluster.step()))
        if said is None or said[1] not in _TALK:
            continue
        row = (_name(said[3]), _name(said[2]), _TALK[said[1]])
        if row not in rows:
            rows.append(row)
    return Figures("until the tasks of a job run", ("from", "to", "what it says"), tuple(rows))


def workers() -> Figures:
    """What a ResourceManager decides that can have TaskManagers started: a new one, one that was kept, one too many."""
    manager, rows = SlotManager(OnDemand(slots_per_worker=2)), list[tuple[str, str, str]]()
    slots = [SlotId("tm-0", index) for index in range(2)]
    first, second = (AllocationId(JOB, 1, number) for number in (1, 2))

    def note(now_ms: float, what: str, decisions: Sequence[SlotManagerDecision]) -> None:
        told = "; ".join(map(_decision, decisions))
        rows.append((f"{now_ms / 1_000:.1f} s", what, told or "-"))

    note(0, "a JobMaster asks for a slot", manager.request(first, "job-master", 0))
    report = [SlotStatus(slot, None) for slot in slots]
    note(4_000, "tm-0 registers, with 2 slots", manager.register("tm-0", report, 4_000))
    note(4_100, "tm-0: slot 0 is given", manager.answered(slots[0], slots[0], first, 4_100))
    note(9_000, "a JobMaster asks for a slot", manager.request(second, "job-master", 9_000))
    note(9_100, "tm-0: slot 1 is given", manager.answered(slots[1], slots[1], second, 9_100))
    note(20_000, "tm-0: slot 0 is free", manager.slot_available(slots[0], first, 20_000))
    note(20_000, "tm-0: slot 1 is free", manager.slot_available(slots[1], second, 20_000))
    end_ms = manager.next_deadline
    assert end_ms is not None, "who is idle is released"
    note(end_ms, "nobody has asked for a slot since", manager.on_timeout(end_ms))
    return Figures("the ResourceManager, where TaskManagers can be started", ("at", "it hears", "it does"), tuple(rows))


def _decision(decision: SlotManagerDecision) -> str:
    match decision:
        case StartWorkers(number):
            return f"start {number} TaskManager"
        case AskForSlot(slot):
            return f"ask {slot.task_manager} to give slot {slot.index}"
        case ReleaseWorker(task_manager):
            return f"end {task_manager}"
        case AllocationFailed(_, _, why):
            return f"say no: {why}"
    return str(decision)


def counts_of_the_graph(parallelism: int = 4, num_task_managers: int = 2) -> Figures:
    """How many of each thing a JobMaster knows of a job of two steps, A and B, with an exchange by key between them."""
    environment = StreamEnvironment(Config(), parallelism)
    source = environment.source(lambda _subtask, _of: IterableReader(()), "A")
    source.key_by(lambda value: value).sink(bool, name="B")
    graph = environment.execution_graph(num_task_managers)
    readers = [each for each in graph.vertices if graph.inputs(each)]
    channels = [each for reader in readers for gate in graph.inputs(reader) for each in gate]
    parts = {each.partition_id for each in channels}
    remote = sum(each.is_remote for each in channels)
    rows = (
        ("step of the job", "JobVertex", len(graph.job.vertices)),
        ("task", "ExecutionVertex", len(graph.vertices)),
        ("slot, on 2 TaskManagers", "SharedSlot", graph.placement.num_slots),
        ("all that a step puts out", "IntermediateResult", len(graph.job.edges)),
        ("what one task puts out", "IntermediateResultPartition", len(parts)),
        (
            "queue for one reader",
            "ResultSubpartition",
            len({(each.partition_id, each.subpartition) for each in channels}),
        ),
        ("what one task reads", "InputGate", len(readers)),
        ("queue of one gate, and its way", "InputChannel, ExecutionEdge", len(channels)),
        ("of these over the network", "RemoteInputChannel", remote),
    )
    title = f"A and B with {parallelism} tasks each, and an exchange by key"
    return Figures(title, ("", "in Flink 1.11.4", "how many"), tuple((*names, str(number)) for *names, number in rows))


# -- losses ----------------------------------------------------------------------------------------------------


class _Film:
    """The moments of a cluster in which something else is seen than before."""

    def __init__(self) -> None:
        self.recording = Recording({})
        self._seen: object = None

    def add(self, cluster: ClusterSimulation, action: str) -> None:
        snapshot: Any = cluster.snapshot()  # of no job, and gone through like one
        if (seen := what_is_seen(snapshot)) != self._seen:
            self._seen = seen
            self.recording.add(snapshot, action)

    def show(self, cluster: ClusterSimulation, action: str) -> None:
        """One moment more, whatever is seen."""
        moment: Any = cluster.snapshot()
        self.recording.add(moment, action)


def failure(number: int) -> Recording:
    """A cluster from just before a failure on, until all of its job runs; for `ClusterView`.

    1 is a TaskManager, 2 the ResourceManager, 3 the JobMaster, 4 the last two, 5 the first two.
    """
    run, film = loss_run(number, counted_airports(), _SEED), _Film()
    run.go_through(lambda cluster, action: film.add(cluster, action) if run.lost else None)
    return film.recording


def old_leader() -> Recording:
    """A JobMaster that was paused and replaced, and goes on: it believes to lead, and is refused."""
    cluster, film, address = running_cluster(), _Film(), job_master_of(JOB)
    film.add(cluster, "start")

    def step(action: PauseMember | ResumeMember | None = None) -> None:
        film.add(cluster, str(cluster.step(action)))

    step(PauseMember(address))
    while cluster.members.alive[address].token.epoch < 2 or not is_running(cluster):
        step()
    step(ResumeMember(address))
    while not any(each.num_refused for each in cluster.snapshot().members):
        step()
    film.show(cluster, "refused")
    return film.recording


def five_failures() -> Figures:
    """What each failure costs: tasks that end, time until all run, what is counted again, what is lost."""
    airports, rows = counted_airports(), list[tuple[str, ...]]()
    for number, who in FAILURES.items():
        run = loss_run(number, airports, _SEED)
        run.go_through()
        run.finish()
        true, found = Counter(airports), Counter(run.counts)
        num_wrong = (true - found).total() + (found - true).total()
        ended = set(run.before) - set(run.after)
        again = f"{run.again_ms - run.lost_ms:.0f} ms" if ended else "-"
        kept = len({*run.before.values()} & {*run.after.values()})
        num_twice = str(run.num_counted - len(airports))
        rows.append(
            (str(number), who, f"{len(ended)} of {len(run.before)}", again, f"{kept} of 2", num_twice, str(num_wrong))
        )
    heads = (
        "",
        "who is lost",
        "tasks that end",
        "until all run",
        "slots kept",
        "counted again",
        "lost, or in it twice",
    )
    return Figures(f"{len(airports)} flights counted through five failures", heads, tuple(rows))


def too_few_slots() -> Figures:
    """What a job comes to that needs two slots where one is left: a line for each state of it."""
    run = loss_run(1, counted_airports(), _SEED)
    cluster = run.cluster
    cluster.run(is_running)
    job_master, lost_ms = cluster.job_master(JOB), cluster.time_ms
    assert job_master is not None, "nobody has killed it"
    status = job_master.scheduler.status
    for address in ("tm-0", "tm-1"):
        cluster.step(CrashMember(address))
    cluster.run(lambda each: ExecutionState.SCHEDULED in _task_states(each))
    tasks = _task_states(cluster)
    num_waiting = tasks.count(ExecutionState.SCHEDULED)
    cluster.run(lambda _: sum(state is JobState.RESTARTING for state, _ in status.history) == 2)
    waits = {JobState.RUNNING: f", and {num_waiting} of its {len(tasks)} tasks wait for a slot"}
    rows = [
        (f"{max(0.0, at_ms - lost_ms) / 1_000:.2f} s", state.value + waits.get(state, ""))
        for state, at_ms in status.history
        if at_ms >= lost_ms
    ]
    rows += [("", words) for words in (job_master.scheduler.failure or "").split("; ")]
    return Figures("a job of 2 slots, of which one is left", ("after the loss", "the job"), tuple(rows))


def _task_states(cluster: ClusterSimulation) -> list[ExecutionState]:
    """How the attempts of the only job stand."""
    (job,) = cluster.snapshot().jobs
    return [state for _, state in job.executions]
