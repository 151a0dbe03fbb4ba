"""Whose a slot is, step by step, on each of the three sides that speak of it: as the tables of Flink's 1.11.4 have it.

An allocation is `JOB/EPOCH.NUMBER`, a slot `TASKMANAGER[INDEX]`. A case has a `side` and `steps`. Each step is an `op`
`at` a time in ms, with what the op needs, and says which `decisions` follow, in order, and what is `then`.

    task_manager       of `num_slots` slots with tickets of `ticket_ms`, named `tm`
        request        `slot` (its index) for `allocation`; `answer` is [slot, allocation]
        found, lost    the JobMaster of `job`
        answered       `accepted` and `rejected` allocations, of what was offered
        free           `allocation`
        known          of `job` those are known: `allocations`; `grace_ms`
        task           `task` comes into the slot of `allocation`; `is_taken` says whether it may
        gone           `task`
        time           passes
        decisions      ["offer", job, [[allocation, slot], …]], ["available", slot, allocation], ["fail", [task, …]]
        then           [state, allocation or null] of each slot; FREE, ALLOCATED, ACTIVE, RELEASING

    job_master         of `job` under `epoch`, patient for `request_timeout_ms` and `idle_timeout_ms`
        request        for `wish`, which had `before`, near the TaskManagers `near`
        cancel         `wish`
        release        `allocation`
        rm_found, rm_lost                       the ResourceManager
        failed         `allocation`
        tm_found, tm_lost                       the TaskManager `tm`
        there          has `tm` those `allocations`
        offer          `tm` offers `offers`, [[allocation, slot], …]; `accepted`, `rejected`
        time, close, suspend
        decisions      ["ask", allocation], ["cancel", allocation], ["assign", wish, allocation, slot], ["none", wish],
                       ["return", allocation, slot], ["lost", [allocation, …]]
        then           {"slots": [[allocation, slot, wish or null], …], "waiting": [[wish, allocation], …]}

    resource_manager   with `slots_per_worker`, patient for `request_timeout_ms` and `idle_timeout_ms`
        request        `allocation` for `job_master`
        cancel         `allocation`
        wishes         of `job_master` are `allocations`
        jm_gone        `job_master`
        register, report                        `tm` has `report`, [[slot, allocation or null], …]
        answered       for `asked` that `slot` is that of `allocation`
        available      is `slot`, which `allocation` had
        tm_gone        `tm`
        workers_lost   `number`
        time           passes
        decisions      ["ask", slot, allocation, job_master], ["fail", job_master, allocation], ["start", number],
                       ["release", tm]
        then           {"slots": [[slot, state, allocation or null], …], "waiting": [allocation, …]}; FREE, PENDING,
                       ALLOCATED

A step with `is_refused` is a mistake of the caller, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from refimpl.cluster import (
    AllocationFailed,
    AllocationId,
    AskForSlot,
    AskResourceManager,
    CancelSlotRequest,
    FailTasks,
    NoSlot,
    OfferSlots,
    OnDemand,
    ReleaseWorker,
    ReturnSlot,
    SlotAssigned,
    SlotAvailable,
    SlotId,
    SlotManager,
    SlotPool,
    SlotsLost,
    SlotStatus,
    SlotTable,
    StartWorkers,
)
from refimpl.errors import LocalUsageError

TOPIC = "slots"
BY_VERSION = False


def allocation_of(text: str) -> AllocationId:
    job, _slash, numbers = text.rpartition("/")
    epoch, _dot, number = numbers.partition(".")
    return AllocationId(job, int(epoch), int(number))


def allocations_of(texts: Sequence[str]) -> list[AllocationId]:
    return [allocation_of(each) for each in texts]


def slot_of(text: str) -> SlotId:
    found = re.fullmatch(r"(.+)\[(\d+)\]", text)
    assert found is not None, f"{text} is no slot"
    return SlotId(found[1], int(found[2]))


def statuses_of(report: Sequence[tuple[str, str | None]]) -> list[SlotStatus]:
    return [SlotStatus(slot_of(slot), None if each is None else allocation_of(each)) for slot, each in report]


def told(value: object) -> str | None:
    return None if value is None else str(value)


def shown(decision: object) -> list[Any]:
    """A decision as it stands in a file."""
    match decision:
        case OfferSlots(job, offers):
            return ["offer", job, [[str(allocation), str(slot)] for allocation, slot in offers]]
        case SlotAvailable(slot, allocation):
            return ["available", str(slot), str(allocation)]
        case FailTasks(tasks):
            return ["fail", list(tasks)]
        case AskResourceManager(allocation):
            return ["ask", str(allocation)]
        case CancelSlotRequest(allocation):
            return ["cancel", str(allocation)]
        case SlotAssigned(wish, allocation, slot):
            return ["assign", wish, str(allocation), str(slot)]
        case NoSlot(wish):
            return ["none", wish]
        case ReturnSlot(allocation, slot):
            return ["return", str(allocation), str(slot)]
        case SlotsLost(allocations):
            return ["lost", [str(each) for each in allocations]]
        case AskForSlot(slot, allocation, job_master):
            return ["ask", str(slot), str(allocation), job_master]
        case AllocationFailed(job_master, allocation):
            return ["fail", job_master, str(allocation)]
        case StartWorkers(number):
            return ["start", number]
        case ReleaseWorker(task_manager):
            return ["release", task_manager]
    raise AssertionError(f"no file has {decision}")


Side = tuple[Callable[[dict[str, Any]], tuple[Sequence[object], dict[str, Any]]], Callable[[], Any]]
"""Does a step, with the decisions and what else came of it; and tells what is then."""


def unknown(step: dict[str, Any]) -> Any:
    pytest.skip(f"operation {step['op']} is not described in the format")


def task_manager(case: dict[str, Any]) -> Side:
    table = SlotTable("tm", case["num_slots"], case["ticket_ms"])

    def do(step: dict[str, Any]) -> tuple[Sequence[object], dict[str, Any]]:
        now_ms = step["at"]
        match step["op"]:
            case "request":
                answer, decisions = table.request(step["slot"], allocation_of(step["allocation"]), now_ms)
                return decisions, {"answer": [str(answer.slot), str(answer.allocation)]}
            case "found":
                return table.job_master_found(step["job"], now_ms), {}
            case "lost":
                return table.job_master_lost(step["job"], "lost", now_ms), {}
            case "answered":
                accepted, rejected = allocations_of(step["accepted"]), allocations_of(step["rejected"])
                return table.offer_answered(accepted, rejected, now_ms), {}
            case "free":
                return table.free(allocation_of(step["allocation"]), "freed"), {}
            case "known":
                return table.reconcile(step["job"], allocations_of(step["allocations"]), now_ms, step["grace_ms"]), {}
            case "task":
                return [], {"is_taken": table.add_task(allocation_of(step["allocation"]), step["task"])}
            case "gone":
                return table.task_gone(step["task"]), {}
            case "time":
                return table.on_timeout(now_ms), {}
        return unknown(step)

    def then() -> Any:
        return [[table.state_of(each.slot.index).name, told(each.allocation)] for each in table.report()]

    return do, then


def job_master(case: dict[str, Any]) -> Side:
    pool = SlotPool(case["job"], case["epoch"], case["request_timeout_ms"], case["idle_timeout_ms"])

    def offer(step: dict[str, Any]) -> tuple[Sequence[object], dict[str, Any]]:
        offers = [(allocation_of(allocation), slot_of(slot)) for allocation, slot in step["offers"]]
        answer, decisions = pool.offer(step["tm"], offers, step["at"])
        accepted, rejected = [[str(each) for each in side] for side in (answer.accepted, answer.rejected)]
        return decisions, {"accepted": accepted, "rejected": rejected}

    def tell(step: dict[str, Any]) -> Sequence[object]:
        match step["op"]:
            case "rm_lost":
                pool.resource_manager_lost()
            case "tm_found":
                pool.task_manager_found(step["tm"])
            case "suspend":
                pool.suspend()
            case _:
                return unknown(step)
        return []

    def do(step: dict[str, Any]) -> tuple[Sequence[object], dict[str, Any]]:
        now_ms = step["at"]
        match step["op"]:
            case "request":
                before = step.get("before")
                before_id = None if before is None else allocation_of(before)
                return pool.request(step["wish"], now_ms, before_id, step.get("near", ())), {}
            case "cancel":
                return pool.cancel(step["wish"]), {}
            case "release":
                return pool.release(allocation_of(step["allocation"]), now_ms), {}
            case "rm_found":
                return pool.resource_manager_found(), {}
            case "failed":
                return pool.failed(allocation_of(step["allocation"]), "failed"), {}
            case "tm_lost":
                return pool.task_manager_lost(step["tm"], "lost"), {}
            case "there":
                return pool.reconcile(step["tm"], allocations_of(step["allocations"]), "gone"), {}
            case "offer":
                return offer(step)
            case "time":
                return pool.on_timeout(now_ms), {}
            case "close":
                return pool.close(), {}
        return tell(step), {}

    def then() -> Any:
        slots = [[str(each.allocation), str(each.slot), each.wish] for each in pool.slots]
        return {"slots": slots, "waiting": [[wish, str(each)] for wish, each in pool.waiting.items()]}

    return do, then


def resource_manager(case: dict[str, Any]) -> Side:
    manager = SlotManager(OnDemand(case["slots_per_worker"], case["idle_timeout_ms"]), case["request_timeout_ms"])

    def decide(step: dict[str, Any]) -> Sequence[object]:
        now_ms = step["at"]
        match step["op"]:
            case "request":
                return manager.request(allocation_of(step["allocation"]), step["job_master"], now_ms)
            case "cancel":
                return manager.cancel(allocation_of(step["allocation"]), now_ms)
            case "wishes":
                return manager.wishes_are(allocations_of(step["allocations"]), step["job_master"], now_ms)
            case "jm_gone":
                return manager.job_master_gone(step["job_master"], now_ms)
            case "register":
                return manager.register(step["tm"], statuses_of(step["report"]), now_ms)
            case "report":
                return manager.report(step["tm"], statuses_of(step["report"]), now_ms)
            case "answered":
                asked, slot = slot_of(step["asked"]), slot_of(step["slot"])
                return manager.answered(asked, slot, allocation_of(step["allocation"]), now_ms)
            case "available":
                return manager.slot_available(slot_of(step["slot"]), allocation_of(step["allocation"]), now_ms)
            case "tm_gone":
                return manager.task_manager_gone(step["tm"], "gone", now_ms)
            case "workers_lost":
                return manager.workers_lost(step["number"], now_ms)
            case "time":
                return manager.on_timeout(now_ms)
        return unknown(step)

    def then() -> Any:
        slots = [[str(status.slot), state.name, told(status.allocation)] for status, state in manager.slots()]
        return {"slots": slots, "waiting": [str(each) for each in manager.waiting]}

    return lambda step: (decide(step), {}), then


SIDES = {"task_manager": task_manager, "job_master": job_master, "resource_manager": resource_manager}


def test_a_slot_is_whose_the_tables_say(case: dict) -> None:
    if case["side"] not in SIDES:
        pytest.skip(f"side {case['side']} is not described in the format")
    do, then = SIDES[case["side"]](case)
    for number, step in enumerate(case["steps"]):
        place = f"step {number}: {step}"
        if step.get("is_refused"):
            with pytest.raises(LocalUsageError):
                do(step)
        else:
            decisions, came = do(step)
            assert [shown(each) for each in decisions] == step["decisions"], place
            assert came == {name: step[name] for name in came}, place
        assert then() == step["then"], place
