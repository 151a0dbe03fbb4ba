"""A cluster in words: each member, each slot, each job, as facts for the picture and as lines for the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from widgets.facts import Facts
from widgets.letters import fitting
from widgets.view_models import Model

__all__ = [
    "JOB_STATES",
    "MEMBER_STATES",
    "SLOT_STATES",
    "all_words",
    "former_words",
    "job_facts",
    "job_lines",
    "kept_words",
    "member_facts",
    "member_lines",
    "slot_facts",
    "slot_words",
    "trouble_words",
]

MEMBER_STATES = ("alive", "paused", "zombie", "vacant", "gone")
SLOT_STATES = ("free", "given", "used", "releasing", "gone")
JOB_STATES = ("running", "changing", "finished", "failed", "cancelled", "none")
_JOB_STATE = {"running": 0, "finished": 2, "failed": 3, "cancelled": 4}
_SIGN = {"alive": "▶", "paused": "○", "zombie": "▲", "vacant": "…", "gone": "✗"}
_HERE = "registered here"
_SLOT_WORDS = {
    "free": "free",
    "given": "given to {}",
    "used": "used by {}",
    "releasing": "waits for the last tasks of {}",
    "gone": "✗ gone with its TaskManager",
}


def member_facts(name: str, member: Model, room: float, noun: str) -> Facts:
    """The lamp of a member and what is said beside it; `noun` is what one of its times is called."""
    return {
        f"{name} state": MEMBER_STATES.index(member["state"]),
        f"{name} word": _member_words(member, noun),
        f"{name} leader": fitting(_leader_words(member), room, "small soft"),
        f"{name} links": fitting(_others_words(member), room, "small soft"),
        f"{name} fence": fitting(_refused_words(member), room, "small soft"),
        f"{name} why": member["refusal"],
    }


def member_lines(member: Model, noun: str) -> list[str]:
    """A member and all that it knows of others."""
    lines = [f"{member['address']}: {_member_words(member, noun)}"]
    lines += [f"    {_link_words(each)}" for each in member["links"]]
    return [*lines, *(f"    {words}" for words in [_fence_words(member)] if words)]


def slot_facts(name: str, slot: Model, room: float) -> Facts:
    """The lamp of a slot and what is in it."""
    return {
        f"{name} state": SLOT_STATES.index(slot["state"]),
        f"{name} word": fitting(slot_words(slot), room, "small"),
    }


def slot_words(slot: Model) -> str:
    """`slot 1: used by counts, 3 attempts (0.2 1.2 2.2)`: each by the numbers of its vertex and subtask."""
    words = f"slot {slot['slot']}: {_SLOT_WORDS[slot['state']].format(slot['job'])}"
    if not slot["tasks"]:
        return words
    attempts = sorted({each["attempt"] for each in slot["tasks"]})
    places = " ".join(f"{each['vertex']}.{each['subtask']}" for each in slot["tasks"])
    return f"{words}, attempt {' and '.join(map(str, attempts))} of {places}"


def job_facts(name: str, job: Model | None, room: float) -> Facts:
    """The lamp of a job and its lines; without a job there is nothing to see."""
    if job is None:
        words = ("name", "word", "tasks", "master", "links", "why")
        return {f"{name} state": JOB_STATES.index("none"), **{f"{name} {each}": "" for each in words}}
    return {
        f"{name} state": _JOB_STATE.get(job["state"], 1),
        f"{name} name": fitting(job["job"], room / 2, "name"),
        f"{name} word": fitting(_job_state_words(job), room / 2, "small"),
        f"{name} tasks": fitting(_task_words(job), room, "small soft"),
        f"{name} master": fitting(_master_words(job), room, "small soft"),
        f"{name} links": fitting(_master_links(job), room, "small soft"),
        f"{name} why": job["failure"],
    }


def job_lines(job: Model) -> list[str]:
    """A job, who leads it, its attempts and its checkpoints."""
    lines = [f"job {job['job']}: {_job_state_words(job)}", f"    {_task_words(job)}"]
    lines += [f"    {job['failure']}"] if job["failure"] else []
    if job["is_over"]:
        return lines
    return lines + [f"    {line}" for line in member_lines(job["master"], "epoch")]


def kept_words(model: Model) -> str:
    """What the Dispatcher keeps, whoever leads it."""
    going = sum(not each["is_over"] for each in model["jobs"])
    number = len(model["jobs"])
    return f"{number} job{'' if number == 1 else 's'} stored, {going} not over"


def all_words(model: Model) -> str:
    """`3 TaskManagers: 2 alive, 1 gone · 4 slots: 3 used, 1 free · 1 job: 1 running · 12 messages under way`."""
    slots = [slot["state"] for part in model["task_managers"] for slot in part["slots"] if slot["state"] != "gone"]
    words = [
        _counted([each["state"] for each in model["task_managers"]], "TaskManager"),
        _counted(slots, "slot"),
        _counted(["without a leader" if _is_without_leader(each) else each["state"] for each in model["jobs"]], "job"),
        f"{model['num_messages']} message{'' if model['num_messages'] == 1 else 's'} under way",
    ]
    return " · ".join(words)


def former_words(model: Model) -> str:
    """Who believes to lead and does not; "" if nobody does."""
    names = [f"{each['address']} of epoch {each['epoch']}" for each in model["former"]]
    return f"▲ whose place another has taken: {', '.join(names)}" if names else ""


def trouble_words(model: Model) -> str:
    """Who is not as he should be, by how he is; "" if all are well."""
    parts = [
        *model["leaders"],
        *model["task_managers"],
        *(each["master"] for each in model["jobs"] if not each["is_over"]),
    ]
    by_state: dict[str, list[str]] = {}
    for each in parts:
        if each["state"] != "alive":
            by_state.setdefault(each["state"], []).append(each["address"])
    words = [
        f"{'without a leader' if state == 'vacant' else state}: {', '.join(who[:4])}" for state, who in by_state.items()
    ]
    return "; ".join([*words, *([former_words(model)] if model["former"] else [])])


def _counted(states: Sequence[str], what: str) -> str:
    words = ", ".join(f"{number} {state}" for state, number in Counter(states).items())
    return f"{len(states)} {what}{'' if len(states) == 1 else 's'}" + (f": {words}" if words else "")


def _member_words(member: Model, noun: str) -> str:
    sign, state = _SIGN[member["state"]], member["state"]
    of = f", {noun} {member['epoch']}"
    leads = "leads" if noun == "epoch" else "alive"
    if state == "alive":
        return f"{sign} {leads}{of}"
    if state == "paused":
        return f"{sign} paused{of}" + (", another will lead" if member["is_replaced"] else "")
    if state == "zombie":
        return f"{sign} believes to lead{of}"
    return f"{sign} nobody leads yet" if state == "vacant" else f"{sign} gone"


def _link_words(link: Model) -> str:
    heard = "" if link["silent_ms"] is None else f", heard {_ago(link['silent_ms'])} ago"
    return f"{link['address']}, epoch {link['epoch']}: {link['state']}{heard}"


def _leader_words(member: Model) -> str:
    """The first leader it deals with, which is the ResourceManager; who deals with none has others to tell of."""
    leaders = [each for each in member["links"] if each["state"] != _HERE]
    return _link_words(leaders[0]) if leaders else _here_words(member)


def _others_words(member: Model) -> str:
    """The other leaders by name, and by their number those who have registered here."""
    leaders = [_link_words(each) for each in member["links"] if each["state"] != _HERE]
    if not leaders:
        return ""
    more = f", and {len(leaders) - 2} more" if len(leaders) > 2 else ""
    return " · ".join(words for words in ("".join(leaders[1:2]) + more, _here_words(member)) if words)


def _here_words(member: Model) -> str:
    here = [each for each in member["links"] if each["state"] == _HERE]
    silent = [each["silent_ms"] for each in here if each["silent_ms"] is not None]
    heard = f", all heard of within {_ago(max(silent))}" if silent else ""
    return f"{len(here)} {_HERE}{heard}" if here else ""


def _refused_words(member: Model) -> str:
    """How many messages it refused."""
    number = member["num_refused"]
    return f"refused {number} message{'' if number == 1 else 's'} of, or for, another epoch" if number else ""


def _fence_words(member: Model) -> str:
    words = _refused_words(member)
    return f"{words}; the last: {member['refusal']}" if words else ""


def _is_without_leader(job: Model) -> bool:
    return not job["is_over"] and job["master"]["state"] in ("vacant", "gone")


def _job_state_words(job: Model) -> str:
    if job["is_over"]:
        return str(job["state"])
    if _is_without_leader(job):
        return "stored; nobody leads it now"
    return f"{job['state']} after a failure" if job["failure"] else str(job["state"])


def _master_words(job: Model) -> str:
    if job["is_over"]:
        return str(job["failure"])
    found = (f"{job['master']['address']}: {_member_words(job['master'], 'epoch')}", _refused_words(job["master"]))
    return " · ".join(words for words in found if words)


def _master_links(job: Model) -> str:
    if job["is_over"]:
        return ""
    found = (_leader_words(job["master"]), _others_words(job["master"]))
    return " · ".join(words for words in found if words)


def _task_words(job: Model) -> str:
    attempts = ", ".join(f"{each['num_attempts']} {each['state']}" for each in job["executions"]) or "none"
    highest = "" if job["attempt"] is None else f", at most attempt {job['attempt']}"
    kept = ", ".join(str(each["checkpoint"]) for each in job["completed"]) or "none"
    return f"tasks: {attempts}{highest} · checkpoints kept: {kept}"


def _ago(silent_ms: float) -> str:
    return f"{silent_ms:.0f} ms" if silent_ms < 1_000 else f"{silent_ms / 1_000:.1f} s"
