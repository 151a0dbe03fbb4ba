"""What a picture shows of a whole cluster, as plain data."""

from __future__ import annotations

from collections import Counter

from refimpl.cluster import (
    ClusterSnapshot,
    JobInCluster,
    JobState,
    MemberKind,
    MemberSnapshot,
    MemberState,
    PeerLink,
    SlotSnapshot,
    SlotState,
)
from refimpl.errors import LocalUsageError
from widgets.view_models import Model

__all__ = ["LEADERS", "cluster_model", "known_of_cluster", "what_is_seen"]

LEADERS = ("dispatcher", "resource-manager")
"""The addresses at which there is always somebody, or will be."""

_NO_SLOTS = 0


def known_of_cluster(snapshot: ClusterSnapshot) -> Model:
    """What never changes: the TaskManagers, and how many slots each has.

    Raises:
        LocalUsageError: it is no snapshot of a cluster.
    """
    if not isinstance(snapshot, ClusterSnapshot):
        raise LocalUsageError(f"a {type(snapshot).__name__} is no moment of a cluster; give a ClusterSnapshot")
    found = {each.address: len(each.slots) for each in snapshot.members if each.kind is MemberKind.TASK_MANAGER}
    most = max(found.values(), default=_NO_SLOTS)  # one that is gone shows none, and comes back with as many
    return {"task_managers": [{"address": each, "num_slots": found[each] or most} for each in sorted(found)]}


def what_is_seen(snapshot: ClusterSnapshot) -> object:
    """What has to change for a moment to be another: who is there, whose slots are, how jobs are."""
    members = [(each.address, each.state, each.epoch, each.is_current) for each in snapshot.members]
    slots = [(each.slot, each.state, each.executions) for member in snapshot.members for each in member.slots]
    links = [
        (each.address, [(link.address, link.epoch, link.state) for link in each.links]) for each in snapshot.members
    ]
    jobs = [(each.job_id, each.state, each.epoch, each.completed) for each in snapshot.jobs]
    return members, slots, links, jobs, snapshot.vacant


def cluster_model(snapshot: ClusterSnapshot, action: str, known: Model) -> Model:
    """The cluster at one moment; `action` led there."""
    known_of_cluster(snapshot)
    now = {each.address: each for each in snapshot.members if each.is_current}
    leads = {each.job_id: each for each in snapshot.members if each.is_current and each.job_id is not None}
    managers = [(each["address"], each["num_slots"]) for each in known["task_managers"]]
    return {
        "kind": "cluster",
        "action": action,
        "num_steps": snapshot.num_steps,
        "time_ms": round(snapshot.time_ms, 3),
        "num_messages": snapshot.num_messages,
        "leaders": [_member(each, now.get(each), snapshot) for each in LEADERS],
        "task_managers": [
            {**_member(address, now.get(address), snapshot), "slots": _slots(now.get(address), num)}
            for address, num in managers
        ],
        "jobs": [_job(each, leads.get(each.job_id), snapshot) for each in snapshot.jobs],
        "former": [_member(each.address, each, snapshot) for each in snapshot.members if not each.is_current],
    }


def _member(address: str, member: MemberSnapshot | None, snapshot: ClusterSnapshot) -> Model:
    is_there = member is not None and member.state is not MemberState.GONE
    if member is not None and is_there:
        state = "zombie" if member.state is MemberState.ZOMBIE else member.state.value
    else:
        state = "vacant" if address in snapshot.vacant else "gone"
    return {
        "address": address,
        "state": state,
        "epoch": member.epoch if member is not None and is_there else None,
        "is_replaced": address in snapshot.vacant,
        "links": [] if member is None else [_link(each) for each in member.links],
        "num_refused": 0 if member is None else member.num_refused,
        "refusal": "" if member is None else member.refusal,
    }


def _link(link: PeerLink) -> Model:
    silent_ms = None if link.silent_ms is None else round(link.silent_ms, 3)
    state = "registered here" if link.state is None else link.state.value
    return {"address": link.address, "epoch": link.epoch, "state": state, "silent_ms": silent_ms}


def _slots(member: MemberSnapshot | None, num_slots: int) -> list[Model]:
    """Its slots; those of one that is gone are gone with it."""
    shown = {each.slot.index: each for each in member.slots} if member is not None else {}
    return [_slot(number, shown.get(number)) for number in range(num_slots)]


def _slot(number: int, slot: SlotSnapshot | None) -> Model:
    state = "gone" if slot is None else _SLOT_STATES[slot.state]
    allocation = None if slot is None else slot.allocation
    executions = () if slot is None else slot.executions
    return {
        "slot": number,
        "state": state,
        "job": "" if allocation is None else allocation.job_id,
        "tasks": [
            {"vertex": each.vertex, "subtask": each.subtask, "attempt": each.attempt, "epoch": each.epoch}
            for each in executions
        ],
    }


_SLOT_STATES = {
    SlotState.FREE: "free",
    SlotState.ALLOCATED: "given",
    SlotState.ACTIVE: "used",
    SlotState.RELEASING: "releasing",
}


def _job(job: JobInCluster, leader: MemberSnapshot | None, snapshot: ClusterSnapshot) -> Model:
    counts = Counter(state.value for _, state in job.executions)
    address = f"job-master of {job.job_id}"
    return {
        "job": job.job_id,
        "state": job.state.value,
        "is_over": job.state.is_terminal and job.state is not JobState.SUSPENDED,
        "master": _member(address, leader, snapshot),
        "executions": [{"state": state, "num_attempts": counts[state]} for state in sorted(counts)],
        "attempt": max((each.attempt for each, _ in job.executions), default=None),
        "completed": [{"checkpoint": each} for each in job.completed],
        "failure": job.failure or "",
    }
